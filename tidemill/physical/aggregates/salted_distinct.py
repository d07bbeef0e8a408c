"""DISTINCT in windows of few keys: counts per bucket of the values, and adds the buckets up.

All rows of a window without keys, or of a hot key, would go to one partition. So rows are spread over buckets
by their distinct value. Each bucket gives one row per window, and a second aggregation adds the rows up.
Windows without keys are always spread, others if ``table.optimizer.distinct-agg.split.enabled`` is set.
EXPLAIN shows Flink's plan of one or two aggregations, and says beside it how they run.

Several DISTINCT calls each get a copy of the rows, spread by their own column. Calls without DISTINCT read
the first copy. Early and late results are added up in the same epoch, so they are right, too.

A data-driven window has the same bounds in every bucket only if each bucket gets all rows of the key. So
every bucket gets all rows of a hot key, and counts those whose values belong to it (``operators.buckets``,
decision 054). Such windows are only spread on request, over few buckets.

Three cases are not spread:

- functions whose parts do not add up to the last digit;
- early or late results of cumulating windows: a bucket does not know which windows other buckets emit;
- delayed early or late results of data-driven windows: a window may have grown into another one by then.
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
from tidemill.physical.aggregates.parts import is_additive, needs_window_start, parts_of, sum_window_parts
from tidemill.physical.finish import exchange, finish, references
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
    """Splits such aggregations in two, unless the options ask for one phase."""
    is_requested = config.read(DISTINCT_SPLIT_ENABLED)
    if not is_requested and config.read(AGG_PHASE_STRATEGY).upper() == "ONE_PHASE":
        return root
    buckets = config.read(DISTINCT_SPLIT_BUCKETS) if is_requested else BUCKETS
    keeps_late = bool(config.read(LATE_ROWS_TABLE))

    def spread(node: p.PhysicalNode) -> p.PhysicalNode:
        if not isinstance(node, p.WindowAggregate) or not (is_requested or _is_spread_by_default(node)):
            return node
        return _spread(node, buckets) if _can_be_spread(node, keeps_late=keeps_late) else node

    return map_up(root, spread)


def bucket_part(node: p.PhysicalNode) -> p.WindowAggregate | None:
    """The aggregation below ``node`` that gives a row per bucket; None if ``node`` adds no buckets up."""
    if not isinstance(node, p.WindowAggregate) or not isinstance(node.input, p.Exchange):
        return None
    below = _row_source(node)
    return below if isinstance(below, p.WindowAggregate) and _is_part(below) else None


def _is_part(node: p.WindowAggregate) -> bool:
    return node.spread is not None or node.reuse is not None


def copies_of(part: p.WindowAggregate) -> p.Expand | None:
    """The Expand that copies rows for ``part``, if several columns are DISTINCT; otherwise None."""
    below = _row_source(part)
    return below if isinstance(below, p.Expand) and below.phase == PHASE else None


def _row_source(node: p.WindowAggregate) -> p.PhysicalNode:
    """The node that makes the rows which ``node`` reads."""
    below = node.input
    while isinstance(below, p.Exchange):
        below = below.input
    return below


def _is_spread_by_default(node: p.WindowAggregate) -> bool:
    """Whether it is spread without an option: all its rows would go to one partition."""
    return not node.keys and not needs_window_start(node)


def _can_be_spread(node: p.WindowAggregate, *, keeps_late: bool) -> bool:
    if _is_part(node) or not isinstance(node.input, p.Exchange):
        return False
    if (
        node.emit is not None
        and not node.attached
        and not _emits_alike_in_buckets(node.window.kind, node.emit)
    ):
        return False
    values = _distinct_arguments(node.calls)
    if not values or (keeps_late and (len(values) > 1 or needs_window_start(node))):
        # A late row that is kept is kept once, and unchanged.
        return False
    return is_additive(node.calls, node.input.fields)


def _emits_alike_in_buckets(kind: WindowKind, emit: p.Emit) -> bool:
    """Whether all buckets emit early and late results of the same windows in the same epochs."""
    if kind.is_data_driven:
        return not emit.early and not emit.late
    return not kind.cumulates


def _distinct_arguments(calls: tuple[AggregateCall, ...]) -> list[tuple[int, ...]]:
    """The arguments of DISTINCT calls, each once."""
    return list(dict.fromkeys(call.args for call in calls if call.distinct))


def _spread(node: p.WindowAggregate, buckets: int) -> p.PhysicalNode:
    (below,) = node.input.inputs
    calls = parts_of(node.calls, below.fields)
    if needs_window_start(node):
        below, calls, spread = _everywhere(below, calls, node.time, min(buckets, OF_ROWS))
    else:
        columns, *others = _distinct_arguments(calls)
        itself = None
        if others:
            below, calls, columns = _copied(below, calls, {*node.keys, node.time})
            itself = len(below.fields) - 1
        spread = p.Spread(sets=(columns,), buckets=buckets, itself=itself)
    keys = tuple(below.fields[key] for key in node.keys)
    used_names = [f.name for f in keys]
    bounds = ("start", "end") if needs_window_start(node) else ("end",)
    bound_fields = tuple(Field(free_name(f"$window_{each}", used_names), _BOUND) for each in bounds)
    calls = tuple(
        replace(call, name=free_name(f"$c{number}", used_names)) for number, call in enumerate(calls)
    )
    part = finish(
        replace(
            node,
            fields=(*keys, *(Field(c.name, c.type) for c in calls), *bound_fields),
            input=_exchanged(below, (*node.keys, *spread.columns)),
            calls=calls,
            properties=bounds,
            emit=node.emit and _emitting_every_change(node.emit),
            spread=spread,
        )
    )
    total = sum_window_parts(
        node, _exchanged(_whole_updates(part), tuple(range(len(keys)))), calls, len(keys)
    )
    kinds = node.traits.kinds
    if isinstance(total, p.WindowAggregate):
        return with_kinds(total, kinds)
    return with_kinds(with_inputs(total, tuple(with_kinds(i, kinds) for i in total.inputs)), kinds)


def _emitting_every_change(emit: p.Emit) -> p.Emit:
    """The emit options of the buckets: every change in its epoch. The upper aggregation applies the
    delays."""
    return replace(emit, early=None if emit.early is None else 0, late=None)


def _whole_updates(node: p.PhysicalNode) -> p.PhysicalNode:
    """``node`` with a -U for every +U."""
    kinds = node.traits.kinds
    return with_kinds(node, kinds | {RowKind.UPDATE_BEFORE} if RowKind.UPDATE_AFTER in kinds else kinds)


def _exchanged(node: p.PhysicalNode, keys: tuple[int, ...]) -> p.PhysicalNode:
    return with_kinds(exchange(node, keys), node.traits.kinds)


def _everywhere(
    below: p.PhysicalNode, calls: tuple[AggregateCall, ...], time: int, buckets: int
) -> tuple[p.PhysicalNode, tuple[AggregateCall, ...], p.Spread]:
    """Rows with extra columns for the calls, which are NULL or false in most buckets. The bucket follows from
    the DISTINCT values, or from the other counted columns, or from a filter. COUNT(*) counts times, because a
    row without a time is in no window."""
    refs = references(below.fields)
    plain = [call for call in calls if not call.distinct]
    sets, filters = _distinct_arguments(calls), [call.filter for call in plain if call.filter is not None]
    counted = [call.args or (time,) for call in plain if call.filter is None]
    columns = list(chain(*sets, *counted, filters))
    used_names = [f.name for f in below.fields]
    fields = [
        Field(free_name(f"$d{i}", used_names), refs[c].type.with_nullable(True))
        for i, c in enumerate(columns)
    ]
    calc = p.Calc(
        fields=(*below.fields, *fields),
        input=below,
        projections=(*refs, *(refs[column] for column in columns)),
    )
    *column_groups, flags = _consecutive_indexes([*sets, *counted, filters], len(refs))
    values, others, flag = column_groups[: len(sets)], iter(column_groups[len(sets) :]), iter(flags)
    own = dict(zip(sets, values, strict=True))

    def over(call: AggregateCall) -> AggregateCall:
        if call.distinct:
            return replace(call, args=own[call.args])
        return replace(call, args=next(others)) if call.filter is None else replace(call, filter=next(flag))

    with_first = tuple(chain(*column_groups[len(sets) :]))
    spread = p.Spread(sets=tuple(values), with_first=with_first, flags=flags, buckets=buckets)
    return with_kinds(finish(calc), below.traits.kinds), tuple(map(over, calls)), spread


def _consecutive_indexes(groups: Iterable[Collection[int]], first: int) -> list[tuple[int, ...]]:
    """Consecutive column indexes from ``first`` on, in groups as long as ``groups``."""
    ends = accumulate(map(len, groups), initial=first)
    return [tuple(range(*bounds)) for bounds in pairwise(ends)]


def _copied(
    below: p.PhysicalNode, calls: tuple[AggregateCall, ...], needed_by_all: set[int]
) -> tuple[p.PhysicalNode, tuple[AggregateCall, ...], tuple[int, ...]]:
    """A copy of each row per DISTINCT argument, the calls over the copies, and the columns that spread them.
    These are the DISTINCT columns, NULL in the copies of other arguments. The last column is true in one copy
    of each row. ``needed_by_all``: columns of all copies."""
    sets = _distinct_arguments(calls)
    filters = list(dict.fromkeys(call.filter for call in calls if not call.distinct))
    width = len(below.fields)
    first_copy = {args: width + sum(map(len, sets[:i])) for i, args in enumerate(sets)}
    first = width + sum(map(len, sets))
    plain = {a for c in calls if not c.distinct for a in c.args}
    plain -= needed_by_all | {c.filter for c in calls if c.filter is not None}
    refs = references(below.fields)
    fields = [
        Field(f.name, f.type.with_nullable(f.type.nullable or i in plain)) for i, f in enumerate(below.fields)
    ]
    values = [Field(f"$d{i}", _null(refs[a]).type) for i, a in enumerate(chain.from_iterable(sets))]
    flags = [Field(f"$g{i}", t.BOOLEAN) for i in range(len(filters))]
    used_names = [f.name for f in fields]
    flags.append(Field("$itself", t.BOOLEAN))
    fields += [Field(free_name(f.name, used_names), f.type) for f in (*values, *flags)]

    def copy(number: int) -> Iterator[Expr]:
        for i, ref in enumerate(refs):
            yield _null(ref) if number and i in plain else ref
        for i, args in enumerate(sets):
            yield from (refs[a] if i == number else _null(refs[a]) for a in args)
        for each in filters:
            yield _FALSE if number else _TRUE if each is None else refs[each]
        yield _FALSE if number else _TRUE

    projections = tuple(tuple(copy(number)) for number in range(len(sets)))
    expand = p.Expand(fields=tuple(fields), input=below, projections=projections, phase=PHASE)
    own = tuple(
        replace(call, args=tuple(range(first_copy[call.args], first_copy[call.args] + len(call.args))))
        if call.distinct
        else replace(call, filter=first + filters.index(call.filter))
        for call in calls
    )
    return with_kinds(finish(expand), below.traits.kinds), own, tuple(range(width, first))


def _null(column: InputRef) -> Literal:
    return Literal(type=column.type.with_nullable(True), value=None)
