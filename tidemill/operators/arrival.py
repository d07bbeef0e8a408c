"""Rows of several partitions as they came, in one. No state."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import pyarrow as pa

from tidemill.changelog.batch import by_arrival
from tidemill.operators.api import EpochContext
from tidemill.operators.rows.schemas import output_schema
from tidemill.state.store import StateStore


@dataclass(frozen=True, kw_only=True)
class ArrivalSpec:
    """Input and output: ``columns``, ``$kind`` where ``kinds``, and ``$seq``, given on where ``sequence``."""

    columns: tuple[tuple[str, pa.DataType], ...]
    kinds: bool = False
    sequence: bool = False

    @property
    def needs_sequence(self) -> bool:
        return True

    @property
    def fingerprint(self) -> str:
        return hashlib.sha256(f"arrival {self.columns}".encode()).hexdigest()[:16]

    def output_schema(self) -> pa.Schema:
        return output_schema(self.columns, kinds=self.kinds, sequence=self.sequence)

    def step(self, inputs: tuple[pa.Table, ...], state: StateStore, epoch: EpochContext) -> pa.Table:
        (table,) = inputs
        rows = by_arrival(table) if len(table) else table
        schema = self.output_schema()
        return rows.select(schema.names).cast(schema)
