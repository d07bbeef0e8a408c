"""One row per key, which the next row replaces: the kernel of operators that keep a key's current row.

A record holds the key's current row. The operator chooses which input rows count (``Candidates``); here each
becomes the key's row (or its end), and shows the step from the row before it. Cost: the rows of the epoch and
one record per touched key.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from tidemill.changelog.batch import by_arrival, contiguous, hashes_of
from tidemill.changelog.columns import Ints, Mask, Vec, is_fixed, single, to_arrow, vector
from tidemill.changelog.emit import net_changes
from tidemill.changelog.grouping import Groups, group_rows
from tidemill.changelog.rowkind import KIND_COLUMN, SEQUENCE_COLUMN
from tidemill.changelog.values import rows_same
from tidemill.changelog.watermarks import WATERMARK_COLUMN
from tidemill.operators.rows.schemas import output_schema
from tidemill.state.layout import Layout
from tidemill.state.lookup import Answers
from tidemill.state.table import StateTable

Columns = tuple[tuple[str, pa.DataType], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RowsByKey:
    """The form of the records, and how changes are emitted. ``columns``: the row's columns, including the
    keys. ``skip_equal``: a row that equals the row it replaces emits nothing. ``timed``: rows carry their
    watermark, and a change carries the watermark of the row that made it."""

    name: str
    columns: Columns
    keys: tuple[str, ...]
    ttl: int
    update_before: bool
    skip_equal: bool
    by_arrival: bool
    sequence: bool
    timed: bool = False

    @property
    def layout(self) -> Layout:
        types = dict(self.columns)
        return Layout(
            name=self.name,
            keys=tuple(pa.field(name, types[name]) for name in self.keys),
            columns=tuple(pa.field(n, t) for n, t in self.columns if n not in self.keys),
            ttl=self.ttl,
        )

    def output_schema(self) -> pa.Schema:
        return output_schema(self.columns, kinds=True, sequence=self.sequence, timed=self.timed)


@dataclass(frozen=True, slots=True)
class KeyedTable:
    """An epoch's rows in arrival order, grouped by key, with the touched records."""

    table: pa.Table
    groups: Groups
    keys: list[pa.Array]
    hashes: np.ndarray[tuple[int], np.dtype[np.uint64]]
    stored: Answers


@dataclass(frozen=True, slots=True)
class Candidates:
    """``places``: ascending places in group order; ``alive``: the row stands (False: its key ends)."""

    places: Ints
    alive: Mask

    def last_of_each(self, groups: Groups) -> Candidates:
        owners = np.searchsorted(groups.starts, self.places, side="right")
        last = np.append(owners[1:] != owners[:-1], True)[: len(owners)]
        return Candidates(self.places[last], self.alive[last])


def open_rows(shape: RowsByKey, table: pa.Table, state: StateTable) -> KeyedTable:
    """Orders and groups the input and reads the touched records."""
    table = contiguous(by_arrival(table) if SEQUENCE_COLUMN in table.schema.names else table)
    keys = [single(table.column(name)) for name in shape.keys]
    hashes = hashes_of(table, keys)
    groups = group_rows(hashes, keys)
    heads = groups.heads
    keys = [key.take(pa.array(heads)) for key in keys]
    return KeyedTable(table, groups, keys, hashes[heads], state.lookup(hashes[heads], keys))


def replace_rows(shape: RowsByKey, rows: KeyedTable, chosen: Candidates, state: StateTable) -> pa.Table:
    """Makes each candidate its key's row in turn; the changes that this shows."""
    if len(chosen.places) == 0:
        return shape.output_schema().empty_table()
    steps = _steps(rows, chosen, shape.by_arrival)
    both = _StoredThenNew.of(shape, rows, with_stored=bool(steps.existed.any()))
    same = np.zeros(len(steps.after), np.bool_)
    if shape.skip_equal and not shape.ttl:
        update = np.flatnonzero(steps.existed & steps.alive)
        values = [name for name, _ in shape.columns if name not in shape.keys]
        same[update] = both.same(values, steps.before[update], steps.after[update])
    written, columns = _write(both, rows, chosen, state)
    changes = net_changes(steps.existed, steps.alive, same, shape.update_before)
    changed_steps = changes.owners
    picks = np.where(changes.after, steps.after[changed_steps], steps.before[changed_steps])
    if np.array_equal(picks, written):
        output = dict(columns)
    else:
        output = {name: both.take(name, picks) for name, _ in shape.columns}
    output[KIND_COLUMN] = to_arrow(Vec(changes.kinds), pa.int8())
    for name in (*[SEQUENCE_COLUMN] * shape.sequence, *[WATERMARK_COLUMN] * shape.timed):
        own = vector(rows.table.column(name)).values
        output[name] = to_arrow(Vec(own[steps.after[changed_steps] - rows.groups.count]), pa.int64())
    schema = shape.output_schema()
    return pa.table([output[name] for name in schema.names], schema=schema)


@dataclass(frozen=True, slots=True)
class _StoredThenNew:
    """The stored rows, one per key, then the epoch's rows, under one count. Copies no column as a whole if
    the rows that are asked for are on one side. ``stored`` is empty if no key has a stored row."""

    stored: dict[str, pa.Array]
    new: dict[str, pa.Array]
    first_new: int

    @staticmethod
    def of(shape: RowsByKey, rows: KeyedTable, with_stored: bool) -> _StoredThenNew:
        names = [name for name, _ in shape.columns]
        stored = {name: _stored_column(shape, rows, name) for name in names if with_stored}
        new = {name: single(rows.table.column(name)) for name in names}
        return _StoredThenNew(stored, new, rows.groups.count)

    def take(self, name: str, numbers: Ints) -> pa.Array:
        column, numbers = self._side(name, numbers)
        return column.take(pa.array(numbers))

    def same(self, names: list[str], before: Ints, after: Ints) -> Mask:
        """Whether the rows ``before`` and ``after`` have the same values in the columns ``names``.

        Numbers are compared first, because most updates change a number; texts only where none has changed.
        """
        left = np.arange(len(before))
        for name in sorted(names, key=lambda name: not is_fixed(self.new[name].type)):
            (old, old_rows), (new, new_rows) = self._side(name, before[left]), self._side(name, after[left])
            left = left[rows_same([old], old_rows, [new], new_rows)]
        result = np.zeros(len(before), np.bool_)
        result[left] = True
        return result

    def _side(self, name: str, numbers: Ints) -> tuple[pa.Array, Ints]:
        """A column that has the rows ``numbers``, and the place of each in it."""
        new = self.new[name]
        if numbers.min(initial=self.first_new) >= self.first_new:
            return new, numbers - self.first_new
        stored = self.stored[name]
        if numbers.max(initial=0) < self.first_new:
            return stored, numbers
        return single(pa.chunked_array([stored, new], new.type)), numbers


@dataclass(frozen=True, slots=True)
class _Steps:
    """Row ``after`` replaces row ``before`` (numbers: the stored rows, then the epoch's)."""

    before: Ints
    after: Ints
    existed: Mask
    alive: Mask


def _steps(rows: KeyedTable, chosen: Candidates, by_arrival: bool) -> _Steps:
    """One step per candidate: key by key, or in the order of arrival."""
    groups = rows.groups
    owners = np.searchsorted(groups.starts, chosen.places, side="right") - 1
    first = np.append(True, owners[1:] != owners[:-1])
    numbers = groups.order[chosen.places]
    after = numbers + groups.count
    before = np.where(first, owners, np.roll(after, 1))
    existed = np.where(first, rows.stored.there[owners], np.roll(chosen.alive, 1))
    if not by_arrival:
        return _Steps(before, after, existed, chosen.alive)
    step_of = np.full(len(groups.order), -1)
    step_of[numbers] = np.arange(len(numbers))
    turn = step_of[step_of >= 0]
    return _Steps(before[turn], after[turn], existed[turn], chosen.alive[turn])


def _stored_column(shape: RowsByKey, rows: KeyedTable, name: str) -> pa.Array:
    """A column of the rows before the epoch, one per key."""
    if name in shape.keys:
        return rows.keys[shape.keys.index(name)]
    return rows.stored.array(name)


def stored_then_new(shape: RowsByKey, rows: KeyedTable, name: str) -> pa.Array:
    """A column of the rows before the epoch, one per key, then of the epoch's."""
    chunks = [_stored_column(shape, rows, name), *rows.table.column(name).chunks]
    return single(pa.chunked_array(chunks, dict(shape.columns)[name]))


def _write(
    both: _StoredThenNew, rows: KeyedTable, chosen: Candidates, state: StateTable
) -> tuple[Ints, dict[str, pa.Array]]:
    """Stores each touched key's last row, or its tombstone; nothing for a key that came and went.

    Gives the numbers of these rows, and their columns.
    """
    chosen = chosen.last_of_each(rows.groups)
    owners = np.searchsorted(rows.groups.starts, chosen.places, side="right") - 1
    final, alive = chosen.places, chosen.alive
    is_written = alive | rows.stored.there[owners]
    if not is_written.all():
        final, owners, alive = final[is_written], owners[is_written], alive[is_written]
    numbers = rows.groups.order[final] + both.first_new
    columns = {name: both.take(name, numbers) for name in both.new}
    state.put(rows.hashes[owners], columns, None if alive.all() else ~alive)
    return numbers, columns
