"""DISTINCT in windows whose rows would go to few partitions: counted by buckets of the values, and added up.

All rows of a window without keys would go to one partition, and those of a frequent key. Numbers of distinct
values are sums over buckets of these, and so are the other calls; a bucket gives one row per window. Without
keys it is done always, with them where ``table.optimizer.distinct-agg.split.enabled`` asks for it. Only what
runs is changed: EXPLAIN shows what Flink plans, one aggregation or two, and says beside it how it runs.

Of several DISTINCT each has a copy of the rows, in which it alone finds its values; what is not DISTINCT
looks at the first. What early or late results show is added up in the same epoch, so they are right, too.

Windows that rows make have the same bounds in every bucket only if all rows of their key are there: of hot
keys each is in all of them, and counts where its values belong (``operators.buckets``, decision 054). They
are spread only where that was asked for, over few buckets.

Not spread are functions whose parts do not add up to the last digit, early or late results of windows that
cumulate, as a bucket does not know which of them others show, and those of windows that rows make where
they wait for a while: a window may have grown by then, and is another one in the sum.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace
from itertools import accumulate, chain, pairwise

from tidemill.changelog.rowkind import RowKind
from tidemill.config.emit_options import LATE_ROWS_TABLE
from tidemill.config.optimizer_options import (
    AGG_PHASE_STRATEGY,
    DISTINCT_SPLIT_BUCKETS,
    DISTINCT_SPLIT_ENABLED,
)
from tidemill.config.option import Configuration
from tidemill.operators.window.assigners.kind import WindowKind
from tidemill.physical import nodes as p
from tidemill.physical.aggregates.parts import adds_up, parts_of, starts_tell, summed
from tidemill.physical.finish import PENDING, exchange, finish, references
from tidemill.physical.names import free_name
from tidemill.physical.tree import map_up, with_inputs, with_kinds
from tidemill.plan.expressions import AggregateCall, Expr, InputRef, Literal
from tidemill.types import logical as t
from tidemill.types.logical import Field

BUCKETS = 64
"""Many more than partitions, as the hashes of a few would leave some of these without work; few enough that
the rows of all buckets are nothing beside those that are counted. A part of what the operator is: its state
is by bucket."""
OF_ROWS = 16
"""Buckets at most of windows that rows make: each of them has the bounds that all rows make."""
PHASE = "SPLIT"
"""Marks the copies of rows."""
_BOUND = t.TimestampType(precision=3, nullable=False)
_TRUE, _FALSE = (Literal(type=t.BOOLEAN, value=value) for value in (True, False))


def spread_windows(root: p.PhysicalNode, config: Configuration) -> p.PhysicalNode:
    """The plan that runs, with such aggregations as two, unless it was asked for one phase alone."""
    asked = config.read(DISTINCT_SPLIT_ENABLED)
    if not asked and config.read(AGG_PHASE_STRATEGY).upper() == "ONE_PHASE":
        return root
    buckets = config.read(DISTINCT_SPLIT_BUCKETS) if asked else BUCKETS
    keeps_late = bool(config.read(LATE_ROWS_TABLE))

    def spread(node: p.PhysicalNode) -> p.PhysicalNode:
        if not isinstance(node, p.WindowAggregate) or not (asked or _is_wanted(node)):
            return node
        return _spread(node, buckets) if _can_be_spread(node, keeps_late=keeps_late) else node

    return map_up(root, spread)


def spread_part(node: p.PhysicalNode) -> p.WindowAggregate | None:
    """What gives a row per bucket, or partition, to ``node``, which adds them up; None where it does not."""
    if not isinstance(node, p.WindowAggregate) or not isinstance(node.input, p.Exchange):
        return None
    below = _reads(node)
    return below if isinstance(below, p.WindowAggregate) and _is_part(below) else None


def _is_part(node: p.WindowAggregate) -> bool:
    return node.spread is not None or node.reuse is not None


def copies_of(part: p.WindowAggregate) -> p.Expand | None:
    """What makes the copies of rows that ``part`` counts, where several columns are DISTINCT."""
    below = _reads(part)
    return below if isinstance(below, p.Expand) and below.phase == PHASE else None


def _reads(node: p.WindowAggregate) -> p.PhysicalNode:
    """What makes the rows that it gets."""
    below = node.input
    while isinstance(below, p.Exchange):
        below = below.input
    return below


def _is_wanted(node: p.WindowAggregate) -> bool:
    """Whether it is spread unasked: all its rows would go to one partition."""
    return not node.keys and not starts_tell(node)


def _can_be_spread(node: p.WindowAggregate, *, keeps_late: bool) -> bool:
    if _is_part(node) or not isinstance(node.input, p.Exchange):
        return False
    if node.emit is not None and not node.attached and not _shows_alike(node.window.kind, node.emit):
        return False
    values = _distinct(node.calls)
    if not values or (keeps_late and (len(values) > 1 or starts_tell(node))):
        # A row that is kept because it is late is kept once, and as it came.
        return False
    return adds_up(node.calls, node.input.fields)


def _shows_alike(kind: WindowKind, emit: p.Emit) -> bool:
    """Whether the early and late results of all buckets are of the same windows, in the same epochs."""
    if kind.made_by_rows:
        return not emit.early and not emit.late
    return not kind.cumulates


def _distinct(calls: tuple[AggregateCall, ...]) -> list[tuple[int, ...]]:
    """What is DISTINCT, each once."""
    return list(dict.fromkeys(call.args for call in calls if call.distinct))


def _spread(node: p.WindowAggregate, buckets: int) -> p.PhysicalNode:
    (below,) = node.input.inputs
    calls = parts_of(node.calls, below.fields)
    if starts_tell(node):
        below, calls, spread = _everywhere(below, calls, node.time, min(buckets, OF_ROWS))
    else:
        columns, *others = _distinct(calls)
        itself = None
        if others:
            below, calls, columns = _copied(below, calls, {*node.keys, node.time})
            itself = len(below.fields) - 1
        spread = p.Spread(sets=(columns,), buckets=buckets, itself=itself)
    keys = tuple(below.fields[key] for key in node.keys)
    taken = [f.name for f in keys]
    bounds = ("start", "end") if starts_tell(node) else ("end",)
    shown = tuple(Field(free_name(f"$window_{each}", taken), _BOUND) for each in bounds)
    calls = tuple(replace(call, name=free_name(f"$c{place}", taken)) for place, call in enumerate(calls))
    part = finish(
        replace(
            node,
            fields=(*keys, *(Field(c.name, c.type) for c in calls), *shown),
            traits=PENDING,
            input=_sent(below, (*node.keys, *spread.columns)),
            calls=calls,
            properties=bounds,
            emit=node.emit and _at_once(node.emit),
            spread=spread,
        )
    )
    total = summed(node, _sent(_whole_updates(part), tuple(range(len(keys)))), calls, len(keys))
    kinds = node.traits.kinds
    if isinstance(total, p.WindowAggregate):
        return with_kinds(total, kinds)
    return with_kinds(with_inputs(total, tuple(with_kinds(i, kinds) for i in total.inputs)), kinds)


def _at_once(emit: p.Emit) -> p.Emit:
    """Every change with its epoch: what adds up waits as it is asked to."""
    return replace(emit, early=None if emit.early is None else 0, late=None)


def _whole_updates(node: p.PhysicalNode) -> p.PhysicalNode:
    """``node`` giving -U with +U."""
    kinds = node.traits.kinds
    return with_kinds(node, kinds | {RowKind.UPDATE_BEFORE} if RowKind.UPDATE_AFTER in kinds else kinds)


def _sent(node: p.PhysicalNode, keys: tuple[int, ...]) -> p.PhysicalNode:
    return with_kinds(exchange(node, keys), node.traits.kinds)


def _everywhere(
    below: p.PhysicalNode, calls: tuple[AggregateCall, ...], time: int, buckets: int
) -> tuple[p.PhysicalNode, tuple[AggregateCall, ...], p.Spread]:
    """The rows with columns of the calls' own, which have nothing in most buckets: these are told by the
    values of what is DISTINCT, or by what else is counted, or by a filter. A row without a time is in no
    window, so COUNT(*) counts times."""
    refs = references(below.fields)
    plain = [call for call in calls if not call.distinct]
    sets, filters = _distinct(calls), [call.filter for call in plain if call.filter is not None]
    counted = [call.args or (time,) for call in plain if call.filter is None]
    columns = list(chain(*sets, *counted, filters))
    taken = [f.name for f in below.fields]
    fields = [
        Field(free_name(f"$d{i}", taken), refs[c].type.with_nullable(True)) for i, c in enumerate(columns)
    ]
    calc = p.Calc(
        fields=(*below.fields, *fields),
        traits=PENDING,
        input=below,
        projections=(*refs, *(refs[column] for column in columns)),
    )
    *places, flags = _places([*sets, *counted, filters], len(refs))
    values, others, flag = places[: len(sets)], iter(places[len(sets) :]), iter(flags)
    own = dict(zip(sets, values, strict=True))

    def over(call: AggregateCall) -> AggregateCall:
        if call.distinct:
            return replace(call, args=own[call.args])
        return replace(call, args=next(others)) if call.filter is None else replace(call, filter=next(flag))

    with_first = tuple(chain(*places[len(sets) :]))
    spread = p.Spread(sets=tuple(values), with_first=with_first, flags=flags, buckets=buckets)
    return with_kinds(finish(calc), below.traits.kinds), tuple(map(over, calls)), spread


def _places(groups: Iterable[Collection[int]], first: int) -> list[tuple[int, ...]]:
    """Of the columns of each group, one group behind the other from ``first`` on."""
    ends = accumulate(map(len, groups), initial=first)
    return [tuple(range(*bounds)) for bounds in pairwise(ends)]


def _copied(
    below: p.PhysicalNode, calls: tuple[AggregateCall, ...], kept: set[int]
) -> tuple[p.PhysicalNode, tuple[AggregateCall, ...], tuple[int, ...]]:
    """A copy of each row for each that is DISTINCT, the calls over them, and the columns that copies are
    spread by: those that are DISTINCT, NULL in the copies of others. The last column is true in one copy of
    each row. ``kept``: what all copies need."""
    sets = _distinct(calls)
    filters = list(dict.fromkeys(call.filter for call in calls if not call.distinct))
    width = len(below.fields)
    places = {args: width + sum(map(len, sets[:i])) for i, args in enumerate(sets)}
    first = width + sum(map(len, sets))
    plain = {a for c in calls if not c.distinct for a in c.args}
    plain -= kept | {c.filter for c in calls if c.filter is not None}
    refs = references(below.fields)
    fields = [
        Field(f.name, f.type.with_nullable(f.type.nullable or i in plain)) for i, f in enumerate(below.fields)
    ]
    values = [Field(f"$d{i}", _null(refs[a]).type) for i, a in enumerate(chain.from_iterable(sets))]
    flags = [Field(f"$g{i}", t.BOOLEAN) for i in range(len(filters))]
    taken = [f.name for f in fields]
    flags.append(Field("$itself", t.BOOLEAN))
    fields += [Field(free_name(f.name, taken), f.type) for f in (*values, *flags)]

    def copy(number: int) -> Iterator[Expr]:
        for i, ref in enumerate(refs):
            yield _null(ref) if number and i in plain else ref
        for i, args in enumerate(sets):
            yield from (refs[a] if i == number else _null(refs[a]) for a in args)
        for each in filters:
            yield _FALSE if number else _TRUE if each is None else refs[each]
        yield _FALSE if number else _TRUE

    projections = tuple(tuple(copy(number)) for number in range(len(sets)))
    expand = p.Expand(fields=tuple(fields), traits=PENDING, input=below, projections=projections, phase=PHASE)
    own = tuple(
        replace(call, args=tuple(range(places[call.args], places[call.args] + len(call.args))))
        if call.distinct
        else replace(call, filter=first + filters.index(call.filter))
        for call in calls
    )
    return with_kinds(finish(expand), below.traits.kinds), own, tuple(range(width, first))


def _null(column: InputRef) -> Literal:
    return Literal(type=column.type.with_nullable(True), value=None)
