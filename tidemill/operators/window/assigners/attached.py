"""Rows with their windows, over Arrow batches: the same windows as ``runtime.compile.window_text`` gives in
Spark SQL, for rows that are in a Python worker and stay there.

One row for every window, in the order of the rows; none for a row without a time. Cost: as many rows as there
are windows, in batches of ``_ROWS`` or so.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from tidemill.changelog.columns import Ints, Vec, single, to_arrow, vector
from tidemill.operators.window.assigners.assigner import Assigner
from tidemill.operators.window.output import MICROSECONDS

_ROWS = 1 << 18
_BOUNDS = ("start", "end", "time")
_STAMP = pa.timestamp("us")


@dataclass(frozen=True, slots=True, kw_only=True)
class AttachedWindows:
    """``rowtime``: the type of the window's time attribute. Windows are cut in the time that rows have, which
    is local time or that of UTC."""

    windows: Assigner
    rowtime: pa.DataType

    def attached(self, batches: Iterable[pa.RecordBatch], time: int) -> Iterator[pa.RecordBatch]:
        """The rows of ``batches``, with window_start, window_end and window_time behind their columns;
        ``time``: the place of the column that windows are cut by."""
        for batch in batches:
            first, step = 0, _ROWS
            while first < batch.num_rows:
                part = batch.slice(first, step)
                rows = self._attached(part, time)
                if rows.num_rows > 2 * _ROWS and step > 1:
                    step = max(1, step * _ROWS // rows.num_rows)
                    continue
                first += step
                yield rows

    def _attached(self, batch: pa.RecordBatch, time: int) -> pa.RecordBatch:
        times = vector(single(batch.column(time)))
        slices = self.windows.slice_ends(times.values // MICROSECONDS)
        after, upto = self.windows.first_ends(slices) - 1, self.windows.last_ends(slices)
        rows, ends = self.windows.containing(slices, after, upto)
        if times.valid is not None:
            there = times.valid[rows]
            rows, ends = rows[there], ends[there]
        order = np.argsort(rows, kind="stable")
        rows, ends = rows[order], ends[order]
        starts = self.windows.starts(ends)
        columns = batch.columns if _same(rows, batch.num_rows) else batch.take(pa.array(rows)).columns
        bounds = ((starts, _STAMP), (ends, _STAMP), (ends - 1, self.rowtime))
        added = [to_arrow(Vec(values * MICROSECONDS), kind) for values, kind in bounds]
        return pa.RecordBatch.from_arrays([*columns, *added], names=[*batch.schema.names, *_BOUNDS])


def _same(rows: Ints, count: int) -> bool:
    """Whether ``rows`` are all rows once."""
    return len(rows) == count and bool((rows == np.arange(count)).all())
