"""The stored content of slices, in one of two forms.

- ``Accumulated``: a record of accumulators per slice and key, which windows merge, for COUNT, SUM, MIN and
  similar calls over insert-only rows (counts and sums also over retractions).
- ``Collected``: the rows with their weights, for all other calls: DISTINCT, LISTAGG, retracted MIN, user
  functions.

Both are tables of *pieces*: ``$end`` (of a slice, or of a window), the keys, and a payload."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidemill.changelog.batch import contiguous, weights_of
from tidemill.changelog.columns import Hashes, Ints, Mask, Vec, is_fixed, single, to_arrow, vector
from tidemill.changelog.grouping import group_rows
from tidemill.changelog.hashing import hash_columns
from tidemill.changelog.rowkind import KIND_COLUMN
from tidemill.operators.aggregates.api import Cell
from tidemill.operators.aggregates.extreme import as_array
from tidemill.operators.aggregates.records import ROWS, is_simple, take_cell
from tidemill.operators.api import HASH_COLUMN, EpochContext
from tidemill.operators.group_aggregate.operator import GroupAggregateSpec
from tidemill.state.layout import Layout
from tidemill.state.run import DUE, WEIGHT
from tidemill.state.store import StateStore
from tidemill.state.timeline import TimeTable, by_time_order

END = "$end"
SLICES = "slices"


class PartialAggregates(Protocol):
    """``group``: the aggregation by ``$end`` and the keys."""

    @property
    def layout(self) -> Layout: ...

    def cut(self, rows: pa.Table) -> pa.Table:
        """Input rows, with ``$end``, as pieces."""
        ...

    def add(self, pieces: pa.Table, slices: TimeTable) -> None:
        """Puts pieces to those that are kept."""
        ...

    def stored(self, entries: pa.Table) -> pa.Table:
        """Entries of the state table as pieces."""
        ...

    def folded(self, pieces: pa.Table) -> pa.Table:
        """``pieces``, which are not empty, with pieces of one identity merged."""
        ...

    def together(self, ended: pa.Table, fresh: pa.Table) -> pa.Table:
        """Both as one table. For accumulators each table, and so the result, has one piece per identity."""
        ...

    @property
    def schema(self) -> pa.Schema:
        """Of pieces."""
        ...

    def prefixes(self, pieces: pa.Table, starts: Ints, last: Ints) -> pa.Table:
        """For each index in ``last`` the merged content of its segment up to that piece, as the window with
        that number (the index in ``last``). Segments begin at ``starts``."""
        ...

    def results(self, pieces: pa.Table, scratch: StateStore, epoch: EpochContext) -> pa.Table:
        """One row per ``$end`` and key: these, then the calls' results."""
        ...


def pieces_of(group: GroupAggregateSpec, keys: tuple[tuple[str, pa.DataType], ...]) -> PartialAggregates:
    """The cheaper form that can hold what ``group`` needs; ``keys`` are those without ``$end``."""
    if group.folds:
        return Accumulated(group=group, keys=keys)
    return Collected(group=group, keys=keys)


@dataclass(frozen=True, kw_only=True)
class Accumulated:
    """One record per slice and key."""

    group: GroupAggregateSpec
    keys: tuple[tuple[str, pa.DataType], ...]

    @cached_property
    def layout(self) -> Layout:
        fields = tuple(f for a in self.group.accumulators.values() for f in a.fields)
        return Layout(name=SLICES, keys=_fields(self.keys), columns=fields, by_time=True)

    def cut(self, rows: pa.Table) -> pa.Table:
        return self.group.combine(_spread(rows, self.group)).drop_columns([HASH_COLUMN])

    def add(self, pieces: pa.Table, slices: TimeTable) -> None:
        if len(pieces) == 0:
            return
        names = [name for name, _ in self.keys]
        ends = vector(single(pieces.column(END))).values
        hashes = hash_columns([pieces.column(name) for name in names], len(pieces))
        pieces = pieces.take(pa.array(order := by_time_order(ends, hashes)))
        ends, hashes = ends[order], hashes[order]
        columns = contiguous(pieces)
        stored = slices.lookup(ends, hashes, [columns.column(name).chunk(0) for name in names])
        if stored.there.any():
            old = pa.table(
                {
                    END: to_arrow(Vec(ends), pa.int64()),
                    **{name: columns.column(name) for name in names},
                    **{f.name: stored.array(f.name) for f in self.layout.columns},
                },
                schema=pieces.schema,
            ).filter(pa.array(stored.there))
            columns = self.folded(pa.concat_tables([old, pieces]))
            ends = vector(columns.column(END)).values
            hashes = hash_columns([columns.column(name) for name in names], len(columns))
        slices.put(ends, hashes, {n: single(columns.column(n)) for n in columns.column_names if n != END})

    def stored(self, entries: pa.Table) -> pa.Table:
        return _renamed(entries, self.schema)

    def results(self, pieces: pa.Table, scratch: StateStore, epoch: EpochContext) -> pa.Table:
        return self.told(self.folded(pieces)) if len(pieces) else self.told(pieces)

    def told(self, pieces: pa.Table) -> pa.Table:
        """The results of pieces with distinct windows and keys."""
        cells = {
            accumulator.name: tuple(_cell(single(pieces.column(f.name))) for f in accumulator.fields)
            for accumulator in self.group.accumulators.values()
        }
        columns = {name: pieces.column(name) for name, _ in self.group.keys}
        columns |= {a.spec.name: a.result(cells) for a in self.group.aggregates}
        results = pa.table(columns)
        if not self.group.retracts:
            return results
        return results.filter(pa.array(vector(single(pieces.column(ROWS.fields[0].name))).values > 0))

    def together(self, ended: pa.Table, fresh: pa.Table) -> pa.Table:
        """``ended`` and ``fresh``, each with one piece per window and key, merged into one such table. Cost:
        that of the common windows."""
        both = np.isin(ends_of(fresh), np.unique(ends_of(ended))) if len(fresh) else np.zeros(0, np.bool_)
        if not both.any():
            return pa.concat_tables([ended, fresh])
        shared = self.folded(pa.concat_tables([ended, fresh.filter(pa.array(both))]))
        return pa.concat_tables([shared, fresh.filter(pa.array(~both))])

    @cached_property
    def schema(self) -> pa.Schema:
        fields = self.group.local_schema()
        return pa.schema([f for f in fields if f.name != HASH_COLUMN])

    def folded(self, pieces: pa.Table) -> pa.Table:
        """Pieces of one slice (or session) and key as one."""
        rows = self.group.grouped(contiguous(_spread(pieces, self.group)))
        columns = list(rows.keys)
        for accumulator in self.group.accumulators.values():
            assert is_simple(accumulator)
            cells = accumulator.fold(rows)
            columns += [as_array(c, f.type) for c, f in zip(cells, accumulator.fields, strict=True)]
        return pa.table(columns, schema=self.schema)

    def prefixes(self, pieces: pa.Table, starts: Ints, last: Ints) -> pa.Table:
        """One record each. Cost: a merge of all pieces for every doubling of the longest segment."""
        size = len(pieces)
        position = np.arange(size) - np.repeat(starts, np.diff(starts, append=size))
        columns = {name: single(pieces.column(name)).take(pa.array(last)) for name, _ in self.keys}
        columns[END] = pa.array(np.arange(len(last), dtype=np.int64))
        for accumulator in self.group.accumulators.values():
            assert is_simple(accumulator)
            cells = tuple(_cell(single(pieces.column(f.name))) for f in accumulator.fields)
            step = 1
            while step <= position.max(initial=0):
                before = np.maximum(np.arange(size) - step, 0)
                earlier = tuple(take_cell(cell, before, position >= step) for cell in cells)
                cells = accumulator.merge(earlier, cells)
                step *= 2
            for field, cell in zip(accumulator.fields, cells, strict=True):
                columns[field.name] = as_array(take_cell(cell, last), field.type)
        return pa.table([columns[name] for name in self.schema.names], schema=self.schema)

    def runs(self, pieces: pa.Table, segments: Ints, first: Ints, last: Ints) -> pa.Table:
        """The content of each run of positions ``first`` to ``last`` within one of the ``segments``: one
        record, as the window of that number (the index in ``first``). Cost: a merge of all pieces and a merge
        of all runs for every doubling of the longest run."""
        size, lengths = len(pieces), last - first + 1
        columns = {name: single(pieces.column(name)).take(pa.array(first)) for name, _ in self.keys}
        columns[END] = pa.array(np.arange(len(first), dtype=np.int64))
        for accumulator in self.group.accumulators.values():
            assert is_simple(accumulator)
            cells = tuple(_cell(single(pieces.column(f.name))) for f in accumulator.fields)
            merged_cells = tuple(take_cell(cell, first) for cell in cells)
            next_piece, step = first, 1
            while True:
                # A run is made of those powers of two that its length is; ``cells`` are of ``step`` pieces.
                adds = lengths & step > 0
                part = tuple(take_cell(cell, np.minimum(next_piece, size - 1)) for cell in cells)
                begun = lengths & (step - 1) > 0
                merged = accumulator.merge(tuple(_there(cell, begun) for cell in merged_cells), part)
                merged_cells = tuple(_chosen(adds, *pair) for pair in zip(merged, merged_cells, strict=True))
                next_piece, step = next_piece + step * adds, step * 2
                if step > lengths.max(initial=0):
                    break
                behind = np.minimum(np.arange(size) + step // 2, size - 1)
                alike = (segments[behind] == segments) & (behind - np.arange(size) == step // 2)
                cells = accumulator.merge(tuple(take_cell(c, behind, alike) for c in cells), cells)
            for field, cell in zip(accumulator.fields, merged_cells, strict=True):
                columns[field.name] = as_array(cell, field.type)
        return pa.table([columns[name] for name in self.schema.names], schema=self.schema)

    def settle(self, pieces: pa.Table, end: int) -> pa.Table:
        """Pieces of slices that all later windows share, moved to the last of these slices."""
        column_index = pieces.schema.get_field_index(END)
        moved = pieces.set_column(column_index, END, pa.array(np.full(len(pieces), end, np.int64)))
        return self.folded(moved)


@dataclass(frozen=True, kw_only=True)
class Collected:
    """Every row of a slice, with its weight."""

    group: GroupAggregateSpec
    keys: tuple[tuple[str, pa.DataType], ...]

    @cached_property
    def layout(self) -> Layout:
        return Layout(name=SLICES, keys=_fields(self.keys), values=self._values, additive=True, by_time=True)

    @cached_property
    def _values(self) -> tuple[pa.Field, ...]:
        """The columns that the calls read."""
        fields: dict[str, pa.DataType] = {}
        for call in self.group.calls:
            fields |= zip(call.args, call.arg_types, strict=True)
            if call.filter is not None:
                fields[call.filter] = pa.bool_()
        if self.group.needs_sequence:
            fields["$seq"] = pa.int64()
        key_names = {name for name, _ in self.keys}
        return _fields(tuple((name, kind) for name, kind in fields.items() if name not in key_names))

    def cut(self, rows: pa.Table) -> pa.Table:
        weights = weights_of(rows)
        each = np.ones(len(rows), np.int64) if weights is None else weights
        names = [f.name for f in self.schema if f.name != WEIGHT]
        pieces = rows.select(names).append_column(WEIGHT, pa.array(each))
        return pieces.cast(self.schema)

    def add(self, pieces: pa.Table, slices: TimeTable) -> None:
        if len(pieces) == 0:
            return
        pieces = self.folded(pieces)
        chosen = {name: single(pieces.column(name)) for name in pieces.column_names}
        ends = vector(chosen.pop(END)).values
        hashes = hash_columns([chosen[f.name] for f in self.layout.keys], len(ends))
        codes = self.layout.codes(hashes, [chosen[f.name] for f in self.layout.values])
        slices.put(ends, codes, chosen)

    def folded(self, pieces: pa.Table) -> pa.Table:
        """Equal rows merged with the sum of their weights, without rows of weight 0."""
        pieces = contiguous(pieces)
        columns = [pieces.column(name).chunk(0) for name in pieces.column_names if name != WEIGHT]
        groups = group_rows(hash_columns(columns, len(pieces)), columns)
        weights = np.add.reduceat(vector(pieces.column(WEIGHT)).values[groups.order], groups.starts)
        heads = groups.heads[weights != 0]
        column_index = pieces.schema.get_field_index(WEIGHT)
        return pieces.take(pa.array(heads)).set_column(column_index, WEIGHT, pa.array(weights[weights != 0]))

    def stored(self, entries: pa.Table) -> pa.Table:
        return _renamed(entries, self.schema)

    def together(self, ended: pa.Table, fresh: pa.Table) -> pa.Table:
        return pa.concat_tables([ended, fresh])

    def prefixes(self, pieces: pa.Table, starts: Ints, last: Ints) -> pa.Table:
        first = starts[np.searchsorted(starts, last, side="right") - 1]
        counts = last - first + 1
        ends = np.cumsum(counts)
        rows = np.arange(int(counts.sum())) - np.repeat(ends - counts - first, counts)
        return at_ends(pieces, rows, np.repeat(np.arange(len(last)), counts))

    def results(self, pieces: pa.Table, scratch: StateStore, epoch: EpochContext) -> pa.Table:
        weights = vector(single(pieces.column(WEIGHT))).values
        # Retractions in other pieces cancel rows here; a row is repeated by its weight.
        rows = np.repeat(np.arange(len(pieces)), np.abs(weights))
        table = pieces.drop_columns([WEIGHT]).take(pa.array(rows))
        if (weights < 0).any():
            kinds = np.where(weights[rows] < 0, 3, 0).astype(np.int8)
            table = table.append_column(KIND_COLUMN, pa.array(kinds))
        return self.group.step((_spread(table, self.group),), scratch, epoch)

    @cached_property
    def schema(self) -> pa.Schema:
        parts = [pa.field(END, pa.int64()), *self.layout.keys, *self.layout.values]
        return pa.schema([*parts, pa.field(WEIGHT, pa.int64())])


@dataclass(frozen=True, kw_only=True)
class Whole(Collected):
    """Every row with all its columns, for a window that emits its rows instead of aggregates."""

    rows: tuple[tuple[str, pa.DataType], ...]

    @cached_property
    def _values(self) -> tuple[pa.Field, ...]:
        return _fields(self.rows)

    def results(self, pieces: pa.Table, scratch: StateStore, epoch: EpochContext) -> pa.Table:
        pieces = self.folded(pieces)
        weights = vector(single(pieces.column(WEIGHT))).values
        rows = np.repeat(np.arange(len(pieces)), np.maximum(weights, 0))
        return pieces.drop_columns([WEIGHT]).take(pa.array(rows))


def _cell(column: pa.Array) -> Cell:
    return vector(column) if is_fixed(column.type) else column


def _there(cell: Cell, rows: Mask) -> Cell:
    """NULL but at ``rows``."""
    return take_cell(cell, np.arange(len(rows)), rows)


def _chosen(rows: Mask, a: Cell, b: Cell) -> Cell:
    """``a`` at ``rows``, elsewhere ``b``."""
    if not isinstance(b, Vec):
        return pc.if_else(pa.array(rows), as_array(a, b.type), b)
    valid = None if a.valid is None and b.valid is None else np.where(rows, a.mask(), b.mask())
    chosen = rows.reshape(-1, *[1] * (a.values.ndim - 1))
    return Vec(np.where(chosen, a.values, b.values), valid)


def _fields(columns: tuple[tuple[str, pa.DataType], ...]) -> tuple[pa.Field, ...]:
    return tuple(pa.field(name, kind) for name, kind in columns)


def _renamed(entries: pa.Table, schema: pa.Schema) -> pa.Table:
    """``entries`` with ``$end`` for the time they are due, and only the columns of ``schema``."""
    names = [DUE if f.name == END else f.name for f in schema]
    return entries.select(names).rename_columns(schema.names).cast(schema)


def _spread(rows: pa.Table, group: GroupAggregateSpec) -> pa.Table:
    """Rows with the ``$hash`` of ``$end`` and keys, which tells the windows of a key apart."""
    if HASH_COLUMN in rows.schema.names:
        rows = rows.drop_columns([HASH_COLUMN])
    hashes: Hashes = hash_columns([rows.column(name) for name, _ in group.keys], len(rows))
    return rows.append_column(HASH_COLUMN, to_arrow(Vec(hashes), pa.uint64()))


def layout_by_window(layout: Layout) -> Layout:
    """Of a table that holds what ``layout`` does, by window in place of by slice."""
    return replace(layout, name=f"{layout.name}-strays")


def ends_of(pieces: pa.Table) -> Ints:
    """``$end`` of every piece."""
    ends: Ints = vector(single(pieces.column(END))).values
    return ends


def at_ends(pieces: pa.Table, rows: Ints, ends: Ints) -> pa.Table:
    """The pieces of ``rows``, as those of windows that end at ``ends``."""
    column_index = pieces.schema.get_field_index(END)
    return pieces.take(pa.array(rows)).set_column(column_index, END, pa.array(ends))
