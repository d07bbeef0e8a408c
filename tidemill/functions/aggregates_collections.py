"""Aggregates whose result holds all of a group's values: LISTAGG, COLLECT, ARRAY_AGG, JSON_*AGG, PERCENTILE.

How each is computed, in batch here and in the streaming kernels alike:

- ARRAY_AGG: values by arrival, NULLs kept (option ``NULLS`` = "IGNORE NULLS" drops them), DISTINCT keeps
  the first arrival of each; NULL for no row.
- LISTAGG: texts that are not NULL by arrival, option ``SEPARATOR`` (default ',') between; NULL for none.
- COLLECT: a multiset of the values that are not NULL, empty for none.
- JSON_ARRAYAGG: '[' values ']', option ``NULLS`` = "NULL ON NULL" keeps NULLs (default "ABSENT ON NULL").
- JSON_OBJECTAGG: '{' "key":value '}' sorted by key, default "NULL ON NULL"; a key that comes twice is an
  error.
  Option ``RAW`` = "TRUE": the value is JSON text already (it came from a JSON constructor).
- PERCENTILE(value, percentage[, frequency]): linear interpolation at (n - 1) * percentage over the sorted
  values that are not NULL, in DOUBLE; each counts ``frequency`` times; an array of percentages gives an
  array.

Cost: memory of one group's values, in one Spark task.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal

from tidemill.functions.aggregates import grouped_nullability, reject_null
from tidemill.functions.api import (
    AggregateFunction,
    Argument,
    Resolved,
    SignatureError,
    SparkAggregateCall,
    spark_aggregate,
)
from tidemill.functions.signatures import calcite_text, check_count, mismatch
from tidemill.functions.spark_text import bind, each, each_indexed, keep, quoted
from tidemill.functions.text.json_functions_sql import json_text, or_null
from tidemill.functions.values import marked, unmarked
from tidemill.types import logical as t

_JSON_LENGTH = 2000
_LISTAGG_FORMS = "LISTAGG(<CHARACTER>)'\n'LISTAGG(<CHARACTER>, <CHARACTER_LITERAL>)"


def _arrivals(call: SparkAggregateCall, value: str, condition: str = "") -> str:
    """An array of ``value`` per row in order of arrival, NULLs kept."""
    sequence = call.sequence or "0"
    entry = f"named_struct('s', {sequence}, 'v', {value})"
    bag = spark_aggregate("collect_list", call.of_all_rows, entry, condition=condition)
    ordered = f"array_sort({bag}, (l, r) -> CASE WHEN l.s < r.s THEN -1 WHEN l.s > r.s THEN 1 ELSE 0 END)"
    values = each(ordered if call.sequence else bag, lambda e: f"{e}.v")
    return f"array_distinct({values})" if call.distinct else values


def _null_if_empty(array: str, body: str) -> str:
    return f"CASE WHEN size({array}) > 0 THEN {body} END"


def _resolve_array_agg(arguments: tuple[Argument, ...], options: Mapping[str, str]) -> Resolved:
    check_count("ARRAY_AGG", len(arguments), 1, 1)
    reject_null(arguments)
    kind = arguments[0].type
    result = grouped_nullability(t.ArrayType(element=kind), arguments, options)
    return Resolved(arg_types=(kind,), result=result)


def _array_agg_sql(call: SparkAggregateCall) -> str:
    value = call.args[0]
    condition = f"{value} IS NOT NULL" if call.options.get("NULLS") == "IGNORE NULLS" else ""
    return bind(_arrivals(call, value, condition), lambda a: _null_if_empty(a, a))


def _resolve_listagg(arguments: tuple[Argument, ...], options: Mapping[str, str]) -> Resolved:
    reject_null(arguments[:1])
    if not 1 <= len(arguments) <= 2 or not all(isinstance(a.type, t.CHARACTER_TYPES) for a in arguments):
        raise mismatch("LISTAGG", arguments, _LISTAGG_FORMS)
    if len(arguments) == 2 and not arguments[1].is_literal:
        raise SignatureError("Argument to function 'LISTAGG' must be a literal")
    if len(arguments) == 2 and arguments[1].literal is None:
        raise SignatureError("Argument to function 'LISTAGG' must not be NULL")
    result = grouped_nullability(arguments[0].type, arguments, options)
    return Resolved(arg_types=tuple(a.type for a in arguments), result=result)


def _listagg_sql(call: SparkAggregateCall) -> str:
    value = call.args[0]
    separator = f"first({call.args[1]})" if len(call.args) > 1 else quoted(call.options.get("SEPARATOR", ","))
    texts = _arrivals(call, value, f"{value} IS NOT NULL")
    return bind(texts, lambda a: _null_if_empty(a, f"array_join({a}, {separator})"))


def _resolve_collect(arguments: tuple[Argument, ...], _: Mapping[str, str]) -> Resolved:
    check_count("COLLECT", len(arguments), 1, 1)
    reject_null(arguments)
    kind = arguments[0].type
    return Resolved(arg_types=(kind,), result=t.MultisetType(element=kind, nullable=False))


def _collect_sql(call: SparkAggregateCall) -> str:
    """Run lengths over the sorted values: n log n, where comparing each with all would be n squared."""
    (kind,) = call.arg_types
    values = f"sort_array({spark_aggregate('collect_list', call, marked(call.args[0], kind))})"
    return bind(values, lambda v: _run_lengths(v, kind))


def _run_lengths(values: str, kind: t.LogicalType) -> str:
    """Of ``marked`` values of ``kind``."""
    marks = each_indexed(
        values, lambda e, i: f"CASE WHEN {i} = 0 OR NOT ({e} <=> {values}[{i} - 1]) THEN {i} END", role="m"
    )
    starts = keep(marks, lambda i: f"{i} IS NOT NULL", role="s")
    return bind(
        starts,
        lambda s: each_indexed(
            s,
            lambda start, i: (
                f"named_struct('key', {unmarked(f'{values}[{start}]', kind)}, "
                f"'value', coalesce(get({s}, {i} + 1), size({values})) - {start})"
            ),
            role="r",
        ),
    )


def _resolve_json_array(arguments: tuple[Argument, ...], _: Mapping[str, str]) -> Resolved:
    check_count("JSON_ARRAYAGG", len(arguments), 1, 1)
    reject_null(arguments)
    return Resolved(arg_types=(arguments[0].type,), result=_json_result())


def _resolve_json_object(arguments: tuple[Argument, ...], options: Mapping[str, str]) -> Resolved:
    check_count("JSON_OBJECTAGG", len(arguments), 2, 2)
    reject_null(arguments)
    if not isinstance(arguments[0].type, t.CHARACTER_TYPES):
        name = "JSON_OBJECTAGG_" + options.get("NULLS", "NULL ON NULL").replace(" ", "_")
        raise mismatch(name, arguments, f"{name}(<CHARACTER>, <ANY>)")
    return Resolved(arg_types=tuple(a.type for a in arguments), result=_json_result())


def _json_result() -> t.LogicalType:
    return t.VarCharType(length=_JSON_LENGTH, nullable=False)


def _json_value(call: SparkAggregateCall, index: int) -> str:
    raw = call.options.get("RAW") == "TRUE"
    return call.args[index] if raw else json_text(call.arg_types[index], call.args[index])


def _json_array_sql(call: SparkAggregateCall) -> str:
    keeps = call.options.get("NULLS") == "NULL ON NULL"
    value = call.args[0]
    texts = _arrivals(call, _json_value(call, 0), "" if keeps else f"{value} IS NOT NULL")
    return f"concat('[', array_join({texts}, ',', 'null'), ']')"


def _json_object_sql(call: SparkAggregateCall) -> str:
    absent = call.options.get("NULLS") == "ABSENT ON NULL"
    key, value = call.args
    entry = f"named_struct('k', {key}, 'v', {or_null(_json_value(call, 1))}, 'p', {value} IS NOT NULL)"
    return bind(f"sort_array({_arrivals(call, entry)})", lambda entries: _json_members(entries, absent))


def _json_members(entries: str, absent: bool) -> str:
    keys = each(entries, lambda e: f"{e}.k", role="k")
    kept_entries = keep(entries, lambda e: f"{e}.p") if absent else entries
    members = each(kept_entries, lambda e: f"concat({json_text(t.STRING, f'{e}.k')}, ':', {e}.v)", role="j")
    message = "Key is already present. Duplicate keys are not allowed in JSON_OBJECTAGG: "
    error = f"raise_error(concat({quoted(message)}, array_join({keys}, ', ')))"
    missing = f"raise_error({quoted('JSON_OBJECTAGG: a key is NULL. Keys must not be NULL.')})"
    return (
        f"CASE WHEN array_contains({each(keys, lambda k: f'{k} IS NULL', role='n')}, TRUE) THEN {missing} "
        f"WHEN size(array_distinct({keys})) < size({entries}) THEN {error} "
        f"ELSE concat('{{', array_join({members}, ','), '}}') END"
    )


def _resolve_percentile(arguments: tuple[Argument, ...], _: Mapping[str, str]) -> Resolved:
    check_count("PERCENTILE", len(arguments), 2, 3)
    percentage = arguments[1].type
    many = isinstance(percentage, t.ArrayType)
    fraction = percentage.element if isinstance(percentage, t.ArrayType) else percentage
    fits = isinstance(arguments[0].type, t.NUMERIC_TYPES) and isinstance(fraction, t.NUMERIC_TYPES)
    counted = all(isinstance(a.type, t.INTEGER_TYPES) for a in arguments[2:])
    if not fits or not counted or not _is_fraction(arguments[1]):
        raise SignatureError(
            "Invalid input arguments. PERCENTILE(expr <NUMERIC>, percentage [<NUMERIC NOT NULL> | "
            "ARRAY<NUMERIC NOT NULL> NOT NULL][, frequency <INTEGER_NUMERIC>]) with percentages between 0 "
            f"and 1 does not take ({', '.join(calcite_text(a.type) for a in arguments)})"
        )
    result: t.LogicalType = t.ArrayType(element=t.DoubleType()) if many else t.DoubleType()
    return Resolved(arg_types=tuple(a.type for a in arguments), result=result)


def _is_fraction(argument: Argument) -> bool:
    value = argument.literal
    return not isinstance(value, int | float | Decimal) or 0 <= value <= 1


def _percentile_sql(call: SparkAggregateCall) -> str:
    value = f"CAST({call.args[0]} AS DOUBLE)"
    percentage = f"first({call.args[1]}, true)"
    present = f"{call.args[0]} IS NOT NULL"
    if len(call.args) > 2:
        entry = f"named_struct('v', {value}, 'n', CAST({call.args[2]} AS INT))"
        bag = spark_aggregate("collect_list", call, entry, condition=present)
        bag = f"flatten({each(bag, lambda e: f'array_repeat({e}.v, greatest({e}.n, 0))')})"
    else:
        bag = spark_aggregate("collect_list", call, value, condition=present)
    return bind(f"sort_array({bag})", lambda s: _null_if_empty(s, _percentiles(call, s, percentage)))


def _percentiles(call: SparkAggregateCall, values: str, percentage: str) -> str:
    if isinstance(call.arg_types[1], t.ArrayType):
        return each(percentage, lambda p: _interpolated(values, p), role="p")
    return bind(percentage, lambda p: _interpolated(values, p))


def _interpolated(values: str, percentage: str) -> str:
    position = f"((size({values}) - 1) * CAST({percentage} AS DOUBLE))"
    low, high = f"{values}[CAST(floor({position}) AS INT)]", f"{values}[CAST(ceil({position}) AS INT)]"
    return (
        f"CASE WHEN floor({position}) = ceil({position}) THEN {low} "
        f"ELSE (ceil({position}) - {position}) * {low} + ({position} - floor({position})) * {high} END"
    )


AGGREGATES: tuple[AggregateFunction, ...] = (
    AggregateFunction(name="ARRAY_AGG", resolve=_resolve_array_agg, spark=_array_agg_sql),
    AggregateFunction(name="LISTAGG", resolve=_resolve_listagg, spark=_listagg_sql),
    AggregateFunction(name="COLLECT", resolve=_resolve_collect, spark=_collect_sql),
    AggregateFunction(name="JSON_ARRAYAGG", resolve=_resolve_json_array, spark=_json_array_sql),
    AggregateFunction(name="JSON_OBJECTAGG", resolve=_resolve_json_object, spark=_json_object_sql),
    AggregateFunction(name="PERCENTILE", resolve=_resolve_percentile, spark=_percentile_sql),
)
