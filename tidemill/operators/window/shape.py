"""What both window aggregations are told: keys, calls, time, and the columns that they show."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa

from tidemill.changelog.columns import Ints, Mask, single, vector
from tidemill.changelog.watermarks import WATERMARK_COLUMN, all_held_back
from tidemill.operators.aggregates.api import AggregateSpec
from tidemill.operators.api import HOT, EpochContext
from tidemill.operators.group_aggregate.operator import GroupAggregateSpec
from tidemill.operators.rows.numbered_keys import Keys
from tidemill.operators.window.clock import Clock
from tidemill.operators.window.output import WindowColumns
from tidemill.operators.window.store.partial_aggregates import END, Pieces, Whole, pieces_of


@dataclass(frozen=True, kw_only=True)
class WindowShape:
    """``time``: the column that windows are made by, in local time; ``output``: the order of keys, results
    and window columns. ``rows``: the other columns of rows that are given as they are, not aggregated.
    ``bucket``: the column of the buckets that all rows of hot keys are in, ``hot`` how many rows in an epoch
    make a key one; ``itself``: of copies of rows the column (BOOLEAN) that is true for one of each.
    ``behind``: by how many ms the operator holds its watermark back, and so that of each row."""

    keys: tuple[tuple[str, pa.DataType], ...]
    calls: tuple[AggregateSpec, ...]
    time: str
    clock: Clock
    columns: WindowColumns
    output: tuple[str, ...]
    rows: tuple[tuple[str, pa.DataType], ...] | None = None
    retracts: bool = False
    keeps_time: bool = False
    sequence: bool = False
    bucket: str = ""
    hot: int = 0
    itself: str = ""
    behind: int = 0

    @property
    def group(self) -> GroupAggregateSpec:
        """The aggregation that is done."""
        return self.asked

    @cached_property
    def asked(self) -> GroupAggregateSpec:
        """The aggregation by window, told by a number (``END``), and key."""
        keys = ((END, pa.int64()), *self.keys)
        return GroupAggregateSpec(
            keys=keys, calls=self.calls, retracts=self.retracts, emit_update_before=False
        )

    @cached_property
    def counted(self) -> Pieces:
        """What is kept of rows."""
        if self.rows is None:
            return pieces_of(self.group, self.keys)
        return Whole(group=self.group, keys=self.keys, rows=self.rows)

    @property
    def aggregates_rows_that_stay(self) -> bool:
        """Whether equal rows count alike whenever they come, and are never taken back."""
        return self.rows is None and not self.retracts and not self.group.needs_sequence

    def reached(self, rows: pa.Table, lateness: int = 0) -> Ints:
        """The local time that had come before each row; ``lateness``: for how many ms more it counts."""
        if len(rows) == 0:
            return np.zeros(0, np.int64)
        marks = vector(single(rows.column(WATERMARK_COLUMN))).values
        return self.clock.all_reached(all_held_back(marks, self.behind + lateness))

    def add_late(self, rows: pa.Table, late: Mask, epoch: EpochContext, sizes: Ints | None = None) -> None:
        """Tells of ``rows`` that are ``late``, and of none twice; ``sizes``: how many each stands for."""
        if late.any():
            once = np.ones(len(rows), np.bool_)
            if self.bucket:
                once = vector(single(rows.column(self.bucket))).values == 0
            elif self.itself:
                once = vector(single(rows.column(self.itself))).values
            epoch.late.add(rows, late & once, sizes)

    def note_hot(self, keys: Keys, rows: Ints, open_: Ints, epoch: EpochContext) -> None:
        """Tells of keys that are hot from now on; ``rows``, ``open_``: the numbers of the keys of the rows
        that came, and of the windows that were open: of these there is something in the first bucket."""
        if not self.bucket:
            return
        counts = np.bincount(rows, minlength=len(keys.hashes))
        counts[open_] = 0
        place = [name for name, _ in self.keys].index(self.bucket)
        counts[vector(keys.columns[place]).values != 0] = 0
        hot = np.flatnonzero(counts >= self.hot)
        if len(hot):
            epoch.notes[HOT] = keys.hashes[hot].tolist()

    @property
    def types(self) -> dict[str, pa.DataType]:
        """Of the columns that are handed on."""
        return dict((*self.keys, *(self.rows or ())))

    def output_schema(self) -> pa.Schema:
        keys = tuple(self.types.items())
        return self.columns.schema(keys, self.calls, self.output, self.keeps_time, self.sequence)
