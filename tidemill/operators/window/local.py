"""The local phase of an aggregation in windows, before the exchange."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pyarrow as pa

from tidemill.changelog.batch import contiguous
from tidemill.changelog.columns import Ints, Vec, single, to_arrow
from tidemill.changelog.hashing import hash_columns
from tidemill.changelog.watermarks import WATERMARK_COLUMN
from tidemill.operators.api import HASH_COLUMN
from tidemill.operators.group_aggregate.operator import GroupAggregateSpec
from tidemill.operators.window.store.partial_aggregates import END

ROWS = "$rows"
"""How many rows a combined one stands for."""
_NUMBER = pa.int64()


@dataclass(frozen=True, kw_only=True)
class LocalSlices:
    """``group``: the aggregation by ``$end`` and ``keys``. Gives the keys' ``$hash``, ``$end``, ``$wm``, the
    accumulators, and ``$rows``."""

    group: GroupAggregateSpec
    keys: tuple[tuple[str, pa.DataType], ...]

    @cached_property
    def marked(self) -> GroupAggregateSpec:
        """The aggregation grouped by watermark, too."""
        keys = ((END, _NUMBER), (WATERMARK_COLUMN, _NUMBER), *self.keys)
        return replace(self.group, keys=keys)

    def combine(self, table: pa.Table, ends: Ints, marks: Ints) -> pa.Table:
        """Combines rows by slice, key and mark. ``marks``: the watermark that decides whether a row is
        late."""
        column_index = table.schema.get_field_index(WATERMARK_COLUMN)
        rows = table.set_column(column_index, WATERMARK_COLUMN, to_arrow(Vec(marks), _NUMBER))
        rows = rows.append_column(END, to_arrow(Vec(ends), _NUMBER))
        own = single(table.column(HASH_COLUMN))
        hashes = hash_columns([rows.column(name) for name, _ in self.marked.keys], len(rows))
        column_index = rows.schema.get_field_index(HASH_COLUMN)
        rows = rows.set_column(column_index, HASH_COLUMN, to_arrow(Vec(hashes), pa.uint64()))
        grouped = self.marked.grouped(contiguous(self.marked.ordered(rows)))
        groups = grouped.groups
        combined = self.marked.combined(grouped)
        column_index = combined.schema.get_field_index(HASH_COLUMN)
        combined = combined.set_column(column_index, HASH_COLUMN, own.take(pa.array(groups.heads)))
        return combined.append_column(ROWS, pa.array(np.asarray(groups.sizes, np.int64)))
