"""Making JSON: JSON_OBJECT, JSON_ARRAY, JSON_STRING, JSON, JSON_QUOTE, JSON_UNQUOTE.

Options: ``NULLS`` is "NULL ON NULL" or "ABSENT ON NULL"; ``RAW`` lists the arguments (from 0, joined by
commas) that are JSON text already.
"""

from __future__ import annotations

from collections.abc import Mapping

from tidemill.functions.api import Argument, Resolved, ScalarFunction, SignatureError, SparkCall
from tidemill.functions.json_document import json_of, parsed
from tidemill.functions.sharing import share
from tidemill.functions.signatures import CHARACTER, check_count, fixed, signature
from tidemill.functions.spark_text import each, quoted
from tidemill.functions.text.json_functions_sql import json_key, json_text, or_null, utf16_order
from tidemill.types import logical as t

_NOT_NULL_TEXT = t.VarCharType(nullable=False)


def _value(call: SparkCall, index: int) -> str:
    """The JSON text of an argument, NULL of NULL."""
    raw = call.options.get("RAW", "").split(",")
    return call.args[index] if str(index) in raw else json_text(call.arg_types[index], call.args[index])


def _resolve_object(arguments: tuple[Argument, ...], _: Mapping[str, str]) -> Resolved:
    """(key, value, key, value, ...)."""
    if len(arguments) % 2:
        raise SignatureError("JSON_OBJECT takes pairs of a key and a value")
    for key in arguments[::2]:
        if not isinstance(key.type, t.CHARACTER_TYPES):
            raise SignatureError("Expected a character type")
        if key.type.nullable:
            raise SignatureError("Argument to function 'JSON_OBJECT' must not be NULL: a key")
    _check_values(arguments[1::2])
    return Resolved(arg_types=tuple(a.type for a in arguments), result=_NOT_NULL_TEXT)


def _resolve_array(arguments: tuple[Argument, ...], _: Mapping[str, str]) -> Resolved:
    _check_values(arguments)
    return Resolved(arg_types=tuple(a.type for a in arguments), result=_NOT_NULL_TEXT)


def _check_values(arguments: tuple[Argument, ...]) -> None:
    """SignatureError for a type without a JSON form."""
    for argument in arguments:
        json_text(argument.type, "NULL")


def _object(call: SparkCall) -> str:
    """Members sorted by key, as Flink's mapper writes them; of equal literal keys the last one stands."""
    keys = call.literals[::2]
    if not all(isinstance(key, str) for key in keys):
        return _object_of_columns(call)
    members: dict[str, str] = {}
    for index, key in enumerate(map(str, keys)):
        members[key] = _member(call, quoted(json_key(key) + ":"), 2 * index + 1)
    ordered = [members[key] for key in sorted(members, key=utf16_order)]
    return f"concat('{{', {_joined(ordered)}, '}}')" if ordered else "'{}'"


def _object_of_columns(call: SparkCall) -> str:
    """As ``_object`` for keys that are known only at run time; equal keys all stay."""
    entries = []
    for index in range(0, len(call.args), 2):
        key = f"concat({json_text(call.arg_types[index], call.args[index])}, ':')"
        entries.append(f"named_struct('k', {call.args[index]}, 'm', {_member(call, key, index + 1)})")
    members = each(f"sort_array(array({', '.join(entries)}))", lambda e: f"{e}.m", role="o")
    return f"concat('{{', array_join({members}, ','), '}}')"


def _member(call: SparkCall, key: str, index: int) -> str:
    value = _value(call, index)
    return f"concat({key}, {value if _absent(call, 'NULL ON NULL') else or_null(value)})"


def _absent(call: SparkCall, default: str) -> bool:
    return call.options.get("NULLS", default) == "ABSENT ON NULL"


def _array(call: SparkCall) -> str:
    absent = _absent(call, "ABSENT ON NULL")
    values = [_value(call, i) if absent else or_null(_value(call, i)) for i in range(len(call.args))]
    return f"concat('[', {_joined(values)}, ']')" if values else "'[]'"


def _joined(parts: list[str]) -> str:
    """Parts that are NULL are absent."""
    return f"concat_ws(',', {', '.join(parts)})"


def _resolve_string(arguments: tuple[Argument, ...], _: Mapping[str, str]) -> Resolved:
    check_count("JSON_STRING", len(arguments), 1, 1)
    _check_values(arguments)
    kind = arguments[0].type
    return Resolved(arg_types=(kind,), result=t.VarCharType(nullable=kind.nullable))


def _json(call: SparkCall) -> str:
    """JSON(text) inside a constructor: the text as JSON, in normal form; an error where it is none."""
    return share(call.args[0], _normal_form)


def _normal_form(text: str) -> str:
    document = parsed(text)
    error = f"raise_error(concat('Not JSON: ', {text}))"
    normalized = share(document, lambda d: f"CASE WHEN {d} IS NOT NULL THEN {json_of(d)} ELSE {error} END")
    return f"CASE WHEN {text} IS NOT NULL THEN {normalized} END"


_SHORT_ESCAPES = (
    ("\\", "\\\\"),
    ('"', '\\"'),
    ("/", "\\/"),
    ("\b", "\\b"),
    ("\f", "\\f"),
    ("\n", "\\n"),
    ("\r", "\\r"),
    ("\t", "\\t"),
)


def _quote(call: SparkCall) -> str:
    """Quotes with every character beyond ASCII escaped, as a surrogate pair where it takes two."""
    text = call.args[0]
    for char, escape in _SHORT_ESCAPES:
        text = f"replace({text}, {quoted(char)}, {quoted(escape)})"
    return share(text, lambda s: f"concat('\"', {_ascii(s)}, '\"')")


def _ascii(text: str) -> str:
    def escape(code: str) -> str:
        return f"concat('\\\\u', lpad(lower(hex({code})), 4, '0'))"

    def shown(char: str) -> str:
        high = escape(f"55296 + shiftright(ascii({char}) - 65536, 10)")
        low = escape(f"56320 + ((ascii({char}) - 65536) & 1023)")
        return (
            f"CASE WHEN ascii({char}) < 128 THEN {char} WHEN ascii({char}) < 65536 "
            f"THEN {escape(f'ascii({char})')} ELSE concat({high}, {low}) END"
        )

    chars = each(f"split({text}, '')", shown, role="c")
    return f"CASE WHEN {text} RLIKE '[^\\\\x00-\\\\x7F]' THEN array_join({chars}, '') ELSE {text} END"


def _unquote(call: SparkCall) -> str:
    """The text inside the quotes, escapes resolved; anything that is no quoted text stays as it is."""
    return share(call.args[0], _unquoted)


def _unquoted(text: str) -> str:
    # Bare quotes and control characters inside are taken as they are.
    inner = f"substring({text}, 2, length({text}) - 2)"
    escaped = f"regexp_replace({inner}, {quoted(_BARE_QUOTE)}, {quoted(_ESCAPED_QUOTE)})"
    for char, escape in _SHORT_ESCAPES[3:]:
        escaped = f"replace({escaped}, {quoted(char)}, {quoted(escape)})"
    document = f"try_parse_json(concat('\"', {escaped}, '\"'))"
    value = f"coalesce(try_variant_get({document}, '$', 'string'), {text})"
    return f"CASE WHEN length({text}) > 1 AND {text} LIKE '\"%\"' THEN {value} ELSE {text} END"


_BARE_QUOTE = r'(?s)\G((?:[^"\\]|\\.)*+)"'
_ESCAPED_QUOTE = r"$1\\" + '"'

FUNCTIONS: tuple[ScalarFunction, ...] = (
    ScalarFunction(name="JSON_OBJECT", resolve=_resolve_object, spark=_object),
    ScalarFunction(name="JSON_ARRAY", resolve=_resolve_array, spark=_array),
    ScalarFunction(
        name="JSON_STRING",
        resolve=_resolve_string,
        spark=lambda call: json_text(call.arg_types[0], call.args[0]),
    ),
    ScalarFunction(name="JSON", resolve=signature("JSON", CHARACTER, result=fixed(t.STRING)), spark=_json),
    ScalarFunction(
        name="JSON_QUOTE", resolve=signature("JSON_QUOTE", CHARACTER, result=fixed(t.STRING)), spark=_quote
    ),
    ScalarFunction(
        name="JSON_UNQUOTE",
        resolve=signature("JSON_UNQUOTE", CHARACTER, result=fixed(t.STRING)),
        spark=_unquote,
    ),
)
