"""Aggregations by key; the phases that Flink shows of them are EXPLAIN's (``explain.view``)."""

from __future__ import annotations

from dataclasses import dataclass

from tidemill.physical.nodes.base import PhysicalNode, Unary
from tidemill.plan.expressions import AggregateCall


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownKeys:
    """Values that keys have together in the rows that have ``conditions``: a column and its value, each;
    ``grouping``: the place of the GROUPING SET that it is of."""

    values: tuple[object, ...]
    conditions: tuple[tuple[int, object], ...]
    grouping: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class DistinctReuse:
    """Keys whose values are known may share what is kept of distinct values: see
    ``aggregates.distinct_reuse``. ``places`` among the keys; ``combinations``: what those keys can have
    together; ``kept``: the columns of the other keys, then the one whose values are counted; ``expanded``:
    columns are those below the aggregation's Expand; ``forced``: whether it pays or not; ``width``: the bits
    of a word that says under which keys a value has come, 0 where it is counted how often."""

    places: tuple[int, ...]
    combinations: tuple[KnownKeys, ...]
    kept: tuple[int, ...]
    expanded: bool
    forced: bool
    width: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupAggregate(Unary):
    """Fields: the ``keys``, then the ``calls``. The input is the exchange by the keys."""

    keys: tuple[int, ...]
    calls: tuple[AggregateCall, ...]
    ttl_hints: tuple[tuple[str, str], ...] = ()
    state_ttl: int = 0
    """Milliseconds; 0 keeps state for ever (table.exec.state.ttl or a STATE_TTL hint)."""
    split: int = 0
    """In so many buckets Flink splits what is DISTINCT (0: it does not). Its upper half reads updates, so its
    planner counts with results that go."""
    marked: bool = False
    """The last field says of an update which calls it changed: bit i is ``calls[i]``."""
    reuse: DistinctReuse | None = None
    """As planned: distinct state may be shared. As it runs: it is."""
    alone: PhysicalNode | None = None
    """Where distinct state is shared: the aggregation that does without."""
    part: bool = False
    """It is one of the two aggregations that share distinct state."""
    versions: bool = False
    """Every change is given for itself, with the watermark before the row that made it."""

    @property
    def source(self) -> PhysicalNode:
        """What is below the exchange."""
        (below,) = self.input.inputs
        return below


@dataclass(frozen=True, slots=True, kw_only=True)
class AggregatePart(Unary):
    """What one of several readers gets of a ``marked`` aggregation: its ``columns``, and the updates that
    change one of its own ``calls`` (bits of the mark). Never shown: for a reader it is the aggregation."""

    columns: tuple[int, ...]
    calls: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedDistinct(Unary):
    """How many values have come, for each of the ``shared`` keys, that it did not have yet: a part of an
    aggregation above, which adds this up, and never shown. Fields: the keys, then the number."""

    shared: DistinctReuse
