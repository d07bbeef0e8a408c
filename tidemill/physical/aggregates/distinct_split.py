"""Splitting an aggregation with DISTINCT: a partial one per bucket of the distinct column, a final one.

For several such columns an Expand repeats each row per column, with the other buckets NULL and ``$e``
saying whose copy it is; calls then count only their own copies. MIN, MAX and the like get a bucket of
their column too, so that their work spreads as well. The nodes show what Flink would do; ``core`` on
the final one keeps the aggregation whole, and execution does not follow them: GROUP BY has one operator with
a local phase, windows are spread by ``salted_distinct``.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from tidemill.config.optimizer_options import DISTINCT_SPLIT_BUCKETS, DISTINCT_SPLIT_ENABLED
from tidemill.config.option import Configuration
from tidemill.operators.aggregates.registry import declared
from tidemill.physical import nodes as p
from tidemill.physical.aggregates.parts import merging, parts_of
from tidemill.physical.finish import PENDING, exchange, finish, references
from tidemill.plan import nodes as n
from tidemill.plan.expressions import AggregateCall, Call, Expr, InputRef, Literal
from tidemill.types.logical import BOOLEAN, INT, Field

PHASE = "SPLIT"


def can_split(calls: tuple[AggregateCall, ...], keys: tuple[int, ...], config: Configuration) -> bool:
    """Whether Flink splits them."""
    if not config.read(DISTINCT_SPLIT_ENABLED) or not any(c.distinct for c in calls):
        return False
    found = [declared(c.function) for c in calls]
    every = all(x is not None and x.phases.split for x in found)
    return every and bool(_bucket_columns(calls, keys))


def _bucket_columns(calls: tuple[AggregateCall, ...], keys: tuple[int, ...]) -> tuple[int, ...]:
    used = {a for c in calls if c.distinct or _is_bucketed(c) for a in c.args}
    return tuple(sorted(used - set(keys)))


def _is_bucketed(call: AggregateCall) -> bool:
    found = declared(call.function)
    return found is not None and found.phases.bucketed


@dataclass(frozen=True, slots=True)
class Split:
    """``node`` feeds the partial aggregation; ``calls`` are its calls, ``buckets`` its extra keys."""

    node: p.PhysicalNode
    calls: tuple[AggregateCall, ...]
    buckets: tuple[int, ...]


def split(
    node: n.Aggregate, child: p.PhysicalNode, core: p.AggregateCore, config: Configuration
) -> p.PhysicalNode:
    """The two aggregations of ``node`` over ``child``."""
    calls = parts_of(node.calls, child.fields)
    ready = bucketed(child, calls, node.keys, config)
    return _final(node, _partial(node, ready), calls, core)


def bucketed(
    child: p.PhysicalNode, calls: tuple[AggregateCall, ...], keys: tuple[int, ...], config: Configuration
) -> Split:
    """What the partial aggregation of ``calls`` by ``keys`` is over."""
    columns = _bucket_columns(calls, keys)
    made = _with_buckets(child, columns, config.read(DISTINCT_SPLIT_BUCKETS))
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
    return finish(p.Calc(fields=fields, traits=PENDING, input=child, projections=projections, phase=PHASE))


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
    ids = sorted(set(owners))
    fields = (*ready.node.fields, Field("$e", INT))
    rows = tuple(_copy(ready, number, full) for number in ids)
    expand = finish(p.Expand(fields=fields, traits=PENDING, input=ready.node, projections=rows, phase=PHASE))
    return _flagged(ready, expand, owners)


def _owner(call: AggregateCall, place: dict[int, int], full: int) -> int:
    """The ``$e`` of the copies that ``call`` looks at: a bit is set where a bucket is NULL."""
    own = [place[a] for a in call.args if a in place] if call.distinct or _is_bucketed(call) else []
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
    calc = p.Calc(fields=fields, traits=PENDING, input=expand, projections=projections, phase=PHASE)
    return Split(finish(calc), tuple(calls), ready.buckets)


def _partial(node: n.Aggregate, ready: Split) -> p.PhysicalNode:
    keys = (*node.keys, *ready.buckets)
    key_fields = [ready.node.fields[k] for k in keys]
    taken = {f.name for f in key_fields}
    names = [_distinct_name(f"$f{len(keys) + i}", taken) for i in range(len(ready.calls))]
    calls = tuple(replace(c, name=name) for c, name in zip(ready.calls, names, strict=True))
    return finish(
        p.GroupAggregate(
            fields=(*key_fields, *(Field(c.name, c.type) for c in calls)),
            traits=PENDING,
            input=exchange(ready.node, keys),
            keys=keys,
            calls=calls,
            phase="PARTIAL",
        )
    )


def _distinct_name(name: str, taken: set[str]) -> str:
    return f"{name}_0" if name in taken else name


def _final(
    node: n.Aggregate, partial: p.PhysicalNode, calls: tuple[AggregateCall, ...], core: p.AggregateCore
) -> p.PhysicalNode:
    keys = tuple(range(len(node.keys)))
    first = len(partial.fields) - len(calls)
    merged = tuple(replace(call, name=f"$f{len(keys) + i}") for i, call in enumerate(merging(calls, first)))
    return finish(
        p.GroupAggregate(
            fields=node.fields,
            traits=PENDING,
            input=exchange(partial, keys),
            keys=keys,
            calls=merged,
            phase="FINAL",
            core=core,
        )
    )
