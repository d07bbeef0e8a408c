"""One epoch of a group aggregation with one net change per key (mini-batch).

1. look up the records of the touched keys; 2. advance their accumulators; 3. buffer the new records;
4. show the keys whose result changed. A key born and gone within the epoch leaves no trace.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from tidemill.changelog.columns import Ints, Mask, Vec, to_arrow, vector
from tidemill.changelog.emit import Changes, changed_bits, net_changes, unchanged
from tidemill.changelog.rowkind import KIND_COLUMN
from tidemill.operators.aggregates.api import Cells
from tidemill.operators.aggregates.count import CountAccumulator
from tidemill.operators.aggregates.records import (
    ROWS,
    AnyAccumulator,
    is_folding,
    is_simple,
    is_stateful,
    stored_cells,
    write_records,
)
from tidemill.operators.group_aggregate.shape import GroupShape
from tidemill.operators.rows.grouped import GroupedRows
from tidemill.state.store import StateStore


def net_step(spec: GroupShape, rows: GroupedRows, store: StateStore) -> pa.Table:
    """The changes of an epoch, keys in hash order."""
    changes_and_rows = advance_groups(spec, rows, store)
    return spec.output_schema().empty_table() if changes_and_rows is None else changes_and_rows[0]


def advance_groups(spec: GroupShape, rows: GroupedRows, store: StateStore) -> tuple[pa.Table, Ints] | None:
    """The changes, and for each change a row number (in ``rows.table``) of its key; None if no rows count."""
    table = store.table(spec.layout)
    stored = table.lookup(rows.hashes, rows.keys)
    if spec.retracts:
        ghosts = _is_ghost(spec, rows, stored.there)
        if ghosts.any():
            return _without(spec, rows, ghosts, store)
    for view in spec.views:
        view.feed(rows, store)
    before: dict[str, Cells] = {}
    after: dict[str, Cells] = {}
    for name, accumulator in spec.accumulators.items():
        old = stored_cells(stored, accumulator)
        before[name], after[name] = _advance(spec, accumulator, old, rows, store)
    existed = stored.there
    exists = after[ROWS.name][0].values > 0 if spec.retracts else np.ones(len(existed), np.bool_)
    write_records(table, spec.layout, spec.accumulators, rows, after, existed, exists)
    return _changes_of(spec, rows, before, after, existed, exists)


def _advance(
    spec: GroupShape, accumulator: AnyAccumulator, old: Cells, rows: GroupedRows, store: StateStore
) -> tuple[Cells, Cells]:
    if is_stateful(accumulator):
        return accumulator.advance(old, rows, store.table(accumulator.layout))
    if is_folding(accumulator):
        return old, accumulator.step(old, rows)
    assert is_simple(accumulator)
    delta = accumulator.fold(rows) if spec.partial_input else accumulator.delta(rows)
    return old, accumulator.merge(old, delta)


def _is_ghost(spec: GroupShape, rows: GroupedRows, existed: Mask) -> Mask:
    """Keys without state whose rows add up to none: inserted and deleted, or retracted without an
    insertion."""
    counter: CountAccumulator = ROWS
    counts = (counter.fold(rows) if spec.partial_input else counter.delta(rows))[0].values
    ghosts: Mask = ~existed & (counts <= 0)
    return ghosts


def _without(
    spec: GroupShape, rows: GroupedRows, ghosts: Mask, store: StateStore
) -> tuple[pa.Table, Ints] | None:
    """The epoch without the rows of ghost keys: Flink ignores them, and they must not reach any state."""
    remaining_rows = np.sort(rows.groups.order[~np.repeat(ghosts, rows.groups.sizes)])
    if len(remaining_rows) == 0:
        return None
    changes_and_rows = advance_groups(spec, spec.grouped(rows.table.take(pa.array(remaining_rows))), store)
    return None if changes_and_rows is None else (changes_and_rows[0], remaining_rows[changes_and_rows[1]])


def _changes_of(
    spec: GroupShape,
    rows: GroupedRows,
    before: dict[str, Cells],
    after: dict[str, Cells],
    existed: Mask,
    exists: Mask,
) -> tuple[pa.Table, Ints]:
    new = [aggregate.result(after) for aggregate in spec.aggregates]
    old: list[Any] = [None] * len(new)
    same = np.zeros(len(existed), np.bool_)
    bits = np.full(len(existed), -1)
    if existed.any():
        old = [aggregate.result(before) for aggregate in spec.aggregates]
        same, bits = compare_results(spec, old, new, len(existed))
    changes = net_changes(existed, exists, same, spec.emit_update_before)
    columns = {
        name: key.take(pa.array(changes.owners)) for (name, _), key in zip(spec.keys, rows.keys, strict=True)
    }
    for call, a, b in zip(spec.calls, old, new, strict=True):
        columns[call.name] = changes.pick(a, b)
    if spec.mark:
        columns[spec.mark] = pa.array(bits[changes.owners])
    # An insert-only result comes with its first row.
    end = np.minimum if spec.insert_only else np.maximum
    for name in spec.handed_on:
        arrival = rows.reduce(end, vector(rows.array(name)).values)
        columns[name] = to_arrow(Vec(arrival[changes.owners]), pa.int64())
    return as_output(spec, changes, columns), rows.groups.heads[changes.owners]


def compare_results(
    spec: GroupShape, old: list[pa.Array], new: list[pa.Array], rows: int
) -> tuple[Mask, Ints]:
    """The results that do not change, and as bits the changed calls of the other results."""
    if spec.renews:
        return np.zeros(rows, np.bool_), np.full(rows, -1)
    if not spec.mark:
        return unchanged(old, new, rows), np.full(rows, -1)
    bits = changed_bits(old, new, rows)
    return bits == 0, bits


def as_output(spec: GroupShape, changes: Changes, columns: dict[str, pa.Array]) -> pa.Table:
    """The output table of ``changes``, with the hidden columns of the spec."""
    columns[KIND_COLUMN] = changes.kind_column()
    schema = spec.output_schema()
    return pa.table([columns[name] for name in schema.names], schema=schema)
