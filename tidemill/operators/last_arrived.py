"""The last row of each key in an epoch by arrival, for an upsert sink with insert-only input.

Rows of one key may come from several key groups or union branches, and the order in which tasks end must not
decide. Rows are ordered by ``$seq``. Rows that waited for a watermark are ordered by ``$wm``, and by their
columns if one watermark released several. There is no state, because a row of a later epoch replaces the row
anyway. Cost: one sort of the epoch's rows.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from tidemill.changelog.batch import by_arrival, contiguous, hashes_of
from tidemill.changelog.columns import Ints, single, vector
from tidemill.changelog.grouping import group_rows
from tidemill.changelog.watermarks import WATERMARK_COLUMN
from tidemill.operators.api import EpochContext, KeptRows
from tidemill.operators.rows.ordering import by_columns, codes, sort_rows
from tidemill.state.store import StateStore


@dataclass(frozen=True, kw_only=True)
class LastArrivedSpec:
    """``columns``: the row, (name, type); ``keys``: names of the sink's primary key. Input with ``$seq``, or
    ``$wm`` where ``timed``."""

    columns: tuple[tuple[str, pa.DataType], ...]
    keys: tuple[str, ...]
    timed: bool = False

    @property
    def fingerprint(self) -> str:
        return hashlib.sha256(f"last-arrived {self.columns} {self.keys}".encode()).hexdigest()[:16]

    @property
    def kept_rows(self) -> KeptRows:
        return KeptRows(layouts=())

    @property
    def combinable(self) -> bool:
        return True

    def output_schema(self) -> pa.Schema:
        return pa.schema([pa.field(name, kind) for name, kind in self.columns])

    def combine(self, table: pa.Table) -> pa.Table:
        """The last row of each key in a chunk."""
        table = self._in_order(contiguous(table))
        keys = [single(table.column(name)) for name in self.keys]
        groups = group_rows(hashes_of(table, keys), keys)
        return table.take(pa.array(np.sort(groups.order[groups.starts + groups.sizes - 1])))

    def _in_order(self, table: pa.Table) -> pa.Table:
        if not self.timed:
            return contiguous(by_arrival(table))
        marks: Ints = vector(table.column(WATERMARK_COLUMN)).values
        measures = [codes(single(table.column(key.name)), key) for key in by_columns(self.columns)]
        everyone = np.zeros(len(table), np.int64)
        rows = sort_rows(everyone, [marks, *measures], everyone)
        return contiguous(table.take(pa.array(rows)))

    def merged(self, raw: list[pa.Table], combined: list[pa.Table]) -> tuple[LastArrivedSpec, pa.Table]:
        return self, pa.concat_tables([*raw, *combined])

    def step(self, inputs: tuple[pa.Table, ...], state: StateStore, epoch: EpochContext) -> pa.Table:
        (table,) = inputs
        if len(table) == 0:
            return self.output_schema().empty_table()
        return self.combine(table).select([name for name, _ in self.columns]).cast(self.output_schema())
