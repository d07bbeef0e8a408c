"""What both window aggregations are told: keys, calls, time, and the columns that they show."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa

from tidemill.operators.aggregates.api import AggregateSpec
from tidemill.operators.group_aggregate.operator import GroupAggregateSpec
from tidemill.operators.window.clock import Clock
from tidemill.operators.window.output import WindowColumns
from tidemill.operators.window.pieces import END

LATE = "late"
"""What the number of rows that came too late is noted as."""


@dataclass(frozen=True, kw_only=True)
class WindowShape:
    """``time``: the column that windows are made by, in local time; ``output``: the order of keys, results
    and window columns."""

    keys: tuple[tuple[str, pa.DataType], ...]
    calls: tuple[AggregateSpec, ...]
    time: str
    clock: Clock
    columns: WindowColumns
    output: tuple[str, ...]
    retracts: bool = False
    keeps_time: bool = False
    sequence: bool = False

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

    def output_schema(self) -> pa.Schema:
        return self.columns.schema(self.keys, self.calls, self.output, self.keeps_time, self.sequence)
