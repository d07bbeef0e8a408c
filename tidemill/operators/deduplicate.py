"""Deduplicate: the first or the last row per key, by arrival or by row time; input is append-only.

- by arrival, keep first: insert-only, state is the keys;
- by arrival, keep last: each different row replaces the one before;
- by row time: a row counts if it is not earlier (keep last) or earlier (keep first) than the one held.
``compact`` (table.exec.deduplicate.mini-batch.compact-changes-enabled, or any net result): one change per
key and epoch; otherwise row-time shows every improvement, as Flink does. Row-time keep-first shows updates;
the insert-only form that waits for the watermark is not this operator.
Input: ``columns``, ``$seq`` (always needed), ``$hash``.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from tidemill.changelog.columns import Mask
from tidemill.operators.api import EpochContext
from tidemill.operators.grouped import segmented_accumulate
from tidemill.operators.keyed_rows import (
    Candidates,
    Columns,
    KeyedTable,
    RowsByKey,
    open_rows,
    replace_rows,
)
from tidemill.state.store import StateStore

_LATEST = np.iinfo(np.int64).max
_EARLIEST = np.iinfo(np.int64).min


@dataclass(frozen=True, slots=True, kw_only=True)
class DeduplicateSpec:
    """``time``: the row-time column, None for order of arrival."""

    columns: Columns
    keys: tuple[str, ...]
    time: str | None
    keep_last: bool
    emit_update_before: bool = True
    per_record: bool = False
    compact: bool = False
    sequence: bool = False
    state_ttl: int = 0

    @property
    def needs_sequence(self) -> bool:
        return True

    @property
    def insert_only(self) -> bool:
        return self.time is None and not self.keep_last

    @property
    def shape(self) -> RowsByKey:
        return RowsByKey(
            name="keys" if self.insert_only else "rows",
            columns=self.columns,
            keys=self.keys,
            ttl=self.state_ttl,
            update_before=self.emit_update_before,
            skip_equal=self.time is None,
            by_arrival=self.per_record or self.insert_only,
            sequence=self.sequence,
            insert_only=self.insert_only,
        )

    @property
    def fingerprint(self) -> str:
        text = f"deduplicate {self.time} {self.keep_last} {self.shape.layout.schema}"
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def output_schema(self) -> pa.Schema:
        return self.shape.output_schema()

    def step(self, inputs: tuple[pa.Table, ...], state: StateStore, epoch: EpochContext) -> pa.Table:
        (table,) = inputs
        shape = self.shape
        if len(table) == 0:
            return shape.output_schema().empty_table()
        state.now = epoch.time
        records = state.table(shape.layout)
        rows = open_rows(shape, table, records)
        places = np.flatnonzero(self._counts(rows))
        chosen = Candidates(places, np.ones(len(places), np.bool_))
        if not self.per_record and (self.time is None or self.compact):
            chosen = chosen.last_of_each(rows.groups)
        return replace_rows(shape, rows, chosen, records)

    def _counts(self, rows: KeyedTable) -> Mask:
        """Which rows (in group order) become their key's row."""
        groups = rows.groups
        if self.time is not None:
            return self._improves(rows, self.time)
        counts = np.ones(len(groups.order), np.bool_)
        if not self.keep_last:
            counts[:] = False
            counts[groups.starts] = ~rows.found.found
        return counts

    def _improves(self, rows: KeyedTable, column: str) -> Mask:
        """Whether a row's time beats the best before it, the held row's included."""
        groups = rows.groups
        none = _EARLIEST if self.keep_last else _LATEST
        better = np.maximum if self.keep_last else np.minimum
        times = rows.in_group_order(column)
        values = np.where(times.mask(), times.values.astype(np.int64), _EARLIEST)
        held = rows.found.vec(column)
        start = np.where(held.mask() & rows.found.found, held.values.astype(np.int64), none)
        best = values.copy()
        best[groups.starts] = better(values[groups.starts], start)
        best = segmented_accumulate(better, best, groups.starts)
        before = np.empty_like(best)
        before[1:] = best[:-1]
        before[groups.starts] = start
        fresh = np.zeros(len(values), np.bool_)
        fresh[groups.starts] = ~rows.found.found
        improves: Mask = fresh | (values >= before if self.keep_last else values < before)
        return improves
