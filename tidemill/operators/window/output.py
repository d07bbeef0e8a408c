"""The output rows of windows: keys, results, and window columns."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from tidemill.changelog.columns import Ints, Vec, to_arrow
from tidemill.changelog.rowkind import SEQUENCE_COLUMN
from tidemill.changelog.watermarks import WATERMARK_COLUMN
from tidemill.operators.aggregates.api import AggregateSpec
from tidemill.operators.api import EpochContext
from tidemill.operators.window.clock import INSTANTS, Clock

MICROSECONDS = 1000
"""In a millisecond: windows count in these, columns in those."""
_STAMP = pa.timestamp("us")


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowColumns:
    """The output columns of a window: its start, its end, the time attribute; '' if not needed.

    ``rowtime`` is the window's last millisecond, of type ``rowtime_type``. ``shown_by``: the clock that
    converts start and end to local time, if windows are instants.
    """

    start: str = ""
    end: str = ""
    rowtime: str = ""
    rowtime_type: pa.DataType | None = None
    shown_by: Clock = INSTANTS

    def schema(
        self,
        keys: tuple[tuple[str, pa.DataType], ...],
        calls: tuple[AggregateSpec, ...],
        output: tuple[str, ...],
        keeps_time: bool,
        sequence: bool = False,
    ) -> pa.Schema:
        """``output``: the order of keys, results and window columns."""
        types: dict[str, pa.DataType] = {**dict(keys), **{c.name: c.result for c in calls}}
        types |= {self.start: _STAMP, self.end: _STAMP}
        types[self.rowtime] = self.rowtime_type or _STAMP
        fields = [pa.field(name, types[name]) for name in output]
        fields += [pa.field(SEQUENCE_COLUMN, pa.int64())] * sequence
        return pa.schema([*fields, *([pa.field(WATERMARK_COLUMN, pa.int64())] * keeps_time)])

    def shown(
        self, results: pa.Table, starts: Ints, ends: Ints, last: Ints, schema: pa.Schema, epoch: EpochContext
    ) -> pa.Table:
        """``results`` with each row's window, in the order of the windows' ends, whatever the epoch.
        ``last``: the instant of the window's last millisecond."""
        order = np.argsort(last, kind="stable")
        results = results.take(pa.array(order))
        starts, ends = (self.shown_by.all_local(bounds[order]) for bounds in (starts, ends))
        last = last[order]
        columns = {name: results.column(name) for name in results.column_names}
        columns[self.start] = to_arrow(Vec(starts * MICROSECONDS), _STAMP)
        columns[self.end] = to_arrow(Vec(ends * MICROSECONDS), _STAMP)
        columns[self.rowtime] = to_arrow(Vec(last * MICROSECONDS), self.rowtime_type or _STAMP)
        columns[SEQUENCE_COLUMN] = pa.array((epoch.epoch << 32) + np.arange(len(results), dtype=np.int64))
        # Operators by time above get the row just before the watermark reaches the window's time.
        columns[WATERMARK_COLUMN] = to_arrow(Vec(last - 1), pa.int64())
        return pa.table([columns[name] for name in schema.names], schema=schema)
