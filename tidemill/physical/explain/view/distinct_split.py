"""Splitting an aggregation with DISTINCT: a partial one per bucket of the distinct column, a final one.

For several such columns an Expand repeats each row per column, with the other buckets NULL and ``$e``
saying whose copy it is; calls then count only their own copies. MIN, MAX and the like get a bucket of
their column too, so that their work spreads as well. It runs as one operator with a local phase, or by window
as ``aggregates.salted_distinct`` spreads it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from tidemill.physical import nodes as p
from tidemill.physical.aggregates.parts import bucket_columns, is_bucketed, merging, parts_of, summed
from tidemill.physical.explain.view.nodes import (
    PhasedGroupAggregate,
    phased_group,
    phased_window,
)
from tidemill.physical.finish import PENDING, Node, exchange, finish, references
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
    merged = tuple(replace(call, name=f"$f{len(keys) + i}") for i, call in enumerate(merging(calls, first)))
    final = phased_group(whole, whole)
    return replace(final, input=_sent(partial, keys), keys=keys, calls=merged, phase="FINAL")


def window_halves(whole: p.WindowAggregate) -> p.PhysicalNode:
    """As ``halves``; above them a Calc that makes the averages of their sums, if there are any."""
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
        input=_sent(ready.node, keys),
        keys=keys,
        calls=tuple(replace(c, name=name) for c, name in zip(ready.calls, names, strict=True)),
        properties=("start", "end"),
        whole=None,
    )
    sent = exchange(finish(partial), tuple(range(len(whole.keys))))
    return summed(phased_window(whole, whole), sent, parts, len(keys))


def _bucketed(
    child: p.PhysicalNode, calls: tuple[AggregateCall, ...], keys: tuple[int, ...], buckets: int
) -> Split:
    """What the partial aggregation of ``calls`` by ``keys`` is over."""
    columns = bucket_columns(calls, keys)
    made = _with_buckets(child, columns, buckets)
    ready = Split(made, calls, tuple(range(len(child.fields), len(made.fields))))
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
    return _finished(p.Calc(fields=fields, traits=PENDING, input=child, projections=projections))


def _fresh(child: p.PhysicalNode, count: int) -> list[str]:
    """Names that no column has: what is computed below has names of the same kind."""
    first, taken = len(child.fields), {f.name for f in child.fields}
    names = []
    for number in range(first, first + count):
        known = (f"$f{number}", *(f"$f{number}_{i}" for i in range(len(taken))))
        names.append(next(name for name in known if name not in taken))
    return names


def _expanded(ready: Split, columns: tuple[int, ...]) -> Split:
    """One copy of a row per bucket column (and one for the calls without any)."""
    place = {column: i for i, column in enumerate(columns)}
    full = (1 << len(columns)) - 1
    owners = tuple(_owner(c, place, full) for c in ready.calls)
    fields = (*ready.node.fields, Field("$e", INT))
    rows = tuple(_copy(ready, number, full) for number in sorted(set(owners)))
    expand = _finished(p.Expand(fields=fields, traits=PENDING, input=ready.node, projections=rows))
    return _flagged(ready, expand, owners)


def _owner(call: AggregateCall, place: dict[int, int], full: int) -> int:
    """The ``$e`` of the copies that ``call`` looks at: a bit is set where a bucket is NULL."""
    own = [place[a] for a in call.args if a in place] if is_bucketed(call) else []
    for index in own:
        full &= ~(1 << (len(place) - 1 - index))
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
            given = InputRef(type=expand.fields[call.filter].type, index=call.filter)
            own = Call(type=BOOLEAN, function="AND", args=(own, given))
        if own not in flags:
            flags[own] = base + len(flags)
            taken = sum(1 for x in names if x.startswith(f"$g_{owner}"))
            names.append(f"$g_{owner}" + (str(taken - 1) if taken else ""))
        calls.append(replace(call, filter=flags[own]))
    fields = (*expand.fields[:-1], *(Field(x, BOOLEAN) for x in names))
    projections = (*references(expand.fields[:-1]), *flags)
    calc = p.Calc(fields=fields, traits=PENDING, input=expand, projections=projections)
    return Split(_finished(calc), tuple(calls), ready.buckets)


def _partial(whole: p.GroupAggregate, ready: Split) -> PhasedGroupAggregate:
    keys = (*whole.keys, *ready.buckets)
    key_fields = [ready.node.fields[k] for k in keys]
    taken = {f.name for f in key_fields}
    names = [_distinct_name(f"$f{len(keys) + i}", taken) for i in range(len(ready.calls))]
    calls = tuple(replace(c, name=name) for c, name in zip(ready.calls, names, strict=True))
    return _finished(
        PhasedGroupAggregate(
            fields=(*key_fields, *(Field(c.name, c.type) for c in calls)),
            traits=PENDING,
            input=_sent(ready.node, keys),
            keys=keys,
            calls=calls,
            phase="PARTIAL",
        )
    )


def _distinct_name(name: str, taken: set[str]) -> str:
    return f"{name}_0" if name in taken else name


def _sent(node: p.PhysicalNode, keys: tuple[int, ...]) -> p.PhysicalNode:
    return with_kinds(exchange(node, keys), node.traits.kinds)


def _finished(node: Node) -> Node:
    """With its traits: an aggregation above wants -U with every +U."""
    made = finish(node)
    if not updates(made):
        return made
    return replace(made, traits=replace(made.traits, kinds=made.traits.kinds | BEFORE))
