"""What both window aggregations are told: keys, calls, time, and the columns that they show."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa

from tidemill.changelog.columns import Mask, single, vector
from tidemill.operators.aggregates.api import AggregateSpec
from tidemill.operators.api import EpochContext
from tidemill.operators.group_aggregate.operator import GroupAggregateSpec
from tidemill.operators.window.clock import Clock
from tidemill.operators.window.output import WindowColumns
from tidemill.operators.window.pieces import END, Pieces, Whole, pieces_of


@dataclass(frozen=True, kw_only=True)
class WindowShape:
    """``time``: the column that windows are made by, in local time; ``output``: the order of keys, results
    and window columns. ``rows``: the other columns of rows that are given as they are, not aggregated."""

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
    everywhere: str = ""

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

    def add_late(self, rows: pa.Table, late: Mask, epoch: EpochContext) -> None:
        """Tells of ``rows`` that are ``late``, and of none twice."""
        sizes = None
        if self.everywhere and late.any():
            sizes = (vector(single(rows.column(self.everywhere))).values == 0).astype(np.int64)
        epoch.late.add(rows, late, sizes)

    @property
    def types(self) -> dict[str, pa.DataType]:
        """Of the columns that are handed on."""
        return dict((*self.keys, *(self.rows or ())))

    def output_schema(self) -> pa.Schema:
        keys = tuple(self.types.items())
        return self.columns.schema(keys, self.calls, self.output, self.keeps_time, self.sequence)
