"""Aggregations by key. Only EXPLAIN has their phases (``explain.view``)."""

from __future__ import annotations

from dataclasses import dataclass

from tidemill.physical.nodes.base import PhysicalNode, Unary, Versioned
from tidemill.plan.expressions import AggregateCall


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownKeys:
    """A combination of key values. ``conditions``: (column, value) pairs of the rows with the combination.
    ``grouping``: the index of its GROUPING SET."""

    values: tuple[object, ...]
    conditions: tuple[tuple[int, object], ...]
    grouping: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class DistinctReuse:
    """Keys with known values that share distinct state (``aggregates.distinct_reuse``). ``places``: the
    indexes of these keys. ``combinations``: their possible values. ``kept``: the columns of the other keys,
    then the counted column. ``expanded``: columns are below the aggregation's Expand. ``forced``: apply it
    even if it does not pay. ``width``: the bits of a word with a bit per key, 0 if rows per key are
    counted."""

    places: tuple[int, ...]
    combinations: tuple[KnownKeys, ...]
    kept: tuple[int, ...]
    expanded: bool
    forced: bool
    width: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupAggregate(Versioned):
    """Fields: the ``keys``, then the ``calls``. The input is the exchange by the keys."""

    keys: tuple[int, ...]
    calls: tuple[AggregateCall, ...]
    ttl_hints: tuple[tuple[str, str], ...] = ()
    state_ttl: int = 0
    """Milliseconds; 0 keeps state for ever (table.exec.state.ttl or a STATE_TTL hint)."""
    split: int = 0
    """The number of buckets in which Flink splits DISTINCT (0: none). Flink's upper half reads updates, so
    its planner counts with results that go."""
    marked: bool = False
    """The last field says of an update which calls it changed: bit i is ``calls[i]``."""
    reuse: DistinctReuse | None = None
    """As planned: distinct state may be shared. As it runs: it is."""
    alone: PhysicalNode | None = None
    """Where distinct state is shared: the aggregation that does without."""
    part: bool = False
    """It is one of the two aggregations that share distinct state."""

    @property
    def source(self) -> PhysicalNode:
        """The node below the exchange."""
        (below,) = self.input.inputs
        return below


@dataclass(frozen=True, slots=True, kw_only=True)
class AggregatePart(Unary):
    """One reader's part of a shared, ``marked`` aggregation: its ``columns``, and the updates that change one
    of its ``calls`` (bits of the mark). EXPLAIN shows the aggregation instead."""

    columns: tuple[int, ...]
    calls: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedDistinct(Unary):
    """The number of new distinct values per ``shared`` key, which the aggregation above adds up. EXPLAIN does
    not show it. Fields: the keys, then the number."""

    shared: DistinctReuse
