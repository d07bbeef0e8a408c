"""The rows of one side that came in an epoch, and the pairs that they make with rows that are kept."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from tidemill.changelog.columns import Hashes, Ints, Mask, Vec, single, to_arrow, vector
from tidemill.changelog.watermarks import WATERMARK_COLUMN
from tidemill.operators.api import EpochContext
from tidemill.operators.interval_join.shape import ROW, IntervalShape
from tidemill.operators.join.sides import changed_rows
from tidemill.state.run import WEIGHT
from tidemill.state.timeline import Gathered, TimeTable, by_time_order

MICROSECONDS = 1000
"""In a millisecond: times are compared in these, columns are in those."""
_NUMBER = pa.int64()


def first_number(epoch: EpochContext) -> int:
    """The ``$row`` of the first row of this epoch; all of earlier epochs are below it."""
    return epoch.epoch << 32


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
        """The rows, and which of them may match anything: those that have a key and a time."""
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
            # A source that was not waited for may be behind what has been given already.
            marks=np.maximum(marks, epoch.before),
            numbers=first_number(epoch) + np.arange(len(change), dtype=np.int64),
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
        """Puts the rows where those of the other side look for them."""
        hidden = {WATERMARK_COLUMN: self.marks, ROW: self.numbers, WEIGHT: np.ones(len(self), np.int64)}
        columns = {**self.columns, **{n: to_arrow(Vec(v), _NUMBER) for n, v in hidden.items()}}
        coded = [columns[f.name] for f in table.layout.coded]
        table.put(spec.buckets(self.times), table.layout.codes(self.hashes, coded), columns)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pairs:
    """Rows of the ``side`` that arrived, by place, each with one that was ``found`` of the other side."""

    side: int
    arrived: Arrived
    rows: Ints
    found: Gathered

    @classmethod
    def of(cls, spec: IntervalShape, side: int, arrived: Arrived, table: TimeTable) -> Pairs:
        """All pairs with the rows of ``table`` that the join's condition lets through."""
        rows, dues = _searches(spec, side, arrived, table.may_have(arrived.hashes))
        keys = [arrived.columns[k] for k in spec.sides[side].keys]
        found = table.gather(dues, arrived.hashes[rows], keys, rows)
        pairs = cls(side=side, arrived=arrived, rows=rows[found.queries], found=found)
        pairs = pairs.where(pairs._timely(spec))
        if spec.residual is None or len(pairs) == 0:
            return pairs
        return pairs.where(spec.residual.matches(pairs))

    def __len__(self) -> int:
        return len(self.rows)

    def column(self, name: str) -> pa.Array:
        """A column of either side, one row per pair."""
        if name in self.arrived.columns:
            return self.arrived.columns[name].take(pa.array(self.rows))
        return self.found.column(name)

    @property
    def hashes(self) -> Hashes:
        """Of the keys that the rows have in common."""
        return self.arrived.hashes[self.rows]

    @property
    def marks(self) -> Ints:
        """The watermark at which the later of the two came."""
        return np.maximum(self.arrived.marks[self.rows], self.found.ints(WATERMARK_COLUMN))

    def _timely(self, spec: IntervalShape) -> Mask:
        """Whether the times are so far apart, and neither row was forgotten when the other came."""
        own, other = self.arrived.times[self.rows], self.found.ints(spec.times[1 - self.side]) // MICROSECONDS
        distance = own - other if self.side == 0 else other - own
        waits = spec.waits
        return (
            (distance >= spec.lower)
            & (distance <= spec.upper)
            & (own + waits[self.side] >= self.found.ints(WATERMARK_COLUMN))
            & (other + waits[1 - self.side] >= self.arrived.marks[self.rows])
        )

    def where(self, chosen: Mask) -> Pairs:
        """Some of the pairs."""
        found = self.found.where(chosen)
        return Pairs(side=self.side, arrived=self.arrived, rows=self.rows[chosen], found=found)


def _searches(spec: IntervalShape, side: int, arrived: Arrived, hopeful: Mask) -> tuple[Ints, Ints]:
    """Where the partners of each of the ``hopeful`` rows may lie: its place and a bucket, in the order of a
    table's codes."""
    low, high = (-spec.upper, -spec.lower) if side == 0 else (spec.lower, spec.upper)
    asking = np.flatnonzero(hopeful)
    times = arrived.times[asking]
    first = spec.buckets(times + low)
    counts = spec.buckets(times + high) - first + 1
    of = np.repeat(np.arange(len(asking)), counts)
    ends = np.cumsum(counts)
    dues = first[of] + np.arange(len(of)) - np.repeat(ends - counts, counts)
    rows = asking[of]
    order = by_time_order(dues, arrived.hashes[rows])
    return rows[order], dues[order]
