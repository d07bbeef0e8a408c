"""The rows of one side in an epoch, and their pairs with the stored rows of the other side."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from tidemill.changelog.columns import Hashes, Ints, Mask, Vec, single, to_arrow, vector
from tidemill.changelog.values import rows_same
from tidemill.changelog.watermarks import WATERMARK_COLUMN
from tidemill.operators.api import EpochContext
from tidemill.operators.interval_join.reach import Reach, pairs_in_reach
from tidemill.operators.interval_join.shape import ROW, IntervalShape
from tidemill.operators.join.sides import changed_rows
from tidemill.state.run import WEIGHT
from tidemill.state.timeline import Gathered, TimeTable, by_time_order, shared_keys

MICROSECONDS = 1000
"""In a millisecond: times are compared in these, columns are in those."""
_NUMBER = pa.int64()
_WORTH = 4
"""How many times the rows there are must ask for partners for it to be looked at first who has none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrived:
    """``columns`` are all of the side's; ``times`` in ms, ``marks`` the watermarks that rows came at,
    ``numbers`` their ``$row``."""

    columns: Mapping[str, pa.Array]
    hashes: Hashes
    times: Ints
    marks: Ints
    numbers: Ints

    @classmethod
    def of(cls, spec: IntervalShape, side: int, table: pa.Table, epoch: EpochContext) -> tuple[Arrived, Mask]:
        """The rows, and a mask of rows that may match: rows with a key and a time."""
        change = changed_rows(table, spec.sides[side].columns, spec.sides[side].keys)
        time = vector(change.columns[spec.times[side]])
        can = np.full(len(change), spec.lower <= spec.upper) & time.mask()
        for key, safe in zip(spec.sides[side].keys, spec.null_safe, strict=True):
            if not safe and change.columns[key].null_count:
                can &= change.columns[key].is_valid().to_numpy(zero_copy_only=False)
        marks = vector(single(table.column(WATERMARK_COLUMN))).values if len(table) else time.values
        arrived = cls(
            columns=change.columns,
            hashes=change.hashes,
            times=time.values // MICROSECONDS,
            # An idle source may be behind the time of emitted rows.
            marks=np.maximum(marks, epoch.before),
            numbers=(epoch.epoch << 32) + np.arange(len(change), dtype=np.int64),
        )
        return arrived, can

    def __len__(self) -> int:
        return len(self.times)

    def take(self, rows: Ints | Mask) -> Arrived:
        rows = np.flatnonzero(rows) if rows.dtype == np.bool_ else rows
        if len(rows) == len(self):
            return self
        picks = pa.array(rows)
        return Arrived(
            columns={name: column.take(picks) for name, column in self.columns.items()},
            hashes=self.hashes[rows],
            times=self.times[rows],
            marks=self.marks[rows],
            numbers=self.numbers[rows],
        )

    def keep(self, spec: IntervalShape, side: int, table: TimeTable) -> None:
        """Stores the rows, where later rows of the other side find them."""
        hidden = {WATERMARK_COLUMN: self.marks, ROW: self.numbers, WEIGHT: np.ones(len(self), np.int64)}
        columns = {**self.columns, **{n: to_arrow(Vec(v), _NUMBER) for n, v in hidden.items()}}
        coded = [columns[f.name] for f in table.layout.coded]
        table.put(spec.buckets(self.times), table.layout.codes(self.hashes, coded), columns)


@dataclass(frozen=True, slots=True)
class Met:
    """Some of the rows that ``arrived``, by index; their columns are fetched on demand."""

    arrived: Arrived
    rows: Ints

    def column(self, name: str) -> pa.Array:
        return self.arrived.columns[name].take(pa.array(self.rows))

    def ints(self, name: str) -> Ints:
        """A column of integers or times without NULLs."""
        hidden = {WATERMARK_COLUMN: self.arrived.marks, ROW: self.arrived.numbers}
        values = hidden[name] if name in hidden else vector(self.arrived.columns[name]).values
        chosen: Ints = values[self.rows]
        return chosen

    def where(self, chosen: Mask) -> Met:
        return Met(self.arrived, self.rows[chosen])


@dataclass(frozen=True, slots=True, kw_only=True)
class Pairs:
    """Pairs of a row of ``side`` that arrived, by index, and a row of the other side, which was ``found`` in
    state or came in the same epoch."""

    side: int
    arrived: Arrived
    rows: Ints
    found: Gathered | Met

    @classmethod
    def of(cls, spec: IntervalShape, side: int, arrived: Arrived, table: TimeTable) -> Pairs:
        """All pairs with the rows of ``table`` that pass the join's condition."""
        rows, dues = _searches(spec, side, arrived, table)
        keys = [arrived.columns[k] for k in spec.sides[side].keys]
        partners = table.gather(dues, arrived.hashes[rows], keys, rows)
        return cls(side=side, arrived=arrived, rows=rows[partners.queries], found=partners)._let_through(spec)

    @classmethod
    def within_epoch(cls, spec: IntervalShape, left: Arrived, right: Arrived) -> Pairs:
        """All pairs of rows of the epoch that pass the join's condition; their side is the left."""
        sides = (left, right)
        few = int(len(right) <= len(left))
        many = 1 - few
        asking = np.arange(len(sides[many]))
        if _WORTH * len(sides[few]) < len(asking):
            asking = np.flatnonzero(shared_keys(sides[many].hashes, [sides[few].hashes]))
        low, high = _reach(spec, many)
        times = sides[many].times[asking]
        reach = Reach(hashes=sides[many].hashes[asking], low=times + low, high=times + high)
        queries, left_rows = pairs_in_reach(reach, sides[few].hashes, sides[few].times)
        rows = (asking[queries], left_rows) if many == 0 else (left_rows, asking[queries])
        same = rows_same(
            [left.columns[k] for k in spec.left.keys],
            rows[0],
            [right.columns[k] for k in spec.right.keys],
            rows[1],
        )
        left_rows, partners = rows[0][same], rows[1][same]
        # In the order of arrival: the same wherever the step runs, and neighbours are fetched together.
        order = np.argsort(left_rows * len(right) + partners)
        right_rows = Met(right, partners[order])
        return cls(side=0, arrived=left, rows=left_rows[order], found=right_rows)._let_through(spec)

    def __len__(self) -> int:
        return len(self.rows)

    def column(self, name: str) -> pa.Array:
        """A column of either side, one row per pair."""
        if name in self.arrived.columns:
            return self.arrived.columns[name].take(pa.array(self.rows))
        return self.found.column(name)

    @property
    def partners(self) -> Ints:
        """For pairs within an epoch the indexes of the other side's rows."""
        assert isinstance(self.found, Met)
        return self.found.rows

    @property
    def hashes(self) -> Hashes:
        """The hashes of the pairs' keys."""
        return self.arrived.hashes[self.rows]

    @property
    def marks(self) -> Ints:
        """The watermark at which the later of the two came."""
        return np.maximum(self.arrived.marks[self.rows], self.found.ints(WATERMARK_COLUMN))

    def _timely(self, spec: IntervalShape) -> Mask:
        """Whether the times are within the bounds, and neither row was removed before the other came."""
        own, other = self.arrived.times[self.rows], self.found.ints(spec.times[1 - self.side]) // MICROSECONDS
        distance = own - other if self.side == 0 else other - own
        waits = spec.waits
        return (
            (distance >= spec.lower)
            & (distance <= spec.upper)
            & (own + waits[self.side] >= self.found.ints(WATERMARK_COLUMN))
            & (other + waits[1 - self.side] >= self.arrived.marks[self.rows])
        )

    def _let_through(self, spec: IntervalShape) -> Pairs:
        pairs = self.where(self._timely(spec))
        if spec.residual is None or len(pairs) == 0:
            return pairs
        return pairs.where(spec.residual.matches(pairs))

    def where(self, chosen: Mask) -> Pairs:
        """Some of the pairs."""
        if chosen.all():
            return self
        partners = self.found.where(chosen)
        return Pairs(side=self.side, arrived=self.arrived, rows=self.rows[chosen], found=partners)


def _reach(spec: IntervalShape, side: int) -> tuple[int, int]:
    """The range of times of a row's partners, in ms relative to the row's time."""
    return (-spec.upper, -spec.lower) if side == 0 else (spec.lower, spec.upper)


def _searches(spec: IntervalShape, side: int, arrived: Arrived, table: TimeTable) -> tuple[Ints, Ints]:
    """The searches in ``table`` for partners: a row's index and a bucket, in the order of the table's codes.
    Rows without stored rows in reach of their time, or of their key, are left out."""
    earliest, latest = table.earliest(), table.latest()
    if earliest is None or latest is None:
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    low, high = _reach(spec, side)
    first = np.maximum(spec.buckets(arrived.times + low), earliest)
    last = np.minimum(spec.buckets(arrived.times + high), latest)
    asking = np.flatnonzero(first <= last)
    asking = asking[table.may_have(arrived.hashes[asking])]
    first, counts = first[asking], last[asking] - first[asking] + 1
    of = np.repeat(np.arange(len(asking)), counts)
    ends = np.cumsum(counts)
    dues = first[of] + np.arange(len(of)) - np.repeat(ends - counts, counts)
    rows = asking[of]
    order = by_time_order(dues, arrived.hashes[rows])
    return rows[order], dues[order]
