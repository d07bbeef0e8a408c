"""Splits an aggregation with DISTINCT into a partial one per bucket of the distinct column, and a final one.

For several distinct columns an Expand copies each row per column. In a copy the other buckets are NULL, and
``$e`` identifies the copy; a call counts only its own copies. MIN, MAX and similar calls also get a bucket of
their column, so their work is spread, too. It runs as one operator with a local phase, or for windows as
``aggregates.salted_distinct`` spreads it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from tidemill.physical import nodes as p
from tidemill.physical.aggregates.parts import (
    bucket_columns,
    is_bucketed,
    merge_calls,
    parts_of,
    sum_window_parts,
)
from tidemill.physical.explain.view.nodes import (
    PhasedGroupAggregate,
    phased_group,
    phased_window,
)
from tidemill.physical.finish import Node, exchange, finish, references
from tidemill.physical.traits.changelog_mode import BEFORE, updates
from tidemill.physical.tree import with_kinds
from tidemill.plan.expressions import AggregateCall, Call, Expr, InputRef, Literal
from tidemill.types import logical as t
from tidemill.types.logical import BOOLEAN, INT, Field


@dataclass(frozen=True, slots=True)
class Split:
    """``node`` feeds the partial aggregation; ``calls`` are its calls, ``buckets`` its extra keys."""

    node: p.PhysicalNode
    calls: tuple[AggregateCall, ...]
    buckets: tuple[int, ...]


def halves(whole: p.GroupAggregate) -> PhasedGroupAggregate:
    """The FINAL half of ``whole``, over the PARTIAL one."""
    calls = parts_of(whole.calls, whole.source.fields)
    partial = _partial(whole, _bucketed(whole.source, calls, whole.keys, whole.split))
    keys = tuple(range(len(whole.keys)))
    first = len(partial.fields) - len(calls)
    merged = tuple(
        replace(call, name=f"$f{len(keys) + i}") for i, call in enumerate(merge_calls(calls, first))
    )
    final = phased_group(whole, whole)
    return replace(final, input=_exchanged(partial, keys), keys=keys, calls=merged, phase="FINAL")


def window_halves(whole: p.WindowAggregate) -> p.PhysicalNode:
    """As ``halves``, with a Calc above that computes averages from sums, if there are averages."""
    source = whole.source
    parts = parts_of(whole.calls, source.fields)
    ready = _bucketed(source, parts, whole.keys, whole.split)
    inputs, keys = ready.node.fields, (*whole.keys, *ready.buckets)
    columns = [*(inputs[k] for k in keys), *(Field(f"$c{i}", c.type) for i, c in enumerate(ready.calls))]
    bounds = [
        Field(f"$window_{role}", t.TimestampType(precision=3, nullable=False)) for role in ("start", "end")
    ]
    names = [f.name for f in columns[len(keys) :]]
    partial = replace(
        phased_window(whole, whole),
        fields=(*columns, *bounds),
        input=_exchanged(ready.node, keys),
        keys=keys,
        calls=tuple(replace(c, name=name) for c, name in zip(ready.calls, names, strict=True)),
        properties=("start", "end"),
        whole=None,
    )
    sent = exchange(finish(partial), tuple(range(len(whole.keys))))
    return sum_window_parts(phased_window(whole, whole), sent, parts, len(keys))


def _bucketed(
    child: p.PhysicalNode, calls: tuple[AggregateCall, ...], keys: tuple[int, ...], buckets: int
) -> Split:
    """The input, calls and buckets of the partial aggregation."""
    columns = bucket_columns(calls, keys)
    with_buckets = _with_buckets(child, columns, buckets)
    ready = Split(with_buckets, calls, tuple(range(len(child.fields), len(with_buckets.fields))))
    return _expanded(ready, columns) if len(columns) > 1 else ready


def _with_buckets(child: p.PhysicalNode, columns: tuple[int, ...], buckets: int) -> p.PhysicalNode:
    count = Literal(type=INT, value=buckets)
    names = _fresh(child, len(columns))
    codes = []
    for column in columns:
        ref = InputRef(type=child.fields[column].type, index=column)
        code = Call(type=INT, function="HASH_CODE", args=(ref,))
        codes.append(Call(type=INT, function="MOD", args=(code, count)))
    fields = (*child.fields, *(Field(name, INT) for name in names))
    projections = (*references(child.fields), *codes)
    return _finished(p.Calc(fields=fields, input=child, projections=projections))


def _fresh(child: p.PhysicalNode, count: int) -> list[str]:
    """Unused names: columns computed below have names of the same form."""
    first, used_names = len(child.fields), {f.name for f in child.fields}
    names = []
    for number in range(first, first + count):
        candidates = (f"$f{number}", *(f"$f{number}_{i}" for i in range(len(used_names))))
        names.append(next(name for name in candidates if name not in used_names))
    return names


def _expanded(ready: Split, columns: tuple[int, ...]) -> Split:
    """One copy of a row per bucket column (and one for the calls without any)."""
    bucket_index = {column: i for i, column in enumerate(columns)}
    full = (1 << len(columns)) - 1
    owners = tuple(_owner(c, bucket_index, full) for c in ready.calls)
    fields = (*ready.node.fields, Field("$e", INT))
    rows = tuple(_copy(ready, number, full) for number in sorted(set(owners)))
    expand = _finished(p.Expand(fields=fields, input=ready.node, projections=rows))
    return _flagged(ready, expand, owners)


def _owner(call: AggregateCall, bucket_index: dict[int, int], full: int) -> int:
    """The ``$e`` of the copies that ``call`` reads: a bit is set if its bucket is NULL."""
    own = [bucket_index[a] for a in call.args if a in bucket_index] if is_bucketed(call) else []
    for index in own:
        full &= ~(1 << (len(bucket_index) - 1 - index))
    return full


def _copy(ready: Split, number: int, full: int) -> tuple[Expr, ...]:
    refs: list[Expr] = list(references(ready.node.fields))
    for i, bucket in enumerate(ready.buckets):
        if number & (1 << (len(ready.buckets) - 1 - i)):
            refs[bucket] = Literal(type=INT, value=None)
    return (*refs, Literal(type=INT, value=number))


def _flagged(ready: Split, expand: p.PhysicalNode, owners: tuple[int, ...]) -> Split:
    """A Calc with one flag per different condition, and the calls filtered by their flags."""
    number = InputRef(type=INT, index=len(expand.fields) - 1)
    flags: dict[Expr, int] = {}
    names: list[str] = []
    calls = []
    base = len(expand.fields) - 1
    for call, owner in zip(ready.calls, owners, strict=True):
        own: Expr = Call(type=BOOLEAN, function="=", args=(number, Literal(type=INT, value=owner)))
        if call.filter is not None:
            condition = InputRef(type=expand.fields[call.filter].type, index=call.filter)
            own = Call(type=BOOLEAN, function="AND", args=(own, condition))
        if own not in flags:
            flags[own] = base + len(flags)
            repeats = sum(1 for x in names if x.startswith(f"$g_{owner}"))
            names.append(f"$g_{owner}" + (str(repeats - 1) if repeats else ""))
        calls.append(replace(call, filter=flags[own]))
    fields = (*expand.fields[:-1], *(Field(x, BOOLEAN) for x in names))
    projections = (*references(expand.fields[:-1]), *flags)
    calc = p.Calc(fields=fields, input=expand, projections=projections)
    return Split(_finished(calc), tuple(calls), ready.buckets)


def _partial(whole: p.GroupAggregate, ready: Split) -> PhasedGroupAggregate:
    keys = (*whole.keys, *ready.buckets)
    key_fields = [ready.node.fields[k] for k in keys]
    used_names = {f.name for f in key_fields}
    names = [_distinct_name(f"$f{len(keys) + i}", used_names) for i in range(len(ready.calls))]
    calls = tuple(replace(c, name=name) for c, name in zip(ready.calls, names, strict=True))
    return _finished(
        PhasedGroupAggregate(
            fields=(*key_fields, *(Field(c.name, c.type) for c in calls)),
            input=_exchanged(ready.node, keys),
            keys=keys,
            calls=calls,
            phase="PARTIAL",
        )
    )


def _distinct_name(name: str, used_names: set[str]) -> str:
    return f"{name}_0" if name in used_names else name


def _exchanged(node: p.PhysicalNode, keys: tuple[int, ...]) -> p.PhysicalNode:
    return with_kinds(exchange(node, keys), node.traits.kinds)


def _finished(node: Node) -> Node:
    """``node`` with its traits, and a -U for every +U, which an aggregation above needs."""
    finished = finish(node)
    if not updates(finished):
        return finished
    return replace(finished, traits=replace(finished.traits, kinds=finished.traits.kinds | BEFORE))
