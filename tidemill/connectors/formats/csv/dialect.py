"""The CSV options as one value."""

from __future__ import annotations

import re
from dataclasses import dataclass

from tidemill.connectors.api import ConnectorOption
from tidemill.connectors.option_values import OptionValues
from tidemill.errors import ValidationError

OPTIONS = (
    ConnectorOption(key="field-delimiter", default=",", doc="Character between fields."),
    ConnectorOption(
        key="disable-quote-character", kind="bool", default="false", doc="Quotes are plain characters."
    ),
    ConnectorOption(
        key="quote-character", default='"', doc="Character around a field that holds delimiters."
    ),
    ConnectorOption(key="allow-comments", kind="bool", default="false", doc="Skip lines that start with #."),
    ConnectorOption(
        key="ignore-parse-errors", kind="bool", default="false", doc="NULL for fields that do not parse."
    ),
    ConnectorOption(key="array-element-delimiter", default=";", doc="Between elements of an ARRAY or ROW."),
    ConnectorOption(key="escape-character", doc="Character that takes the next one literally."),
    ConnectorOption(key="null-literal", doc="Text that stands for NULL."),
    ConnectorOption(
        key="write-bigdecimal-in-scientific-notation",
        kind="bool",
        default="true",
        doc="Write 100000 in a DECIMAL column as 1E+5.",
    ),
)


_ESCAPE = re.compile(
    r"\\(?:u+(?P<hex>[0-9A-Fa-f]{4})|(?P<octal>[0-3][0-7]{1,2}|[0-7]{1,2})|(?P<other>.?))", re.S
)
_CONTROLS = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """``quote`` and ``escape`` are '' if disabled; ``null`` is None if no text means NULL."""

    delimiter: str
    quote: str
    escape: str
    null: str | None
    comments: bool
    lenient: bool
    element_delimiter: str
    scientific: bool


def _character(options: OptionValues, key: str) -> str:
    text = options[key]
    if text is None:
        return ""
    if len(text) != 1:
        raise ValidationError(f"Option 'csv.{key}' must be a string with single character, but was: {text}")
    return str(text)


def _delimiter(options: OptionValues) -> str:
    """The delimiter, with Java escapes resolved as in Flink: ``\\t``, ``\\u0001`` and ``\\;`` are one
    character."""
    text = _ESCAPE.sub(_unescaped, str(options["field-delimiter"]))
    if len(text) != 1:
        raise ValidationError(
            f"Option 'csv.field-delimiter' must be a string with single character, but was: {text}"
        )
    return text


def _unescaped(escape: re.Match[str]) -> str:
    if escape["hex"]:
        return chr(int(escape["hex"], 16))
    if escape["octal"]:
        return chr(int(escape["octal"], 8))
    return _CONTROLS.get(escape["other"], escape["other"])


def read_dialect(options: OptionValues) -> Dialect:
    """The dialect of the options. ValidationError if an option is invalid."""
    quoted = not options["disable-quote-character"]
    return Dialect(
        delimiter=_delimiter(options),
        quote=_character(options, "quote-character") if quoted else "",
        escape=_character(options, "escape-character"),
        null=options["null-literal"],
        comments=options["allow-comments"],
        lenient=options["ignore-parse-errors"],
        element_delimiter=options["array-element-delimiter"],
        scientific=options["write-bigdecimal-in-scientific-notation"],
    )
