"""Nodes that depend on an order: Top-N, sorting, OVER, MATCH_RECOGNIZE."""

from __future__ import annotations

from dataclasses import dataclass

from tidemill.physical.nodes.base import Unary, Versioned
from tidemill.plan.expressions import Expr, OverCall, SortKey
from tidemill.plan.patterns import Pattern


@dataclass(frozen=True, slots=True, kw_only=True)
class Rank(Versioned):
    """Top-N: rows ``start``..``end`` of each partition; the rank column is last iff ``with_rank``.

    ``time`` is ROWTIME or PROCTIME if the only sort key is such an attribute: with ROW_NUMBER and range 1..1
    the node is a deduplication (see ``keeps_first``, ``is_deduplicate``). ``insert_only``: an emitted row
    never changes.
    """

    function: str
    partition: tuple[int, ...]
    order: tuple[SortKey, ...]
    start: int
    end: int
    with_rank: bool
    time: str = ""
    insert_only: bool = False
    state_ttl: int = 0
    upsert_key: tuple[int, ...] | None = None
    """As Flink shows it: updates, which only improve a row, come without -U and are known by this key. As it
    runs, it has none: each -U is needed."""

    @property
    def is_deduplicate(self) -> bool:
        top_one = self.start == self.end == 1 and not self.with_rank
        return bool(self.time) and top_one and self.function == "ROW_NUMBER"

    @property
    def waits_for_first(self) -> bool:
        """Whether it is a deduplication that emits the first row by event time once it is known."""
        return self.insert_only and self.is_deduplicate and self.time == "ROWTIME"

    @property
    def keeps_first(self) -> bool:
        return self.order[0].ascending

    @property
    def keeps_latest(self) -> bool:
        """Whether among rows of the same time the latest arrival is the first: always by processing time, by
        event time only if one row is kept, as in a Deduplicate. A Top-N of several rows keeps the first
        arrivals."""
        if not self.time or self.order[0].ascending:
            return False
        return self.time == "PROCTIME" or (self.function == "ROW_NUMBER" and self.start == self.end == 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class SortLimit(Unary):
    """ORDER BY ... LIMIT (or LIMIT alone: no ``order``): at most ``fetch`` rows after ``offset`` rows."""

    order: tuple[SortKey, ...]
    offset: int
    fetch: int | None
    state_ttl: int = 0
    upsert_key: tuple[int, ...] | None = None
    """As of a Rank."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sort(Unary):
    """ORDER BY of a whole input. ``by_time``: its first key is ascending event time."""

    order: tuple[SortKey, ...]
    by_time: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class OverAggregate(Unary):
    """The input's fields, then one per call; all calls share partition and order.

    ``time`` is ROWTIME or PROCTIME if the input is append-only and this ascending attribute is the only sort
    key, so emitted rows stay. With '' changed partitions are recomputed.
    """

    calls: tuple[OverCall, ...]
    time: str = ""
    state_ttl: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Match(Unary):
    """MATCH_RECOGNIZE, as in ``plan.nodes.MatchRecognize``: emits a row when a match is complete."""

    partition: tuple[int, ...]
    order: tuple[SortKey, ...]
    pattern: Pattern
    definitions: tuple[tuple[int, Expr], ...]
    measures: tuple[Expr, ...]
