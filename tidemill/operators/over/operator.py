"""OVER on any changelog: computes touched partitions before and after the epoch, and emits the difference.

State: the partition's rows with their arrival, which breaks ties (earlier first). A row with changed results
gives -U/+U, a new row +I, a deleted row -D. Cost per epoch: all rows of the touched partitions.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa

from tidemill.changelog.batch import by_arrival, contiguous, hashes_of, one_by_one, weights_of
from tidemill.changelog.columns import Ints, Mask, Vec, is_fixed, single, to_arrow, vector
from tidemill.changelog.grouping import group_rows
from tidemill.changelog.hashing import hash_columns
from tidemill.changelog.rowkind import SEQUENCE_COLUMN, RowKind
from tidemill.changelog.values import rows_same
from tidemill.operators.aggregates.api import AggregateSpec
from tidemill.operators.api import EpochContext, KeptRows
from tidemill.operators.over.window import Frame, Window, evaluate
from tidemill.operators.rows.entries import (
    Entries,
    arrivals,
    entry_layout,
    kept_columns,
    load_entries,
    put_entries,
    surviving_additions,
    with_missing_columns,
)
from tidemill.operators.rows.ordering import OrderKey, codes, sort_rows
from tidemill.operators.rows.row_difference import bag_difference, copy_number
from tidemill.operators.rows.schemas import output_schema
from tidemill.operators.rows.stored_before import Late, mark_fields, marked
from tidemill.state.layout import Layout
from tidemill.state.store import StateStore


@dataclass(frozen=True, slots=True, kw_only=True)
class OverFunction:
    """A call over the window of ``order`` and ``frame``."""

    call: AggregateSpec
    order: tuple[OrderKey, ...]
    frame: Frame


@dataclass(frozen=True, kw_only=True)
class OverSpec:
    """``columns``: the row, (name, type); ``functions`` become columns after it.

    ``update_before``: every +U has a -U. ``insert_only``: the output has only +I, and no ``$kind`` column.
    ``late``: columns that earlier stored rows lack, and the epochs since which rows have them; None: by
    index.
    """

    columns: tuple[tuple[str, pa.DataType], ...]
    partition: tuple[str, ...]
    functions: tuple[OverFunction, ...]
    update_before: bool = True
    insert_only: bool = False
    sequence: bool = False
    state_ttl: int = 0
    late: Late | None = None

    @property
    def fingerprint(self) -> str:
        facts = f"over {self.columns} {self.partition} {self.functions}"
        return hashlib.sha256(facts.encode()).hexdigest()[:16]

    @property
    def kept(self) -> tuple[str, ...]:
        """The columns that are not of the partition key."""
        return kept_columns(self.columns, self.partition, self.late)

    @property
    def kept_rows(self) -> KeptRows:
        order = frozenset(key.name for function in self.functions for key in function.order)
        orders = {tuple(key.name for key in function.order) for function in self.functions}
        return KeptRows(
            layouts=(self.layout,),
            needed=order,
            finds=not self.state_ttl,
            order=orders.pop() if len(orders) == 1 else (),
        )

    @cached_property
    def layout(self) -> Layout:
        types = dict(self.columns)
        keys = tuple(pa.field(p, types[p]) for p in self.partition)
        types |= {f.name: f.type for f in mark_fields(self.late)}
        values = tuple(pa.field(n, types[n]) for n in self.kept)
        return entry_layout("rows", keys, values, self.state_ttl, self.late)

    def output_schema(self) -> pa.Schema:
        results = ((f.call.name, f.call.result) for f in self.functions)
        return output_schema((*self.columns, *results), kinds=not self.insert_only, sequence=self.sequence)

    def step(self, inputs: tuple[pa.Table, ...], state: StateStore, epoch: EpochContext) -> pa.Table:
        """The net change of the rows with their results."""
        (table,) = inputs
        if len(table) == 0:
            return self.output_schema().empty_table()
        state.now = epoch.time
        return _Step(self, state, epoch).run(contiguous(by_arrival(marked(table, self.late))))

    def take_in(self, port: int, rows: pa.Table, state: StateStore, epoch: EpochContext) -> None:
        """See ``operators.api.TakesRows``."""
        self.step((one_by_one(rows),), state, epoch)


_Results = tuple[Ints, list[pa.Array]]
"""Row numbers, and per call their values."""


@dataclass(slots=True)
class _Step:
    spec: OverSpec
    store: StateStore
    epoch: EpochContext

    def run(self, table: pa.Table) -> pa.Table:
        spec, state = self.spec, self.store.table(self.spec.layout)
        keys = [single(table.column(k)) for k in spec.partition]
        hashes = hashes_of(table, keys)
        groups = group_rows(hashes, keys)
        picks = pa.array(groups.heads)
        hashes, keys = hashes[groups.heads], [k.take(picks) for k in keys]
        weights, picks = weights_of(table), pa.array(groups.order)
        new = Entries(
            groups.ids(),
            vector(table.column(SEQUENCE_COLUMN)).values[groups.order],
            [single(table.column(n)).take(picks) for n in spec.kept],
            np.ones(len(table), np.int64) if weights is None else weights[groups.order],
            np.zeros(len(table), np.bool_),
        )
        rows = with_missing_columns(
            load_entries(spec.layout, state, hashes, keys).then(new), spec.kept, spec.late
        )
        left = surviving_additions(rows)
        columns = dict(zip(spec.kept, rows.columns, strict=True))
        columns |= {n: k.take(pa.array(rows.owners)) for n, k in zip(spec.partition, keys, strict=True)}
        arrival = arrivals(rows)
        before = self._results(rows.owners, columns, rows.old, arrival)
        after = self._results(rows.owners, columns, left, arrival)
        put_entries(spec.layout, state, rows, left, hashes, keys)
        return self._difference(rows.owners, columns, *_without_equal(before, after, len(rows)))

    def _results(self, owners: Ints, columns: dict[str, pa.Array], there: Mask, arrival: Ints) -> _Results:
        """The rows of ``there`` and each call's values for them."""
        live = np.flatnonzero(there)
        picks = pa.array(live)
        live_columns = {n: c.take(picks) for n, c in columns.items()}
        return live, evaluated(self.spec.functions, owners[live], live_columns, arrival[live])

    # -- output -----------------------------------------------------------------------------------

    def _difference(
        self,
        owners: Ints,
        columns: dict[str, pa.Array],
        before: _Results,
        after: _Results,
    ) -> pa.Table:
        spec, split = self.spec, len(before[0])
        row_numbers = np.concatenate([before[0], after[0]])
        picks = pa.array(row_numbers)
        owner = to_arrow(Vec(owners[row_numbers]), pa.int64())
        row = [columns[n].take(picks) for n in spec.kept]
        results = [single(pa.chunked_array([a, b])) for a, b in zip(before[1], after[1], strict=True)]
        full = _numbered([owner, *row, *results], len(row_numbers))
        goes, comes = bag_difference(full[:split], full[split:], len(row_numbers))
        comes = comes + split
        moved = np.concatenate([goes, comes])
        same_row = _numbered([c.take(pa.array(moved)) for c in (owner, *row)], len(moved))
        updated = _paired(same_row[: len(goes)], same_row[len(goes) :], len(moved))
        came = np.arange(len(moved)) >= len(goes)
        kinds = np.where(
            came,
            np.where(updated, RowKind.UPDATE_AFTER, RowKind.INSERT),
            np.where(updated, RowKind.UPDATE_BEFORE, RowKind.DELETE),
        )
        if not spec.update_before:
            visible = np.flatnonzero(kinds != RowKind.UPDATE_BEFORE)
            moved, kinds, came = moved[visible], kinds[visible], came[visible]
        order = np.lexsort((came, owners[row_numbers[moved]]))
        return self._table(columns, row_numbers, results, moved[order], kinds[order])

    def _table(
        self,
        columns: dict[str, pa.Array],
        row_numbers: Ints,
        results: list[pa.Array],
        rows: Ints,
        kinds: Ints,
    ) -> pa.Table:
        spec = self.spec
        picks, own = pa.array(rows), pa.array(row_numbers[rows])
        out = [columns[n].take(own) for n, _ in spec.columns] + [r.take(picks) for r in results]
        if not spec.insert_only:
            out.append(to_arrow(Vec(kinds.astype(np.int8)), pa.int8()))
        if spec.sequence:
            numbers = (self.epoch.epoch << 32) + np.arange(len(rows), dtype=np.int64)
            out.append(to_arrow(Vec(numbers), pa.int64()))
        return pa.Table.from_arrays(out, schema=spec.output_schema())


def _without_equal(before: _Results, after: _Results, size: int) -> tuple[_Results, _Results]:
    """Both results without the rows that have the same results before and after."""
    result_index = np.full((2, size), -1, np.int64)
    for index, (rows, _) in zip(result_index, (before, after), strict=True):
        index[rows] = np.arange(len(rows))
    both = np.flatnonzero((result_index >= 0).all(axis=0))
    calm = both[rows_same(before[1], result_index[0, both], after[1], result_index[1, both])]
    changed = []
    for index, (rows, results) in zip(result_index, (before, after), strict=True):
        moved = np.ones(len(rows), np.bool_)
        moved[index[calm]] = False
        chosen = np.flatnonzero(moved)
        picks = pa.array(chosen)
        changed.append((rows[chosen], [r.take(picks) for r in results]))
    return changed[0], changed[1]


def _numbered(identity: list[pa.Array], size: int) -> Ints:
    """A number per row, the same for equal rows."""
    groups = group_rows(hash_columns(identity, size), identity)
    numbers = np.empty(size, np.int64)
    numbers[groups.order] = groups.ids()
    return numbers


def _paired(goes: Ints, comes: Ints, size: int) -> Mask:
    """Of rows that go, then rows that come: whether the row is on the other side as well."""
    have, want = np.bincount(goes, minlength=size), np.bincount(comes, minlength=size)
    return np.concatenate([copy_number(goes) < want[goes], copy_number(comes) < have[comes]])


def with_results(spec: OverSpec, table: pa.Table) -> list[pa.Array]:
    """The calls' values for each row of a table that holds whole partitions; arrival is row order."""
    table = contiguous(table)
    columns = {n: single(table.column(n)).cast(kind) for n, kind in spec.columns}
    owners = _numbered([columns[k] for k in spec.partition], len(table))
    return evaluated(spec.functions, owners, columns, np.arange(len(table)))


def evaluated(
    calls: tuple[OverFunction, ...], owners: Ints, columns: dict[str, pa.Array], arrival: Ints
) -> list[pa.Array]:
    """Each call's values, row by row; calls of one order share a sort."""
    results: dict[OverFunction, pa.Array] = {}
    for order in dict.fromkeys(f.order for f in calls):
        functions = [f for f in calls if f.order == order]
        measures = [codes(columns[k.name], k) for k in order]
        rows = sort_rows(owners, measures, arrival)
        back = np.empty(len(rows), np.int64)
        back[rows] = np.arange(len(rows))
        window = _window(functions, owners[rows], [m[rows] for m in measures], columns, rows)
        for function in functions:
            results[function] = evaluate(function.call, function.frame, window).take(pa.array(back))
    return [results[f] for f in calls]


def _window(
    functions: list[OverFunction],
    owners: Ints,
    measures: list[Ints],
    columns: dict[str, pa.Array],
    rows: Ints,
) -> Window:
    fresh = np.ones(len(owners), np.bool_)
    np.not_equal(owners[1:], owners[:-1], out=fresh[1:])
    peers = fresh.copy()
    for code in measures:
        peers[1:] |= code[1:] != code[:-1]
    picks = pa.array(rows)
    names = sorted({a for f in functions for a in f.call.args})
    # Without arguments a column with the row indexes gives the number of rows.
    arguments = {n: columns[n].take(picks) for n in names} or {"": picks}
    values = next((v for f in functions if (v := _order_values(f, columns)) is not None), None)
    return Window(
        pa.table(arguments), np.flatnonzero(fresh), peers, None if values is None else values.take(rows)
    )


def _order_values(function: OverFunction, columns: dict[str, pa.Array]) -> Vec | None:
    """The order column as numbers that ascend, where a RANGE offset needs them."""
    frame, order = function.frame, function.order
    if frame.rows or len(order) != 1 or not (frame.lower or frame.upper):
        return None
    column = columns[order[0].name]
    if not is_fixed(column.type):
        return None
    vec = vector(column)
    values = vec.values[:, 0].view(np.int64) if vec.values.ndim == 2 else vec.values
    if order[0].ascending:
        return Vec(values if values.dtype.kind == "f" else values.astype(np.int64), vec.valid)
    # Integers are turned round without the sign, whose change wraps at the smallest.
    return Vec(-values if values.dtype.kind == "f" else ~values.astype(np.int64), vec.valid)
