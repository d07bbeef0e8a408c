"""Reading JSON: IS JSON, JSON_EXISTS, JSON_VALUE, JSON_QUERY.

In a strict path (the default) whatever goes wrong, be it no JSON, nothing selected, a JSON null or a
value of the wrong shape, is an error and ON ERROR decides; in a lax path the same is an empty result and
ON EMPTY decides. NULL in is NULL out. Options: RETURNING, ON EMPTY, ON ERROR (their DEFAULT values are
further arguments), WRAPPER.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from tidemill.functions.api import Argument, Resolved, ScalarFunction, SignatureError, SparkCall
from tidemill.functions.json_document import (
    is_list,
    json_of,
    json_of_list,
    parsed,
    scalar_text,
    selected,
    unmarked,
)
from tidemill.functions.json_paths import JsonPath, parse_path
from tidemill.functions.signatures import CHARACTER, check_count, fixed, mismatch, signature
from tidemill.functions.spark_text import bind, each, quoted
from tidemill.types import logical as t
from tidemill.types.physical import spark_type

_TEXT_TYPE = re.compile(r"(VARCHAR|CHAR)\((\d+)\)( NOT NULL)?")
_SCALAR_TYPES: dict[str, t.LogicalType] = {
    "STRING": t.STRING,
    "INT": t.INT,
    "BOOLEAN": t.BOOLEAN,
    "DOUBLE": t.DOUBLE,
}
_ARRAY_OF_TEXT = t.ArrayType(element=t.STRING)


def _returning(function: str, options: Mapping[str, str]) -> t.LogicalType:
    text = options.get("RETURNING", "STRING").removesuffix(" NOT NULL")
    sized = _TEXT_TYPE.fullmatch(text)
    if sized:
        kind = t.VarCharType if sized[1] == "VARCHAR" else t.CharType
        return kind(length=int(sized[2]))
    if function == "JSON_QUERY" and text.startswith("ARRAY<"):
        if not text.startswith("ARRAY<STRING"):
            raise SignatureError(
                f"Unsupported array element type '{text[6:-1]}' for RETURNING ARRAY in JSON_QUERY()."
            )
        return _ARRAY_OF_TEXT
    result_type = _SCALAR_TYPES.get(text) if function == "JSON_VALUE" or text == "STRING" else None
    if result_type is None:
        raise SignatureError(f"Unsupported type '{text}' for RETURNING in {function}().")
    return result_type


def _check_texts(name: str, arguments: tuple[Argument, ...]) -> tuple[t.LogicalType, ...]:
    """Document and path."""
    kinds = signature(name, CHARACTER, CHARACTER, result=fixed(t.STRING))(arguments[:2], {}).arg_types
    if isinstance(arguments[1].literal, str):
        parse_path(arguments[1].literal, name)
    return kinds


def _resolve_value(arguments: tuple[Argument, ...], options: Mapping[str, str]) -> Resolved:
    check_count("JSON_VALUE", len(arguments), 2, 4)
    result = _returning("JSON_VALUE", options)
    for default in arguments[2:]:
        fits = isinstance(result, t.CHARACTER_TYPES) == isinstance(default.type, t.CHARACTER_TYPES)
        if not fits and not isinstance(default.type, t.NullType):
            raise SignatureError(f"JSON_VALUE: a DEFAULT of type {default.type.text()} is no {result.text()}")
    defaults = tuple(result.with_nullable(a.type.nullable) for a in arguments[2:])
    return Resolved(arg_types=(*_check_texts("JSON_VALUE", arguments), *defaults), result=result)


def _resolve_query(arguments: tuple[Argument, ...], options: Mapping[str, str]) -> Resolved:
    check_count("JSON_QUERY", len(arguments), 2, 2)
    result = _returning("JSON_QUERY", options)
    for event in ("EMPTY", "ERROR"):
        if isinstance(result, t.ArrayType) and options.get(f"ON {event}") == "EMPTY OBJECT":
            raise SignatureError(
                f"Illegal on {event.lower()} behavior 'EMPTY OBJECT' for return type: "
                "VARCHAR(2147483647) ARRAY"
            )
    return Resolved(arg_types=_check_texts("JSON_QUERY", arguments), result=result)


def _resolve_exists(arguments: tuple[Argument, ...], _: Mapping[str, str]) -> Resolved:
    check_count("JSON_EXISTS", len(arguments), 2, 2)
    return Resolved(arg_types=_check_texts("JSON_EXISTS", arguments), result=t.BOOLEAN)


def _fallback(call: SparkCall, path: JsonPath, name: str) -> str:
    """What a missing or unfit value gives."""
    event = "ON EMPTY" if path.lax else "ON ERROR"
    behaviour = call.options.get(event, "NULL")
    if behaviour == "ERROR":
        strict = f"No results for path: {path.text}"
        message = f"Empty result of {name} function is not allowed" if path.lax else strict
        return f"CAST(raise_error({quoted(message)}) AS {spark_type(call.result)})"
    if behaviour == "DEFAULT":
        first_is_used = event == "ON ERROR" and call.options.get("ON EMPTY") == "DEFAULT"
        return call.args[3 if first_is_used else 2]
    empty = {"EMPTY ARRAY": "'[]'", "EMPTY OBJECT": "'{}'"}.get(behaviour)
    if empty and isinstance(call.result, t.ArrayType):
        empty = "CAST(array() AS ARRAY<STRING>)"
    return empty or f"CAST(NULL AS {spark_type(call.result)})"


def _guarded(call: SparkCall, body: str) -> str:
    return f"CASE WHEN {call.args[0]} IS NOT NULL AND {call.args[1]} IS NOT NULL THEN {body} END"


def _value(call: SparkCall) -> str:
    if call.literals[1] is None and call.arg_types[1].nullable:
        return f"CAST(NULL AS {spark_type(call.result)})"
    path = parse_path(call.literals[1], "JSON_VALUE")
    fallback = _fallback(call, path, "JSON_VALUE")
    if is_list(path):
        return _guarded(call, fallback)
    selection = selected(parsed(call.args[0]), path)
    return _guarded(call, bind(selection, lambda v: _scalar(call, v, fallback)))


def _scalar(call: SparkCall, value: str, fallback: str) -> str:
    """The scalar in the RETURNING type; ``fallback`` where it is none of that type."""
    return bind(f"to_json({value})", lambda j: _scalar_of(call, value, j, fallback))


def _scalar_of(call: SparkCall, value: str, text: str, fallback: str) -> str:
    kind = spark_type(call.result)
    unfit = f"{text} IS NULL OR {text} = 'null' OR left({text}, 1) IN ('{{', '[')"
    if isinstance(call.result, t.CHARACTER_TYPES):
        scalar = f"CASE WHEN left({text}, 1) = '\"' THEN {scalar_text(value)} ELSE {text} END"
        assert isinstance(call.result, t.LengthType)
        if call.result.length < t.MAX_LENGTH:
            scalar = f"left({scalar}, {call.result.length})"
        return f"CASE WHEN {unfit} THEN {fallback} ELSE {scalar} END"
    pattern = {"BOOLEAN": "true|false", "INT": "-?[0-9]{1,10}", "DOUBLE": "-?[0-9].*"}[kind]
    plain = unmarked(text)
    cast = f"try_cast({plain} AS {kind})"
    fits = f"({plain}) RLIKE {quoted(f'^(?:{pattern})$')}"
    return (
        f"CASE WHEN {unfit} THEN {fallback} WHEN {fits} THEN coalesce({cast}, {fallback}) ELSE {fallback} END"
    )


def _query(call: SparkCall) -> str:
    if call.literals[1] is None and call.arg_types[1].nullable:
        return f"CAST(NULL AS {spark_type(call.result)})"
    path = parse_path(call.literals[1], "JSON_QUERY")
    selection = selected(parsed(call.args[0]), path)
    text = bind(selection, lambda v: _query_text(call, path, v))
    if isinstance(call.result, t.ArrayType):
        return _guarded(call, bind(text, lambda j: _texts(call, path, j)))
    fallback = _fallback(call, path, "JSON_QUERY")
    result = f"coalesce({bind(text, unmarked)}, {fallback})"
    assert isinstance(call.result, t.LengthType)
    if call.result.length < t.MAX_LENGTH:
        result = f"left({result}, {call.result.length})"
    return _guarded(call, result)


def _query_text(call: SparkCall, path: JsonPath, value: str) -> str:
    """The (marked) JSON text of the object or array, wrapped as asked; NULL if there is none."""
    wrapper = call.options.get("WRAPPER", "WITHOUT")
    if is_list(path):
        missing = "'[]'" if path.lax else "CAST(NULL AS STRING)"
        text = f"coalesce({json_of_list(value)}, {missing})"
    else:
        text = f"nullif(to_json({value}), 'null')"
    return bind(text, lambda j: _wrapped(wrapper, j))


def _wrapped(wrapper: str, text: str) -> str:
    nested = f"left({text}, 1) IN ('{{', '[')"
    around = f"concat('[', {text}, ']')"
    if wrapper == "UNCONDITIONAL":
        return f"CASE WHEN left({text}, 1) = '{{' OR {text} IS NOT NULL THEN {around} END"
    if wrapper == "CONDITIONAL":
        return f"CASE WHEN left({text}, 1) = '[' THEN {text} ELSE {around} END"
    return f"CASE WHEN {nested} THEN {text} END"


def _texts(call: SparkCall, path: JsonPath, text: str) -> str:
    """RETURNING ARRAY<STRING>: strings unquoted, everything else as JSON text, null as NULL."""
    elements = f"try_variant_get(try_parse_json({text}), '$', 'array<variant>')"
    texts = each(
        elements,
        lambda v: (
            f"CASE WHEN is_variant_null({v}) THEN NULL "
            f"WHEN left(to_json({v}), 1) = '\"' THEN {scalar_text(v)} ELSE {json_of(v)} END"
        ),
        role="q",
    )
    fallback = _fallback(call, path, "JSON_QUERY")
    return f"coalesce(CASE WHEN left({text}, 1) = '[' THEN {texts} END, {fallback})"


def _exists(call: SparkCall) -> str:
    if call.literals[1] is None and call.arg_types[1].nullable:
        return "CAST(NULL AS BOOLEAN)"
    path = parse_path(call.literals[1], "JSON_EXISTS")
    behaviours = {"TRUE": "TRUE", "UNKNOWN": "CAST(NULL AS BOOLEAN)", "FALSE": "FALSE"}
    behaviour = call.options.get("ON ERROR", "FALSE")
    message = quoted(f"No results for path: {path.text}")
    fallback = "FALSE" if path.lax else behaviours.get(behaviour, f"CAST(raise_error({message}) AS BOOLEAN)")
    selection = selected(parsed(call.args[0]), path)
    there = (
        f"{selection} IS NOT NULL" if is_list(path) else f"coalesce(to_json({selection}), 'null') <> 'null'"
    )
    return _guarded(call, f"CASE WHEN {there} THEN TRUE ELSE {fallback} END")


def _is_json(kind: str) -> ScalarFunction:
    """IS JSON kind: FALSE of NULL; what follows the first JSON value does not matter."""
    name = f"IS JSON {kind}"
    first = {"VALUE": "", "OBJECT": " IN ('{')", "ARRAY": " IN ('[')", "SCALAR": " NOT IN ('{', '[')"}[kind]

    def resolve(arguments: tuple[Argument, ...], _: Mapping[str, str]) -> Resolved:
        check_count(name, len(arguments), 1, 1)
        argument_type = arguments[0].type
        if not isinstance(argument_type, (*t.CHARACTER_TYPES, t.NullType)):
            raise mismatch(name, arguments, f"<CHARACTER> {name}")
        return Resolved(arg_types=(argument_type,), result=t.BooleanType(nullable=False))

    def translate(call: SparkCall) -> str:
        document = f"try_parse_json(CAST({call.args[0]} AS STRING))"
        if not first:
            return f"{document} IS NOT NULL"
        return f"coalesce(left(to_json({document}), 1){first}, FALSE)"

    return ScalarFunction(name=name, resolve=resolve, spark=translate)


FUNCTIONS: tuple[ScalarFunction, ...] = (
    ScalarFunction(name="JSON_VALUE", resolve=_resolve_value, spark=_value),
    ScalarFunction(name="JSON_QUERY", resolve=_resolve_query, spark=_query),
    ScalarFunction(name="JSON_EXISTS", resolve=_resolve_exists, spark=_exists),
    *(_is_json(kind) for kind in ("VALUE", "OBJECT", "ARRAY", "SCALAR")),
)
