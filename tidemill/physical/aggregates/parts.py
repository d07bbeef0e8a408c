"""Aggregation by parts: the calls over each part of the rows, and the calls that merge their results."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from tidemill.config.optimizer_options import DISTINCT_SPLIT_BUCKETS, DISTINCT_SPLIT_ENABLED
from tidemill.config.option import Configuration
from tidemill.operators.aggregates.declaration import Merging
from tidemill.operators.aggregates.registry import declared
from tidemill.physical import nodes as p
from tidemill.physical.finish import finish, references
from tidemill.physical.names import free_name
from tidemill.plan.expressions import AggregateCall, Call, Cast, Expr, InputRef, Literal
from tidemill.types.logical import (
    BIGINT,
    BOOLEAN,
    INTEGER_TYPES,
    ArrayType,
    Field,
    MapType,
    MultisetType,
    RowType,
)

_NESTED = (ArrayType, MapType, MultisetType, RowType)


def is_additive(calls: tuple[AggregateCall, ...], inputs: tuple[Field, ...]) -> bool:
    """Whether merged results of parts equal the result over all rows to the last digit. Equal values of a
    DISTINCT column must be in one part."""
    exact = all(_merges(c, inputs) for c in calls)
    return exact and not any(isinstance(inputs[a].type, _NESTED) for c in calls if c.distinct for a in c.args)


def _merges(call: AggregateCall, inputs: tuple[Field, ...]) -> bool:
    function = declared(call.function)
    if function is None or function.merging is Merging.NEVER:
        return False
    return function.merging is Merging.ALWAYS or all(
        isinstance(inputs[a].type, INTEGER_TYPES) for a in call.args
    )


def mergeable(calls: Sequence[AggregateCall]) -> bool:
    """Whether Flink can merge the accumulators of a local phase."""
    functions = [declared(c.function) for c in calls]
    return all(x is not None and x.phases.two_phase for x in functions)


def split_buckets(calls: tuple[AggregateCall, ...], keys: tuple[int, ...], config: Configuration) -> int:
    """The number of buckets in which Flink splits DISTINCT columns; 0 if it does not split."""
    if not config.read(DISTINCT_SPLIT_ENABLED) or not any(c.distinct for c in calls):
        return 0
    functions = [declared(c.function) for c in calls]
    every = all(x is not None and x.phases.split for x in functions)
    return config.read(DISTINCT_SPLIT_BUCKETS) if every and bucket_columns(calls, keys) else 0


def bucket_columns(calls: tuple[AggregateCall, ...], keys: tuple[int, ...]) -> tuple[int, ...]:
    """The columns that Flink splits by."""
    used = {a for c in calls if is_bucketed(c) for a in c.args}
    return tuple(sorted(used - set(keys)))


def is_bucketed(call: AggregateCall) -> bool:
    """Whether Flink splits ``call`` by its own column: it is DISTINCT, or MIN, MAX and the like."""
    function = declared(call.function)
    return call.distinct or (function is not None and function.phases.bucketed)


def parts_of(calls: tuple[AggregateCall, ...], inputs: tuple[Field, ...]) -> tuple[AggregateCall, ...]:
    """The calls over each part: AVG becomes a sum and a count, other calls stay."""
    return tuple(part for call in calls for part in _parts(call, inputs))


def _parts(call: AggregateCall, inputs: tuple[Field, ...]) -> tuple[AggregateCall, ...]:
    function = declared(call.function)
    if function is None or not function.parts:
        return (call,)
    integer = isinstance(inputs[call.args[0]].type, INTEGER_TYPES)
    kinds = {"COUNT": BIGINT, "$SUM0": BIGINT if integer else call.type}
    return tuple(replace(call, function=part, type=kinds[part]) for part in function.parts)


def is_averaged(node: p.PhysicalNode) -> bool:
    """Whether Flink splits ``node`` and computes averages from the halves' sums in a Calc above."""
    if not isinstance(node, p.WindowAggregate) or not node.split:
        return False
    return len(parts_of(node.calls, node.input.fields)) > len(node.calls)


def merge_function(call: AggregateCall) -> str:
    """The function that merges the results of ``call`` over parts of the rows: ``COUNT`` -> ``$SUM0``."""
    function = declared(call.function)
    return call.function if function is None else function.merged_by


def merge_calls(parts: tuple[AggregateCall, ...], first: int) -> tuple[AggregateCall, ...]:
    """The calls that merge the results of ``parts``, which begin at column ``first``."""
    return tuple(
        AggregateCall(
            function=merge_function(c),
            args=(first + i,),
            type=c.type,
            name=c.name,
            options=c.options,
            item=c.item,
        )
        for i, c in enumerate(parts)
    )


def sum_window_parts(
    whole: p.WindowAggregate, sent: p.PhysicalNode, parts: tuple[AggregateCall, ...], first: int
) -> p.PhysicalNode:
    """The result of ``whole``, computed from the results of parts in ``sent``. Fields of ``sent``: the keys,
    from column ``first`` on the ``parts``, the windows' starts if the ends do not determine them, the
    windows' ends."""
    keys, starts = len(whole.keys), needs_window_start(whole)
    by = (*range(keys), first + len(parts)) if starts else tuple(range(keys))
    properties = dict(zip(whole.properties, whole.fields[keys + len(whole.calls) :], strict=True))
    if starts:
        properties.pop("start", None)
    results, used_names = whole.fields[keys : keys + len(whole.calls)], [f.name for f in whole.fields]
    began = tuple(
        Field(free_name(sent.fields[key].name, used_names), sent.fields[key].type) for key in by[keys:]
    )
    if len(parts) > len(whole.calls):
        results = tuple(Field(free_name(f"$c{i}", used_names), part.type) for i, part in enumerate(parts))
    total = finish(
        replace(
            whole,
            fields=(*whole.fields[:keys], *began, *results, *properties.values()),
            input=sent,
            keys=by,
            calls=merge_calls(parts, first),
            properties=tuple(properties),
            time=len(sent.fields) - 1,
            attached=True,
        )
    )
    if not starts and len(parts) == len(whole.calls):
        return total
    refs = references(total.fields)
    merged = iter(refs[len(by) : len(by) + len(parts)])
    by_property = dict(zip(properties, refs[len(by) + len(parts) :], strict=True))
    if starts:
        by_property["start"] = refs[keys]
    projections = (
        *refs[:keys],
        *(_result(call, merged) for call in whole.calls),
        *(by_property[property_name] for property_name in whole.properties),
    )
    return finish(p.Calc(fields=whole.fields, input=total, projections=projections))


def needs_window_start(node: p.WindowAggregate) -> bool:
    """Whether the end of a window does not determine its start: the window is data-driven."""
    return node.window.kind.is_data_driven and not node.attached


def _result(call: AggregateCall, merged: Iterator[InputRef]) -> Expr:
    """The result of ``call`` from the next columns of ``merged``."""
    if call.function != "AVG":
        return next(merged)
    total, number = next(merged), next(merged)
    quotient = Call(type=total.type.with_nullable(True), function="/", args=(total, number))
    empty = Call(type=BOOLEAN, function="=", args=(number, Literal(type=BIGINT, value=0)))
    none = Literal(type=quotient.type, value=None)
    average = Call(type=quotient.type, function="CASE", args=(empty, none, quotient))
    return Cast(type=call.type, operand=average, implicit=True)
