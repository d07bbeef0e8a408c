"""Rows as they come, each with the watermark that the rows before it had reached.

A task that reads knows the rows of its own part only; beyond the exchange the watermark of a row is that of
all rows before it (see ``changelog.watermarks``). No state.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import pyarrow as pa

from tidemill.changelog.batch import by_arrival
from tidemill.operators.api import EpochContext
from tidemill.operators.rows.schemas import output_schema
from tidemill.state.store import StateStore


@dataclass(frozen=True, kw_only=True)
class RowWatermarksSpec:
    """Input and output: ``columns``, ``$seq`` where ``sequence``, and ``$wm``."""

    columns: tuple[tuple[str, pa.DataType], ...]
    sequence: bool = False

    @property
    def fingerprint(self) -> str:
        return hashlib.sha256(f"row-watermarks {self.columns}".encode()).hexdigest()[:16]

    def output_schema(self) -> pa.Schema:
        return output_schema(self.columns, sequence=self.sequence, timed=True)

    def step(self, inputs: tuple[pa.Table, ...], state: StateStore, epoch: EpochContext) -> pa.Table:
        (table,) = inputs
        rows = by_arrival(table) if self.sequence and len(table) else table
        schema = self.output_schema()
        return rows.select(schema.names).cast(schema)
