"""Writes rows into a table of state: what the tasks of an edit do, each with all rows of some partitions.

Families of tables (see ``state.layout``):

- *Records*: a row takes the place of the record of its identity, a row that is deleted leaves a tombstone. If
  other tables of the operator hold rows of the same key, these go with the record.
- *Multisets*: the partition's table is written anew with the rows' weights. A growing multiset cannot take
  rows back otherwise.
- *Rows of inputs* in a new savepoint: the operator takes them in (``intake``).
- *Open sessions*: records with the bounds of the session, which is kept beside them (``sessions``).

Rows are in the order of the layout's codes, which are computed here; ``check`` says what must hold of them.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidemill.changelog.columns import Hashes, Ints, Mask, Vec, single, to_arrow, vector
from tidemill.changelog.grouping import Groups, group_rows
from tidemill.changelog.hashing import hash_columns
from tidemill.changelog.rowkind import KIND_COLUMN, RowKind
from tidemill.changelog.values import rows_same
from tidemill.connectors.worker_errors import WorkerError
from tidemill.errors import TidemillError, ValidationError
from tidemill.files.storage import Storage
from tidemill.operators.aggregates.extreme import Extreme, as_array
from tidemill.operators.api import EpochContext
from tidemill.runtime.state_tables.intake import Intake
from tidemill.runtime.state_tables.invariants import (
    Broken,
    OpenWindows,
    check_records,
    check_required,
    check_times,
)
from tidemill.runtime.state_tables.sessions import BOUNDS, HEAD, SessionRules
from tidemill.runtime.state_tables.slices import first_values, have_slices
from tidemill.state.layout import Layout
from tidemill.state.lookup import Answers
from tidemill.state.run import DUE, HASH, WEIGHT
from tidemill.state.slices import KEY_GROUP_BITS, Slice
from tidemill.state.store import StateStore
from tidemill.state.timeline import by_time_order

PART = "part"
_UNKNOWN = "is not in the state: rows of this table can only be changed"
Part = tuple[int, int, int, tuple[tuple[str, int, int], ...]]
"""A partition: its number, its first key group, the one after its last, its slices."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What ``column`` of a record must be by the values in the table ``layout``. ``how``: their number
    ("count"), the least ("min") or the greatest ("max") of its key."""

    column: str
    layout: Layout
    how: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TableRules:
    """The changes that a table of state allows.

    - ``adds``: rows with a new identity may come.
    - ``derived``: columns that other tables of the operator determine.
    - ``required``: columns without NULL.
    - ``times``: the column with the number of copies of a row, '' if there is none.
    - ``counts``: the rows are records of an aggregation.
    - ``followers``: tables whose rows are removed with the rows of their key.
    - ``kept``: the reason why rows cannot be deleted, '' if they can.
    - ``told``: columns that are compared with other tables; all rows of a table are written after the rows of
      its ``followers``.
    - ``intake``: the operator takes in the rows itself.
    - ``windows``: each row is of a slice of these windows, by its end.
    - ``none``: counts that are 0 in all rows, because the values of ``sets`` tell them.
    - ``sets``: tables of the values of the same slices; all rows are written after these.
    - ``firsts``: tables of values with the first slice that has them, by the columns that count these values.
    - ``sessions``: each row is an open session.
    """

    layout: Layout
    adds: bool = False
    derived: tuple[str, ...] = ()
    required: tuple[str, ...] = ()
    times: str = ""
    counts: bool = False
    followers: tuple[Layout, ...] = ()
    kept: str = ""
    told: tuple[Told, ...] | None = None
    intake: Intake | None = None
    windows: OpenWindows | None = None
    none: frozenset[str] = frozenset()
    sets: tuple[Layout, ...] = ()
    firsts: Mapping[str, Layout] = field(default_factory=dict)
    sessions: SessionRules | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StateWriter:
    """``shown``: the table, as errors name it. ``columns``: the stored name of each given column; others than
    those of the layout are left out. ``names``: stored names, and those for people. ``parts``: see
    ``editing.parts_of``."""

    root: Storage
    operator: str
    shown: str
    rules: TableRules
    names: Mapping[str, str]
    parts: tuple[Part, ...]
    columns: tuple[str, ...]
    epoch: int
    now: int

    @property
    def layout(self) -> Layout:
        return self.rules.layout

    def route(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Rows with the place of their partition among ``parts``."""
        starts = np.array([first for _, first, _, _ in self.parts])
        for batch in batches:
            table = self._named(pa.Table.from_batches([batch]))
            groups = (self._hashes(table) >> np.uint64(64 - KEY_GROUP_BITS)).astype(np.int64)
            places = np.searchsorted(starts, groups, side="right") - 1
            yield batch.append_column(PART, pa.array(places.astype(np.int32)))

    def write(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """A token for each partition that has rows."""
        try:
            given = list(batches)
            if given:
                table = pa.Table.from_batches(given).combine_chunks()
                places = table.column(PART).to_numpy()
                for place in np.unique(places):
                    rows = table.filter(pa.array(places == place)).drop_columns([PART])
                    token = json.dumps(self._write(self.parts[place], rows))
                    yield pa.record_batch([pa.array([token])], names=["token"])
        except TidemillError as e:
            raise WorkerError(e) from e

    def _named(self, table: pa.Table) -> pa.Table:
        """The stored columns, by their stored names and of their types; others are NULL."""
        own = dict(zip(self.columns, table.columns, strict=False))
        weight = [pa.field(WEIGHT, pa.int64())] if self.layout.additive else []
        beside = BOUNDS if self.rules.sessions is not None else ()
        fields = (*self.layout.identity, *self.layout.columns, *beside, *weight)
        arrays = [own[f.name].cast(f.type) if f.name in own else pa.nulls(len(table), f.type) for f in fields]
        names, none = [f.name for f in fields], self.rules.none
        filled = [a.fill_null(0) if n in none else a for n, a in zip(names, arrays, strict=True)]
        return pa.table(filled, names=names)

    def _of(self, table: pa.Table, fields: Iterable[pa.Field]) -> list[pa.Array]:
        return [single(table.column(f.name)) for f in fields]

    def _hashes(self, table: pa.Table) -> Hashes:
        if self.rules.intake is not None:
            return self.rules.intake.hashes(table)
        return hash_columns(self._of(table, self.layout.keys), len(table))

    def _write(self, part: Part, given: pa.Table) -> dict[str, Any]:
        number, first, stop, slices = part
        rows = self._named(given)
        store = StateStore.open(
            self.root,
            self.operator,
            number,
            tuple(Slice(*s) for s in slices),
            self.epoch,
            groups=(first, stop),
            attempt=f"e{uuid.uuid4().hex[:8]}",
            now=self.now,
        )
        if self.rules.intake is not None:
            self._take_in(self.rules.intake, store, rows)
        elif self.layout.additive and self.rules.sessions is not None:
            self._put_session_values(self.rules.sessions, store, rows)
        elif self.layout.additive and self.layout.by_time:
            self._put_values(store, self._ordered(rows, _deletes(given))[0])
        elif self.layout.additive:
            self._count_anew(store, *self._ordered(rows, _deletes(given)))
        elif self.rules.sessions is not None:
            self._put_sessions(self.rules.sessions, store, rows, _deletes(given))
        else:
            self._replace(store, *self._ordered(rows, _deletes(given)))
        return {"rows": len(rows), "part": number, "groups": [first, stop], "manifest": store.flush()}

    def _ordered(self, rows: pa.Table, deletes: Mask) -> tuple[pa.Table, Mask]:
        """In the order of lookups. ValidationError where two are the same row."""
        dues = self._dues(rows)
        order = by_time_order(dues, self._codes(rows))
        rows, deletes = rows.take(pa.array(order)), deletes[order]
        identity = self._of(rows, self.layout.identity)
        self._check_once(rows, group_rows(hash_columns(identity, len(rows)), identity))
        return rows, deletes

    def _check_once(self, rows: pa.Table, groups: Groups) -> None:
        if groups.count < len(rows):
            twice = groups.heads[groups.sizes > 1][:1]
            raise ValidationError(f"Two rows for '{self.shown}' have the same key: {self._key(rows, twice)}.")

    def _take_in(self, intake: Intake, store: StateStore, rows: pa.Table) -> None:
        columns = {name: single(rows.column(name)) for name in rows.column_names}
        self._check(rows, check_required(columns, self.rules.required))
        groups = intake.twice(rows, self.columns)
        if groups is not None:
            self._check_once(rows, groups)
        self._check(rows, intake.broken(rows, self.columns))
        epoch = EpochContext(epoch=self.epoch, time=self.now, partition=store.partition)
        intake.take_in(rows, self.columns, store, epoch)

    def _dues(self, rows: pa.Table) -> Ints:
        """The time that each row is due; 0 in tables that are not by time."""
        if not self.layout.by_time:
            return np.zeros(len(rows), np.int64)
        self._check(rows, check_required({DUE: single(rows.column(DUE))}, (DUE,)))
        dues: Ints = vector(single(rows.column(DUE))).values
        return dues

    def _codes(self, rows: pa.Table) -> Hashes:
        return self.layout.codes(self._hashes(rows), self._of(rows, self.layout.coded))

    def _replace(self, store: StateStore, rows: pa.Table, deletes: Mask) -> None:
        codes, dues = self._codes(rows), self._dues(rows)
        found = self._found(store, rows, dues, codes)
        self._check(rows, self._broken(rows, deletes, found))
        if self.rules.told is not None:
            self._compare(store, rows)
        rows = self._beside_values(store, rows)
        columns = {name: single(rows.column(name)) for name in rows.column_names if name != DUE}
        gone = deletes if deletes.any() else None
        if self.layout.by_time:
            store.timeline(self.layout).put(dues, codes, columns, gone)
        else:
            store.table(self.layout).put(codes, columns, gone)
        if gone is not None:
            self._follow(store, rows.filter(pa.array(gone)))

    def _put_values(self, store: StateStore, rows: pa.Table) -> None:
        """Values of slices, each once."""
        rows = self._weighted(rows)
        columns = {name: single(rows.column(name)) for name in rows.column_names}
        checks = [check_required(columns, self.rules.required), check_times(columns, WEIGHT)]
        if self.rules.windows is not None:
            checks.append(self.rules.windows.broken(columns))
        self._check(rows, (each for check in checks for each in check))
        del columns[DUE]
        store.timeline(self.layout).put(self._dues(rows), self._codes(rows), columns)

    def _beside_values(self, store: StateStore, rows: pa.Table) -> pa.Table:
        """Slices with the counts that the tables of their values tell."""
        keys, windows = [f.name for f in self.layout.keys], self.rules.windows
        lacks = [t for t in self.rules.sets if not have_slices(store, rows, keys, t)]
        for name, layout in self.rules.firsts.items():
            assert windows is not None
            counts = first_values(store, rows, keys, layout, windows.windows)
            if counts is None:
                lacks.append(layout)
            else:
                column = pa.array(counts, pa.int64())
                rows = rows.set_column(rows.schema.get_field_index(name), name, column)
        if lacks:
            raise ValidationError(
                f"'{self.shown}' lacks slices and keys that the table '{lacks[0].name}' has."
            )
        return rows

    def _put_session_values(self, sessions: SessionRules, store: StateStore, rows: pa.Table) -> None:
        """Rows of new sessions, each of which has all rows with its key and bounds."""
        rows = self._weighted(rows)
        columns = {name: single(rows.column(name)) for name in rows.column_names}
        checks = [check_required(columns, self.rules.required), check_times(columns, WEIGHT)]
        self._check(rows, (each for check in checks for each in check))
        rows, heads = sessions.named_by_bounds(rows, store)
        rows, gone = self._ordered(rows.append_column(HEAD, pa.array(heads)), np.zeros(len(rows), np.bool_))
        own = rows.filter(single(rows.column(HEAD)))
        found = sessions.of(own, self._hashes(own), store)
        self._check(own, found.broken(gone[: len(own)]))
        found.put(gone[: len(own)])
        columns = {name: single(rows.column(name)) for name in rows.column_names}
        store.table(self.layout).put(self._codes(rows), columns)

    def _weighted(self, rows: pa.Table) -> pa.Table:
        """Without a column of weights each row is there once."""
        if WEIGHT in self.columns:
            return rows
        place = rows.schema.get_field_index(WEIGHT)
        return rows.set_column(place, WEIGHT, pa.array(np.ones(len(rows), np.int64)))

    def _put_sessions(
        self, sessions: SessionRules, store: StateStore, given: pa.Table, deletes: Mask
    ) -> None:
        rows, deletes = self._ordered(sessions.named(given, store), deletes)
        found = sessions.of(rows, self._hashes(rows), store)
        self._replace(store, rows, deletes)
        self._check(rows, found.broken(deletes))
        found.put(deletes)

    def _found(self, store: StateStore, rows: pa.Table, dues: Ints, codes: Hashes) -> Answers:
        identity = self._of(rows, (*self.layout.keys, *self.layout.values))
        if self.layout.by_time:
            return store.timeline(self.layout).lookup(dues, codes, identity)
        return store.table(self.layout).lookup(codes, identity)

    def _broken(self, rows: pa.Table, deletes: Mask, found: Answers) -> Iterator[Broken]:
        """What does not hold; of rows that go only that they are there."""
        there = found.there
        if not self.rules.adds:
            yield ~there, "", _UNKNOWN
        stays = ~deletes
        columns = {name: single(rows.column(name)) for name in rows.column_names}
        stored = {name: found.array(name) for name in self.rules.derived}
        broken = [check_required(columns, self.rules.required)]
        if self.rules.counts:
            payload = {f.name: columns[f.name] for f in self.layout.columns}
            broken.append(check_records(payload, there, stored))
        if self.rules.windows is not None:
            broken.append(self.rules.windows.broken(columns))
        if self.rules.times:
            broken.append(check_times(columns, self.rules.times))
        for checks in broken:
            yield from ((mask & stays, column, why) for mask, column, why in checks)

    def _compare(self, store: StateStore, rows: pa.Table) -> None:
        """The records with what their operator's other tables hold, of which each row has a record."""
        keys, hashes = self._of(rows, self.layout.keys), self._hashes(rows)
        for layout in self.rules.followers:
            owners, _ = store.table(layout).gather(hashes, keys)
            if len(owners) < len(store.table(layout).everything()):
                raise ValidationError(f"'{self.shown}' lacks keys that the table '{layout.name}' has.")
        for told in self.rules.told or ():
            owners, held = store.table(told.layout).gather(hashes, keys)
            expected = told_by(told, owners, held, rows.column(told.column).type, len(rows))
            places = np.arange(len(rows))
            given = single(rows.column(told.column))
            if told.how == "count":
                given = pc.fill_null(given, 0)
            differs = ~rows_same([given], places, [expected], places)
            self._check(rows, [(differs, told.column, "is not what the table of its values tells")])

    def _follow(self, store: StateStore, gone: pa.Table) -> None:
        """The rows of the same keys in other tables go as well."""
        keys, hashes = self._of(gone, self.layout.keys), self._hashes(gone)
        for layout in self.rules.followers:
            table = store.table(layout)
            owners, held = table.gather(hashes, keys)
            if not len(owners):
                continue
            values = [single(held.column(f.name)) for f in layout.values]
            own = [key.take(pa.array(owners)) for key in keys]
            columns = dict(zip([f.name for f in layout.identity], [*own, *values], strict=True))
            codes = layout.codes(hashes[owners], values)
            if layout.additive:
                weights = vector(single(held.column(WEIGHT))).values
                table.put(codes, {**columns, WEIGHT: to_arrow(Vec(-weights), pa.int64())})
            else:
                table.put(codes, columns, np.ones(len(owners), np.bool_))

    def _count_anew(self, store: StateStore, rows: pa.Table, deletes: Mask) -> None:
        """The multiset with these weights. Of a growing one equal rows may be stored apart."""
        table = store.table(self.layout)
        held = table.everything().select(rows.column_names)
        both = pa.concat_tables([held, rows.cast(held.schema)]).combine_chunks()
        identity = self._of(both, self.layout.identity)
        groups = group_rows(hash_columns(identity, len(both)), identity)
        last = groups.order[groups.starts + groups.sizes - 1]
        old = np.zeros(len(both), np.bool_)
        old[: len(held)] = True
        weights = vector(single(both.column(WEIGHT))).values.copy()
        totals = np.add.reduceat(weights[groups.order], groups.starts) if len(both) else weights
        weights[last] = np.where(old[last], totals, weights[last])
        place = both.schema.get_field_index(WEIGHT)
        both = both.set_column(place, WEIGHT, to_arrow(Vec(weights), pa.int64()))
        there = np.zeros(len(both), np.bool_)
        there[last] = groups.sizes > 1
        columns = {name: single(rows.column(name)) for name in rows.column_names}
        unknown = ~there[len(held) :] & (not self.rules.adds), "", _UNKNOWN
        checks = [*check_required(columns, self.rules.required), *check_times(columns, WEIGHT)]
        self._check(rows, [unknown, *((mask & ~deletes, column, why) for mask, column, why in checks)])
        stays = last[~np.concatenate([np.zeros(len(held), np.bool_), deletes])[last]]
        left = both.take(pa.array(stays))
        table.rows.clear()
        table.put(self._codes(left), {name: single(left.column(name)) for name in left.column_names})

    def _check(self, rows: pa.Table, broken: Iterable[Broken]) -> None:
        for mask, column, why in broken:
            if mask.any():
                what = f"column '{self.names.get(column, column)}'" if column else "it"
                key = self._key(rows, np.flatnonzero(mask)[:1])
                raise ValidationError(
                    f"A row for '{self.shown}' breaks the state: {what} {why}. The row: {key}."
                )

    def _key(self, rows: pa.Table, place: Ints) -> str:
        row = rows.take(pa.array(place)).select([f.name for f in self.layout.identity]).to_pylist()[0]
        named = {self.names.get(name, name): value for name, value in row.items()}
        return json.dumps(named, default=str, ensure_ascii=False)


def told_by(told: Told, owners: Ints, held: pa.Table, kind: pa.DataType, keys: int) -> pa.Array:
    """By key what its values tell. ``owners``: the key's number of each row that is ``held``, ascending."""
    if told.how == "count":
        return pa.array(np.bincount(owners, minlength=keys), pa.int64())
    if len(owners) == 0:
        return pa.nulls(keys, kind)
    values = single(held.column(told.layout.values[0].name))
    starts = np.flatnonzero(np.diff(owners, prepend=-1))
    best = Extreme(told.how == "min", kind).best(values, None, lambda fold, v: fold.reduceat(v, starts))
    places = np.full(keys, -1, np.int64)
    places[owners[starts]] = np.arange(len(starts))
    return as_array(best, kind).take(pa.array(places, mask=places < 0))


def _deletes(given: pa.Table) -> Mask:
    if KIND_COLUMN not in given.column_names:
        return np.zeros(len(given), np.bool_)
    kinds = vector(single(given.column(KIND_COLUMN))).values
    found: Mask = kinds == int(RowKind.DELETE)
    return found


def hashed_by_keys(rows: pa.Table, layout: Layout) -> bool:
    """Whether stored rows have the codes that the layout makes of their keys and values."""
    keys = hash_columns([single(rows.column(f.name)) for f in layout.keys], len(rows))
    codes = layout.codes(keys, [single(rows.column(f.name)) for f in layout.coded])
    return bool((codes == vector(single(rows.column(HASH))).values).all())
