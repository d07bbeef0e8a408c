"""ChangelogNormalize: an upsert or duplicate-ridden changelog becomes a full one.

The last row per unique key counts, as in Flink's ``processLastRowOnChangelog``:

- the first row of a key gives +I, a different row -U/+U, an equal row nothing;
- a deletion gives -D of the stored row, and nothing for an unknown key;
- a row that fails the node's condition ends its key as a deletion does: it is not kept, and the row before it
  gives -D, never a lone -U.

Input: ``columns``, ``$kind``, ``$seq`` (always needed), ``$hash``, and ``$wm`` if ``timed``. If
``per_record`` is False, there is one net change per key and epoch.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from tidemill.changelog.batch import weights_of
from tidemill.changelog.columns import vector
from tidemill.operators.api import EpochContext, KeptRows
from tidemill.operators.rows.keyed_rows import Candidates, Columns, RowsByKey, open_rows, replace_rows
from tidemill.state.store import StateStore


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangelogNormalizeSpec:
    """``columns``: (name, Arrow type) of the rows; ``keys``: names of the unique key; ``passes``: the
    BOOLEAN input column that says whether a row passes the condition, '' for none."""

    columns: Columns
    keys: tuple[str, ...]
    passes: str = ""
    emit_update_before: bool = True
    per_record: bool = False
    sequence: bool = False
    timed: bool = False
    state_ttl: int = 0

    @property
    def kept_rows(self) -> KeptRows:
        return KeptRows(layouts=(self.shape.layout,))

    @property
    def needs_sequence(self) -> bool:
        return True

    @property
    def shape(self) -> RowsByKey:
        return RowsByKey(
            name="rows",
            columns=self.columns,
            keys=self.keys,
            ttl=self.state_ttl,
            update_before=self.emit_update_before,
            skip_equal=True,
            by_arrival=self.per_record,
            sequence=self.sequence,
            timed=self.timed,
        )

    @property
    def fingerprint(self) -> str:
        text = f"changelog-normalize {self.shape.layout.schema} {self.passes}"
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def output_schema(self) -> pa.Schema:
        return self.shape.output_schema()

    def take_in(self, port: int, rows: pa.Table, state: StateStore, epoch: EpochContext) -> None:
        """See ``operators.api.TakesRows``. All rows pass the condition: others are not kept."""
        if self.passes:
            rows = rows.append_column(self.passes, pa.array(np.ones(len(rows), np.bool_)))
        replace(self, per_record=False, sequence=False, timed=False).step((rows,), state, epoch)

    def step(self, inputs: tuple[pa.Table, ...], state: StateStore, epoch: EpochContext) -> pa.Table:
        (table,) = inputs
        shape = self.shape
        if len(table) == 0:
            return shape.output_schema().empty_table()
        state.now = epoch.time
        records = state.table(shape.layout)
        rows = open_rows(shape, table, records)
        weights = weights_of(rows.table)
        everyone = np.arange(len(rows.groups.order))
        alive = np.ones(len(everyone), np.bool_) if weights is None else weights[rows.groups.order] > 0
        if self.passes:
            alive &= vector(rows.table.column(self.passes)).values[rows.groups.order]
        chosen = Candidates(everyone, alive)
        if not self.per_record:
            chosen = chosen.last_of_each(rows.groups)
        return replace_rows(shape, rows, chosen, records)
