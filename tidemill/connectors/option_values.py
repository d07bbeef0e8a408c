"""Parses connector options: checks the text of a table's option against the option's declaration.

Every error is a ValidationError with the key, the value and the valid values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from difflib import get_close_matches
from typing import Any

from tidemill.config.option import (
    parse_boolean,
    parse_duration,
    parse_integer,
    parse_memory,
    parse_number,
)
from tidemill.config.secrets import shown_value
from tidemill.connectors.api import ConnectorOption
from tidemill.errors import ValidationError

_PARSERS: dict[str, Callable[[str], Any]] = {
    "string": str,
    "int": parse_integer,
    "float": parse_number,
    "bool": parse_boolean,
    "duration": parse_duration,
    "memory": parse_memory,
    "map": str,
}
_UNSET = "A variable of a script gets its value on the command line: -V NAME=value."
_KIND_NAMES = {"int": "an integer", "float": "a number"}


def parse_option(option: ConnectorOption, text: str, prefix: str = "") -> Any:
    """The typed value of ``text``: str, int, float, bool, Duration or MemorySize by ``option.kind``."""
    key = prefix + option.key
    try:
        value = _PARSERS[option.kind](text)
    except ValueError as e:
        reason = f"'{text}' is not {_KIND_NAMES[option.kind]}" if option.kind in _KIND_NAMES else str(e)
        hint = _UNSET if "${" in text else ""
        text = shown_value(key, text)
        raise ValidationError(
            f"Could not parse value '{text}' for key '{key}': {reason}.", hint=hint
        ) from None
    if option.least is not None and value < option.least:
        raise ValidationError(
            f"Could not parse value '{text}' for key '{key}': it must be at least {option.least}."
        )
    if option.choices and text.lower() not in {c.lower() for c in option.choices}:
        raise ValidationError(
            f"Unsupported value '{shown_value(key, text)}' for key '{key}'."
            f" Supported values are [{', '.join(option.choices)}]."
        )
    return value


class OptionValues:
    """Options of one table seen through their declarations; ``prefix`` as in ``csv.``."""

    def __init__(
        self, declared: tuple[ConnectorOption, ...], values: Mapping[str, str], prefix: str = ""
    ) -> None:
        self._declared = {o.key: o for o in declared}
        self._values = values
        self._prefix = prefix

    def __getitem__(self, key: str) -> Any:
        """The parsed value, or else the parsed default; None if there is neither."""
        option = self._declared[key]
        text = self._values.get(self._prefix + key, option.default)
        return None if text is None else parse_option(option, text, self._prefix)

    def check(self) -> None:
        """Parses every declared option that the table sets. ValidationError if a required option is
        missing."""
        missing = [
            k for k, o in self._declared.items() if o.required and self._prefix + k not in self._values
        ]
        if missing:
            raise ValidationError(
                "One or more required options are missing.\n\nMissing required options are:\n\n"
                + "\n".join(sorted(self._prefix + k for k in missing)),
                hint=spelling_hint(self._undeclared(), {self._prefix + k for k in missing}),
            )
        for key, option in self._declared.items():
            if option.kind != "map" and self._prefix + key in self._values:
                parse_option(option, self._values[self._prefix + key], self._prefix)

    def _undeclared(self) -> list[str]:
        declared = {self._prefix + key for key in self._declared}
        return sorted(set(self._values) - declared)


def spelling_hint(unknown_keys: Iterable[str], valid_keys: Iterable[str]) -> str:
    """A question for each of ``unknown_keys`` that resembles a valid key: "Did you mean 'path' by 'pth'?"."""
    candidates = sorted(valid_keys)
    pairs = [
        (key, near) for key in unknown_keys for near in get_close_matches(key, candidates, n=1, cutoff=0.6)
    ]
    return " ".join(f"Did you mean '{near}' by '{key}'?" for key, near in pairs)
