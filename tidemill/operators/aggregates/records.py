"""The accumulators of one operator as a whole: reading, advancing and writing key records."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, TypeGuard

import numpy as np
import pyarrow as pa

from tidemill.changelog.columns import Ints, Mask, Vec, is_fixed
from tidemill.operators.aggregates.api import (
    Accumulator,
    Cell,
    Cells,
    FoldingAccumulator,
    RunningAccumulator,
    TableAccumulator,
)
from tidemill.operators.aggregates.count import CountAccumulator
from tidemill.operators.aggregates.extreme import as_array
from tidemill.protocols import follows
from tidemill.state.lookup import Answers

if TYPE_CHECKING:
    from tidemill.operators.rows.grouped import GroupedRows
    from tidemill.state.layout import Layout
    from tidemill.state.table import StateTable

ROWS = CountAccumulator("COUNT(*)", (), (None, ()))
"""How many rows a key has, where rows may go."""

AnyAccumulator = Accumulator | FoldingAccumulator | TableAccumulator


def is_simple(accumulator: AnyAccumulator) -> TypeGuard[Accumulator]:
    """Whether the record alone holds its state, and rows can be combined without it."""
    return follows(accumulator, Accumulator)


def is_folding(accumulator: AnyAccumulator) -> TypeGuard[FoldingAccumulator]:
    return follows(accumulator, FoldingAccumulator)


def is_stateful(accumulator: AnyAccumulator) -> TypeGuard[TableAccumulator]:
    return follows(accumulator, TableAccumulator)


def is_runnable(accumulator: AnyAccumulator) -> TypeGuard[RunningAccumulator]:
    """Whether it has a state table, and still computes its value after each row in one pass."""
    return follows(accumulator, RunningAccumulator)


def stored_cells(records: Answers, accumulator: AnyAccumulator) -> Cells:
    """An accumulator's columns of the stored records; NULL for keys without a record."""
    return tuple(
        records.vec(f.name) if is_fixed(f.type) else records.array(f.name) for f in accumulator.fields
    )


def take_cell(cell: Cell, rows: Ints, there: Mask | None = None) -> Cell:
    """``cell`` at ``rows``; NULL if ``there`` is False."""
    if isinstance(cell, Vec):
        values = cell.take(rows)
        if there is None:
            return values
        return Vec(values.values, there if values.valid is None else values.valid & there)
    if there is None:
        return cell.take(pa.array(rows))
    return cell.take(pa.array(rows, mask=~there))


def write_records(
    table: StateTable,
    layout: Layout,
    accumulators: Mapping[str, AnyAccumulator],
    rows: GroupedRows,
    after: Mapping[str, Cells],
    existed: Mask,
    exists: Mask,
) -> None:
    """Writes the touched records, and tombstones for deleted keys; nothing for keys that came and went.

    A record without accumulators never changes: only new ones are written.
    """
    touched = existed | exists if accumulators or layout.ttl else ~existed
    columns = dict(zip((f.name for f in layout.keys), rows.keys, strict=True))
    for name, accumulator in accumulators.items():
        for field, cell in zip(accumulator.fields, after[name], strict=False):
            columns[field.name] = as_array(cell, field.type)
    hashes, deleted = rows.hashes, ~exists
    if not touched.all():
        picks = np.flatnonzero(touched)
        hashes, deleted = hashes[picks], deleted[picks]
        columns = {name: column.take(pa.array(picks)) for name, column in columns.items()}
    table.put(hashes, columns, deleted if deleted.any() else None)
