"""Aggregation by parts: what is computed of each part of the rows, and how results come of these."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from tidemill.config.optimizer_options import DISTINCT_SPLIT_BUCKETS, DISTINCT_SPLIT_ENABLED
from tidemill.config.option import Configuration
from tidemill.operators.aggregates.declaration import Merging
from tidemill.operators.aggregates.registry import declared
from tidemill.physical import nodes as p
from tidemill.physical.finish import PENDING, finish, references
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


def adds_up(calls: tuple[AggregateCall, ...], inputs: tuple[Field, ...]) -> bool:
    """Whether the calls over parts of the rows give, to the last digit, what they give over all of them, if
    all equal values of what is DISTINCT are in one part."""
    exact = all(_merges(c, inputs) for c in calls)
    return exact and not any(isinstance(inputs[a].type, _NESTED) for c in calls if c.distinct for a in c.args)


def _merges(call: AggregateCall, inputs: tuple[Field, ...]) -> bool:
    found = declared(call.function)
    if found is None or found.merging is Merging.NEVER:
        return False
    return found.merging is Merging.ALWAYS or all(
        isinstance(inputs[a].type, INTEGER_TYPES) for a in call.args
    )


def mergeable(calls: Sequence[AggregateCall]) -> bool:
    """Whether Flink can put together what two phases accumulate."""
    found = [declared(c.function) for c in calls]
    return all(x is not None and x.phases.two_phase for x in found)


def split_buckets(calls: tuple[AggregateCall, ...], keys: tuple[int, ...], config: Configuration) -> int:
    """In how many buckets Flink splits what is DISTINCT; 0 where it splits nothing."""
    if not config.read(DISTINCT_SPLIT_ENABLED) or not any(c.distinct for c in calls):
        return 0
    found = [declared(c.function) for c in calls]
    every = all(x is not None and x.phases.split for x in found)
    return config.read(DISTINCT_SPLIT_BUCKETS) if every and bucket_columns(calls, keys) else 0


def bucket_columns(calls: tuple[AggregateCall, ...], keys: tuple[int, ...]) -> tuple[int, ...]:
    """The columns that Flink splits by."""
    used = {a for c in calls if is_bucketed(c) for a in c.args}
    return tuple(sorted(used - set(keys)))


def is_bucketed(call: AggregateCall) -> bool:
    """Whether Flink splits ``call`` by its own column: it is DISTINCT, or MIN, MAX and the like."""
    found = declared(call.function)
    return call.distinct or (found is not None and found.phases.bucketed)


def parts_of(calls: tuple[AggregateCall, ...], inputs: tuple[Field, ...]) -> tuple[AggregateCall, ...]:
    """What is computed of each part: the calls, of AVG a sum and a count."""
    return tuple(part for call in calls for part in _parts(call, inputs))


def _parts(call: AggregateCall, inputs: tuple[Field, ...]) -> tuple[AggregateCall, ...]:
    found = declared(call.function)
    if found is None or not found.parts:
        return (call,)
    integer = isinstance(inputs[call.args[0]].type, INTEGER_TYPES)
    kinds = {"COUNT": BIGINT, "$SUM0": BIGINT if integer else call.type}
    return tuple(replace(call, function=part, type=kinds[part]) for part in found.parts)


def is_averaged(node: p.PhysicalNode) -> bool:
    """Whether Flink splits ``node``, and makes averages of the halves' sums in a Calc above."""
    if not isinstance(node, p.WindowAggregate) or not node.split:
        return False
    return len(parts_of(node.calls, node.input.fields)) > len(node.calls)


def merged_by(call: AggregateCall) -> str:
    """The function that puts results of ``call`` over parts of the rows together: ``COUNT`` -> ``$SUM0``."""
    found = declared(call.function)
    return call.function if found is None else found.merged_by


def merging(parts: tuple[AggregateCall, ...], first: int) -> tuple[AggregateCall, ...]:
    """The calls over what ``parts`` give, from column ``first`` on."""
    return tuple(
        AggregateCall(
            function=merged_by(c),
            args=(first + i,),
            type=c.type,
            name=c.name,
            options=c.options,
        )
        for i, c in enumerate(parts)
    )


def summed(
    whole: p.WindowAggregate, sent: p.PhysicalNode, parts: tuple[AggregateCall, ...], first: int
) -> p.PhysicalNode:
    """What ``whole`` gives, as sums of what is ``sent`` of its windows: the keys, from column ``first`` on
    the ``parts``, and last the windows' ends; before these their starts where the ends do not tell them."""
    keys, starts = len(whole.keys), starts_tell(whole)
    by = (*range(keys), first + len(parts)) if starts else tuple(range(keys))
    shown = dict(zip(whole.properties, whole.fields[keys + len(whole.calls) :], strict=True))
    if starts:
        shown.pop("start", None)
    results, taken = whole.fields[keys : keys + len(whole.calls)], [f.name for f in whole.fields]
    began = tuple(Field(free_name(sent.fields[key].name, taken), sent.fields[key].type) for key in by[keys:])
    if len(parts) > len(whole.calls):
        results = tuple(Field(free_name(f"$c{i}", taken), part.type) for i, part in enumerate(parts))
    total = finish(
        replace(
            whole,
            fields=(*whole.fields[:keys], *began, *results, *shown.values()),
            traits=PENDING,
            input=sent,
            keys=by,
            calls=merging(parts, first),
            properties=tuple(shown),
            time=len(sent.fields) - 1,
            attached=True,
        )
    )
    if not starts and len(parts) == len(whole.calls):
        return total
    refs = references(total.fields)
    merged = iter(refs[len(by) : len(by) + len(parts)])
    told = dict(zip(shown, refs[len(by) + len(parts) :], strict=True))
    if starts:
        told["start"] = refs[keys]
    projections = (
        *refs[:keys],
        *(_result(call, merged) for call in whole.calls),
        *(told[each] for each in whole.properties),
    )
    return finish(p.Calc(fields=whole.fields, traits=PENDING, input=total, projections=projections))


def starts_tell(node: p.WindowAggregate) -> bool:
    """Whether the end of a window does not say where it began: rows make it."""
    return node.window.kind.made_by_rows and not node.attached


def _result(call: AggregateCall, merged: Iterator[InputRef]) -> Expr:
    """``call`` of what the next of ``merged`` give."""
    if call.function != "AVG":
        return next(merged)
    total, number = next(merged), next(merged)
    quotient = Call(type=total.type.with_nullable(True), function="/", args=(total, number))
    empty = Call(type=BOOLEAN, function="=", args=(number, Literal(type=BIGINT, value=0)))
    none = Literal(type=quotient.type, value=None)
    found = Call(type=quotient.type, function="CASE", args=(empty, none, quotient))
    return Cast(type=call.type, operand=found, implicit=True)
