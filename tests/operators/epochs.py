"""Driving an operator's spec epoch by epoch over state on disk."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from tests.operators.naive_aggregate import Change, freeze
from tidemill.operators.api import EpochContext, OperatorSpec
from tidemill.state.slices import Slice
from tidemill.state.spine import SpineOptions
from tidemill.state.store import StateStore

TINY = SpineOptions(fuel=4, fuel_per_row=1, slice_rows=2)
KINDS = ("+I", "-U", "+U", "-D")


@dataclass
class Epochs:
    """State is reopened from its manifest at every epoch."""

    root: str
    spec: OperatorSpec
    manifest: str | Sequence[Slice] | None = None
    number: int = field(default=0)

    def step(self, *inputs: pa.Table, time: int = 0) -> list[Change]:
        """The output rows as (kind, visible columns)."""
        return [as_change(row) for row in self.output(*inputs, time=time).to_pylist()]

    def output(self, *inputs: pa.Table, time: int = 0) -> pa.Table:
        """The output with its hidden columns."""
        store = StateStore.open(self.root, "op", 0, self.manifest, self.number, options=TINY)
        context = EpochContext(epoch=self.number, time=time, partition=0)
        output = self.spec.step(inputs, store, context)
        assert output.schema.equals(self.spec.output_schema())
        self.manifest = store.flush() or self.manifest
        self.number += 1
        return output


def as_change(row: dict[str, Any]) -> Change:
    visible = tuple(freeze(v) for name, v in row.items() if not name.startswith("$"))
    return row.get("$kind", 0), visible


def fold(table: dict[Any, int], changes: list[Change]) -> None:
    """Applies a changelog to a multiset; every row it takes away must be there."""
    for kind, row in changes:
        table[row] = table.get(row, 0) + (-1 if kind & 1 else 1)
        assert table[row] >= 0, f"{KINDS[kind]} of a row that is not there: {row}"
        if table[row] == 0:
            del table[row]
