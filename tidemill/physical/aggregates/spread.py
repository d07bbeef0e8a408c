"""DISTINCT in windows whose rows would go to few partitions: counted by buckets of the values, and added up.

All rows of a window without keys would go to one partition, and those of a frequent key. Numbers of distinct
values are sums over buckets of these, and so are the other calls; a bucket gives one row per window. Without
keys it is done always, with them where ``table.optimizer.distinct-agg.split.enabled`` asks for it. Only what
runs is changed: EXPLAIN shows what Flink plans, one aggregation or two, and says beside it how it runs.

Of several DISTINCT each has a copy of the rows, in which it alone finds its values; what is not DISTINCT
looks at the first. What early or late results show is added up in the same epoch, so they are right, too.

Windows that rows make have the same bounds in every bucket only if all rows are there: each is in all of
them, and counts where its values belong. So they are spread only where that was asked for, over few buckets
(see decision 054), and what all rows of a stretch say of their bounds is one row a bucket.

Not spread are functions whose parts do not add up to the last digit, early or late results of windows that
cumulate, as a bucket does not know which of them others show, and those of windows that rows make where
they wait for a while: a window may have grown by then, and is another one in the sum.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from itertools import accumulate, chain, pairwise

from tidemill.changelog.rowkind import RowKind
from tidemill.config.emit_options import LATE_ROWS_TABLE
from tidemill.config.optimizer_options import (
    AGG_PHASE_STRATEGY,
    DISTINCT_SPLIT_BUCKETS,
    DISTINCT_SPLIT_ENABLED,
)
from tidemill.config.option import Configuration
from tidemill.physical import nodes as p
from tidemill.physical.aggregates.distinct_split import PHASE
from tidemill.physical.aggregates.parts import adds_up, parts_of, starts_tell, summed
from tidemill.physical.finish import PENDING, exchange, finish, references
from tidemill.physical.names import free_name
from tidemill.physical.tree import map_up, with_inputs, with_kinds
from tidemill.plan.expressions import AggregateCall, Expr, InputRef, Literal
from tidemill.plan.nodes import WindowKind
from tidemill.types import logical as t
from tidemill.types.logical import Field

BUCKETS = 64
"""Many more than partitions, as the hashes of a few would leave some of these without work; few enough that
the rows of all buckets are nothing beside those that are counted. A part of what the operator is: its state
is by bucket."""
OF_ROWS = 8
"""Buckets at most of windows that rows make: each of them has the bounds that all rows make."""
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
    """What gives a row per bucket to ``node``, which adds them up; None where it does not."""
    if not isinstance(node, p.WindowAggregate) or not isinstance(node.input, p.Exchange):
        return None
    below = _reads(node)
    return below if isinstance(below, p.WindowAggregate) and below.spread is not None else None


def copies_of(part: p.WindowAggregate) -> p.Expand | None:
    """What makes the copies of rows that ``part`` counts, where several columns are DISTINCT."""
    below = _reads(part)
    return below if isinstance(below, p.Expand) and below.phase == PHASE else None


def _reads(node: p.WindowAggregate) -> p.PhysicalNode:
    """What makes the rows that it gets."""
    below = node.input
    while isinstance(below, p.Exchange | p.LocalWindowAggregate):
        below = below.input
    return below


def _is_wanted(node: p.WindowAggregate) -> bool:
    """Whether it is spread unasked: all its rows would go to one partition."""
    return not node.keys and not starts_tell(node)


def _can_be_spread(node: p.WindowAggregate, *, keeps_late: bool) -> bool:
    if node.spread is not None or not isinstance(node.input, p.Exchange):
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
    return kind is not WindowKind.CUMULATE


def _distinct(calls: tuple[AggregateCall, ...]) -> list[tuple[int, ...]]:
    """What is DISTINCT, each once."""
    return list(dict.fromkeys(call.args for call in calls if call.distinct))


def _spread(node: p.WindowAggregate, buckets: int) -> p.PhysicalNode:
    (below,) = node.input.inputs
    calls = parts_of(node.calls, below.fields)
    if starts_tell(node):
        below, calls, spread = _everywhere(below, calls, min(buckets, OF_ROWS))
    else:
        sets = _distinct(calls)
        if len(sets) > 1:
            below, calls, sets = _copied(below, calls, {*node.keys, node.time})
        spread = p.Spread(sets=tuple(sets), buckets=buckets)
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
    below: p.PhysicalNode, calls: tuple[AggregateCall, ...], buckets: int
) -> tuple[p.PhysicalNode, tuple[AggregateCall, ...], p.Spread]:
    """The rows with columns for what is DISTINCT and flags for what is not, which buckets can take out."""
    own = _OwnColumns.of(below, calls)
    flags = (_TRUE if each is None else own.refs[each] for each in own.filters)
    values = (own.refs[a] for args in own.sets for a in args)
    calc = p.Calc(
        fields=own.fields(frozenset()),
        traits=PENDING,
        input=below,
        projections=(*own.refs, *values, *flags),
    )
    spread = p.Spread(sets=own.places, buckets=buckets, flags=own.flags)
    return with_kinds(finish(calc), below.traits.kinds), own.calls(calls), spread


def _copied(
    below: p.PhysicalNode, calls: tuple[AggregateCall, ...], kept: set[int]
) -> tuple[p.PhysicalNode, tuple[AggregateCall, ...], list[tuple[int, ...]]]:
    """A copy of each row for each that is DISTINCT, the calls over them, and the columns that copies are
    spread by: those that are DISTINCT, NULL in the copies of others. ``kept``: what all copies need."""
    own = _OwnColumns.of(below, calls)
    plain = {a for c in calls if not c.distinct for a in c.args}
    plain -= kept | {c.filter for c in calls if c.filter is not None}

    def copy(number: int) -> Iterator[Expr]:
        for i, ref in enumerate(own.refs):
            yield _null(ref) if number and i in plain else ref
        for i, args in enumerate(own.sets):
            yield from (own.refs[a] if i == number else _null(own.refs[a]) for a in args)
        for each in own.filters:
            yield _FALSE if number else _TRUE if each is None else own.refs[each]

    expand = p.Expand(
        fields=own.fields(plain),
        traits=PENDING,
        input=below,
        projections=tuple(tuple(copy(number)) for number in range(len(own.sets))),
        phase=PHASE,
    )
    together = tuple(chain.from_iterable(own.places))
    return with_kinds(finish(expand), below.traits.kinds), own.calls(calls), [together]


@dataclass(frozen=True, slots=True)
class _OwnColumns:
    """Columns behind those of ``below``: ``sets`` of what is DISTINCT, then flags of what counts rows, for
    each of the ``filters``."""

    below: p.PhysicalNode
    sets: list[tuple[int, ...]]
    filters: list[int | None]

    @classmethod
    def of(cls, below: p.PhysicalNode, calls: tuple[AggregateCall, ...]) -> _OwnColumns:
        filters = list(dict.fromkeys(call.filter for call in calls if not call.distinct))
        return cls(below, _distinct(calls), filters)

    @property
    def refs(self) -> tuple[InputRef, ...]:
        return references(self.below.fields)

    @property
    def places(self) -> tuple[tuple[int, ...], ...]:
        """Of the columns of each set."""
        ends = list(accumulate(map(len, self.sets), initial=len(self.below.fields)))
        return tuple(tuple(range(*bounds)) for bounds in pairwise(ends))

    @property
    def flags(self) -> tuple[int, ...]:
        first = len(self.below.fields) + sum(map(len, self.sets))
        return tuple(range(first, first + len(self.filters)))

    def fields(self, nullable: Collection[int]) -> tuple[Field, ...]:
        """Those of ``below``, of which these get NULLs, and the others."""
        fields = [
            Field(f.name, f.type.with_nullable(f.type.nullable or i in nullable))
            for i, f in enumerate(self.below.fields)
        ]
        refs = self.refs
        values = [Field(f"$d{i}", _null(refs[a]).type) for i, a in enumerate(chain.from_iterable(self.sets))]
        flags = [Field(f"$g{i}", t.BOOLEAN) for i in range(len(self.filters))]
        taken = [f.name for f in fields]
        return (*fields, *(Field(free_name(f.name, taken), f.type) for f in (*values, *flags)))

    def calls(self, calls: tuple[AggregateCall, ...]) -> tuple[AggregateCall, ...]:
        """``calls`` over these columns."""
        places = dict(zip(self.sets, self.places, strict=True))
        flags = dict(zip(self.filters, self.flags, strict=True))
        return tuple(
            replace(call, args=places[call.args])
            if call.distinct
            else replace(call, filter=flags[call.filter])
            for call in calls
        )


def _null(column: InputRef) -> Literal:
    return Literal(type=column.type.with_nullable(True), value=None)
