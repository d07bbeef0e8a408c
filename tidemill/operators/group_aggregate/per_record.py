"""One epoch of a group aggregation with Flink's change for every input row (mini-batch off).

Most aggregations run in one pass: accumulators give their value after each row (``GroupedRows.running``), and
each row emits the change from the value before it. A key whose row count falls to 0 starts again with its
next row. As in Flink's GroupAggFunction, retractions from a key without rows are ignored.

Aggregates that collect values (LISTAGG and similar) run in rounds: round j processes the j-th row of each
key, so there are as many rounds as the busiest key has rows. Aggregations whose changes are versions also run
in rounds if the input retracts rows, because an update is one change.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from tidemill.changelog.columns import Ints, Mask, Vec, single, to_arrow, vector
from tidemill.changelog.emit import net_changes
from tidemill.changelog.grouping import Groups
from tidemill.operators.aggregates.api import Cells
from tidemill.operators.aggregates.records import (
    ROWS,
    is_runnable,
    is_simple,
    stored_cells,
    take_cell,
    write_records,
)
from tidemill.operators.group_aggregate.net import advance_groups, as_output, compare_results
from tidemill.operators.group_aggregate.shape import GroupShape
from tidemill.operators.rows.grouped import GroupedRows, segmented_accumulate
from tidemill.operators.rows.turns import turns
from tidemill.state.lookup import Answers
from tidemill.state.store import StateStore


def per_record_step(spec: GroupShape, table: pa.Table, store: StateStore) -> pa.Table:
    """The changes of an epoch in arrival order; ``table`` is in arrival order."""
    rows = spec.grouped(table)
    in_one_pass = all(is_simple(a) or is_runnable(a) for a in spec.accumulators.values())
    if in_one_pass and not (spec.timed and spec.retracts):
        return _running(spec, rows, store)
    return _rounds(spec, rows, store)


def _rounds(spec: GroupShape, rows: GroupedRows, store: StateStore) -> pa.Table:
    tables, numbers = [spec.output_schema().empty_table()], [np.zeros(0, np.int64)]
    for chosen in turns(rows.table, rows.groups, updates=spec.timed):
        changes_and_rows = advance_groups(spec, spec.grouped(rows.table.take(pa.array(chosen))), store)
        if changes_and_rows is not None:
            tables.append(changes_and_rows[0])
            numbers.append(chosen[changes_and_rows[1]])
    order = np.argsort(np.concatenate(numbers), kind="stable")
    return pa.concat_tables(tables).take(pa.array(order))


@dataclass(frozen=True, slots=True)
class _Lives:
    """The lives of a key: segments of rows between which the key had no rows. Arrays are per row in group
    order.

    ``ignored``: retracted from a key without rows. ``existed``/``exists``: whether the key has rows before
    and after this one. ``inherits``: the segment continues the stored record.
    """

    starts: Ints
    ignored: Mask
    existed: Mask
    exists: Mask
    inherits: Mask


def values_after_each(spec: GroupShape, table: pa.Table, store: StateStore) -> list[pa.Array]:
    """Each call's value after every row of ``table``, which is insert-only, for simple accumulators."""
    rows = spec.grouped(table)
    _, _, after = _advanced(spec, rows, store)
    back = np.empty(len(rows.groups.order), np.int64)
    back[rows.groups.order] = np.arange(len(back))
    return [aggregate.result(after).take(pa.array(back)) for aggregate in spec.aggregates]


def _running(spec: GroupShape, rows: GroupedRows, store: StateStore) -> pa.Table:
    return _show(spec, rows, *_advanced(spec, rows, store))


def _advanced(
    spec: GroupShape, rows: GroupedRows, store: StateStore
) -> tuple[_Lives, dict[str, Cells], dict[str, Cells]]:
    """The accumulators before the epoch, by key, and after each row; the records are written."""
    table = store.table(spec.layout)
    records = table.lookup(rows.hashes, rows.keys)
    lives = _retracting_lives(rows, records) if spec.retracts else _append_lives(rows, records)
    rows.running = True
    if lives.ignored.any() and rows.weights is not None:
        rows.weights = np.where(lives.ignored, 0, rows.weights)
    for view in spec.views:
        view.feed(rows, store)
    parts = replace(rows, groups=Groups(rows.groups.order, lives.starts))
    owner = rows.groups.ids()
    old: dict[str, Cells] = {}
    after: dict[str, Cells] = {}
    for name, accumulator in spec.accumulators.items():
        old[name] = stored_cells(records, accumulator)
        if is_runnable(accumulator):
            after[name] = accumulator.run(old[name], rows, store.table(accumulator.layout))
            continue
        assert is_simple(accumulator)
        inherited = tuple(take_cell(cell, owner, lives.inherits) for cell in old[name])
        after[name] = accumulator.merge(inherited, accumulator.delta(parts))
    for accumulator in spec.accumulators.values():
        if is_runnable(accumulator):
            accumulator.take_in(rows, store.table(accumulator.layout))
    last = rows.groups.starts + rows.groups.sizes - 1
    final = {name: tuple(take_cell(cell, last) for cell in cells) for name, cells in after.items()}
    write_records(table, spec.layout, spec.accumulators, rows, final, records.there, lives.exists[last])
    return lives, old, after


def _append_lives(rows: GroupedRows, records: Answers) -> _Lives:
    n, starts = len(rows.groups.order), rows.groups.starts
    existed = np.ones(n, np.bool_)
    existed[starts] = records.there
    inherits = np.repeat(records.there, rows.groups.sizes)
    return _Lives(starts, np.zeros(n, np.bool_), existed, np.ones(n, np.bool_), inherits)


def _retracting_lives(rows: GroupedRows, records: Answers) -> _Lives:
    """Row counts never fall below zero: a retraction that would make them negative is ignored."""
    groups = rows.groups
    n, starts, sizes = len(groups.order), groups.starts, groups.sizes
    counts = records.vec(ROWS.name)
    stored = np.where(records.there, counts.values, 0)
    weights = np.ones(n, np.int64) if rows.weights is None else rows.weights
    raw = segmented_accumulate(np.add, weights, starts) + np.repeat(stored, sizes)
    debt = np.minimum(segmented_accumulate(np.minimum, raw, starts), 0)
    row_counts = raw - debt
    exists = row_counts > 0
    existed = np.empty(n, np.bool_)
    existed[1:] = exists[:-1]
    existed[starts] = records.there
    ignored = ~existed & (weights < 0)
    fresh = ~existed
    fresh[starts] = True
    inherits = np.repeat(records.there, sizes) & ~segmented_accumulate(np.logical_or, ~existed, starts)
    return _Lives(np.flatnonzero(fresh), ignored, existed, exists, inherits)


def _show(
    spec: GroupShape,
    rows: GroupedRows,
    lives: _Lives,
    old: dict[str, Cells],
    after: dict[str, Cells],
) -> pa.Table:
    n, groups = len(rows.groups.order), rows.groups
    previous = np.arange(n) - 1 + groups.count
    previous[groups.starts] = np.arange(groups.count)
    new = [aggregate.result(after) for aggregate in spec.aggregates]
    first = [aggregate.result(old) for aggregate in spec.aggregates]
    before = [
        single(pa.chunked_array([a, b], b.type)).take(pa.array(previous))
        for a, b in zip(first, new, strict=True)
    ]
    same, bits = compare_results(spec, before, new, n)
    changes = net_changes(lives.existed, lives.exists & ~lives.ignored, same, spec.emit_update_before)
    arrival = np.argsort(groups.order[changes.owners], kind="stable")
    changes = replace(
        changes,
        owners=changes.owners[arrival],
        after=changes.after[arrival],
        kinds=changes.kinds[arrival],
    )
    key_rows = pa.array(groups.ids()[changes.owners])
    columns = {name: key.take(key_rows) for (name, _), key in zip(spec.keys, rows.keys, strict=True)}
    for call, a, b in zip(spec.calls, before, new, strict=True):
        columns[call.name] = changes.pick(a, b)
    if spec.mark:
        columns[spec.mark] = pa.array(bits[changes.owners])
    for name in spec.handed_on:
        own = vector(rows.array(name)).values
        columns[name] = to_arrow(Vec(own[changes.owners]), pa.int64())
    return as_output(spec, changes, columns)
