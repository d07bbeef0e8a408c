"""ROW(…), ARRAY[…] and MAP[…].

Elements are cast to their common type. A MAP's later entry replaces an earlier one of the same key;
its carrier is an array of entries, by key, which may be NULL.
"""

from __future__ import annotations

from collections.abc import Mapping

from tidemill.functions.api import Argument, Resolved, ScalarFunction, SignatureError, SparkCall
from tidemill.functions.coercion import common_type
from tidemill.functions.literals import string_literal
from tidemill.functions.signatures import calcite_text, mismatch
from tidemill.functions.values import by_key, last_of_each_key
from tidemill.types import logical as t
from tidemill.types.physical import spark_type


def _resolve_row(arguments: tuple[Argument, ...], _: Mapping[str, str]) -> Resolved:
    types = tuple(a.type for a in arguments)
    fields = tuple(t.Field(f"EXPR${i}", kind) for i, kind in enumerate(types))
    return Resolved(arg_types=types, result=t.RowType(fields=fields, nullable=False))


def _row(call: SparkCall) -> str:
    assert isinstance(call.result, t.RowType)
    parts = (f"{string_literal(f.name)}, {a}" for f, a in zip(call.result.fields, call.args, strict=True))
    return f"named_struct({', '.join(parts)})"


def _common(name: str, arguments: tuple[Argument, ...]) -> t.LogicalType:
    common = common_type(tuple(a.type for a in arguments))
    if common is None:
        argument_types = ", ".join(calcite_text(a.type) for a in arguments)
        raise SignatureError(f"Parameters must be of the same type; {name} got {argument_types}")
    return common


def _cast_all(arguments: tuple[Argument, ...], wide: t.LogicalType) -> tuple[t.LogicalType, ...]:
    return tuple(wide.with_nullable(a.type.nullable or isinstance(a.type, t.NullType)) for a in arguments)


def _resolve_array(arguments: tuple[Argument, ...], _: Mapping[str, str]) -> Resolved:
    if not arguments:
        raise mismatch("ARRAY", arguments, "ARRAY[<ELEMENT>, ...]")
    element = _common("ARRAY", arguments)
    return Resolved(
        arg_types=_cast_all(arguments, element), result=t.ArrayType(element=element, nullable=False)
    )


def _array(call: SparkCall) -> str:
    return f"array({', '.join(call.args)})"


def _resolve_map(arguments: tuple[Argument, ...], _: Mapping[str, str]) -> Resolved:
    if not arguments or len(arguments) % 2:
        raise mismatch("MAP", arguments, "MAP[<KEY>, <VALUE>, ...]")
    keys, values = arguments[::2], arguments[1::2]
    key, value = _common("MAP", keys), _common("MAP", values)
    pairs = zip(_cast_all(keys, key), _cast_all(values, value), strict=True)
    result = t.MapType(key=key, value=value, nullable=False)
    return Resolved(arg_types=tuple(kind for pair in pairs for kind in pair), result=result)


def _map(call: SparkCall) -> str:
    pairs = list(zip(call.args[::2], call.args[1::2], strict=True))
    entries = [f"named_struct('key', {k}, 'value', {v})" for k, v in pairs]
    whole = f"CAST(array({', '.join(entries)}) AS {spark_type(call.result)})"
    if len(pairs) == 1:
        return whole
    assert isinstance(call.result, t.MapType)
    return by_key(last_of_each_key(whole, call.result.key), call.result)


FUNCTIONS: tuple[ScalarFunction, ...] = (
    ScalarFunction(name="ROW", resolve=_resolve_row, spark=_row),
    ScalarFunction(name="ARRAY", resolve=_resolve_array, spark=_array),
    ScalarFunction(name="MAP", resolve=_resolve_map, spark=_map),
)
