"""Aggregations by key, in the phases that Flink shows.

Nodes that only exist to say how Flink would split work (LocalGroupAggregate, IncrementalGroupAggregate, the
PARTIAL half of a split distinct aggregate) are skipped by the exec graph: the node that ends such a group
carries the whole meaning in ``core`` (see AggregateCore).
"""

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
class AggregateCore:
    """The whole meaning of an aggregation, whatever phases EXPLAIN shows.

    ``input`` is the node below the first phase's exchange or local aggregate (below the bucket Calc and
    Expand of a split distinct aggregate); indexes in ``keys`` and ``calls`` are of its fields. The
    aggregate's output is keys, then calls, in the field order of the node that carries the core.
    """

    input: PhysicalNode
    keys: tuple[int, ...]
    calls: tuple[AggregateCall, ...]
    state_ttl: int = 0
    """Milliseconds; 0 keeps state for ever (table.exec.state.ttl or a STATE_TTL hint)."""
    marked: bool = False
    """The last field of the node that carries the core says of an update which calls it changed: bit i is
    ``calls[i]``."""
    reuse: DistinctReuse | None = None
    """Of a shown plan: distinct state may be shared. Of the plan that runs: it is."""
    alone: PhysicalNode | None = None
    """Where distinct state is shared: the aggregation that does without."""
    versions: bool = False
    """Every change is given for itself, with the watermark before the row that made it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupAggregate(Unary):
    """One-phase, or one half of a split distinct aggregate (``phase`` PARTIAL or FINAL).

    ``core`` is set on the node that ends the aggregation (phase '' or FINAL); the exec graph goes on
    at ``core.input``.
    """

    keys: tuple[int, ...]
    calls: tuple[AggregateCall, ...]
    phase: str = ""
    core: AggregateCore | None = None
    ttl_hints: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalGroupAggregate(Unary):
    """Shown in EXPLAIN; ``select`` are the display texts of its outputs."""

    keys: tuple[int, ...]
    calls: tuple[AggregateCall, ...]
    phase: str = ""
    select: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class IncrementalGroupAggregate(Unary):
    partial_keys: tuple[int, ...]
    final_keys: tuple[int, ...]
    select: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class GlobalGroupAggregate(Unary):
    keys: tuple[int, ...]
    calls: tuple[AggregateCall, ...]
    phase: str = ""
    select: tuple[str, ...] = ()
    core: AggregateCore | None = None


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
