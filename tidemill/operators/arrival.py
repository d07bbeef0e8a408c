"""Puts rows behind an exchange into the order of their arrival; without state.

In one partition the rows are one sequence again. In several partitions each row gets the watermark of all
rows before it, because a reading task only knows the watermark of its own part (see
``changelog.watermarks``).
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import pyarrow as pa

from tidemill.changelog.batch import by_arrival
from tidemill.changelog.rowkind import SEQUENCE_COLUMN
from tidemill.operators.api import EpochContext
from tidemill.operators.rows.schemas import output_schema
from tidemill.state.store import StateStore


@dataclass(frozen=True, kw_only=True)
class ArrivalSpec:
    """Input and output: ``columns``, ``$kind`` if ``kinds``, ``$seq`` if ``sequence`` (always read if the
    input has it), ``$wm`` if ``timed``."""

    columns: tuple[tuple[str, pa.DataType], ...]
    kinds: bool = False
    sequence: bool = False
    timed: bool = False

    @property
    def fingerprint(self) -> str:
        return hashlib.sha256(f"row-watermarks {self.columns}".encode()).hexdigest()[:16]

    def output_schema(self) -> pa.Schema:
        return output_schema(self.columns, kinds=self.kinds, sequence=self.sequence, timed=self.timed)

    def step(self, inputs: tuple[pa.Table, ...], state: StateStore, epoch: EpochContext) -> pa.Table:
        (table,) = inputs
        rows = by_arrival(table) if SEQUENCE_COLUMN in table.column_names else table
        schema = self.output_schema()
        return rows.select(schema.names).cast(schema)
