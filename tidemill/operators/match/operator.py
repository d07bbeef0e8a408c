"""MATCH_RECOGNIZE: rows wait for the watermark, then are searched in the order of their time.

A row is late, and dropped, if the watermark had passed its time when it came (its ``$wm``). For each key the
operator keeps the rows from the start of the first open attempt on. With WITHIN an attempt ends when the
watermark passes its time plus the interval. A key is searched when it has due rows, when the interval of its
first open attempt is over, and at the end of the input.

Matches are emitted in the order in which they become known, with the watermark of that moment (``$wm``).
Cost: the due rows, and the kept rows of the searched keys. Memory: the due rows, and the search of one slice
of keys.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
import pyarrow as pa

from tidemill.changelog.batch import by_arrival, hashes_of, with_types
from tidemill.changelog.columns import Hashes, Ints, Mask, single, vector
from tidemill.changelog.rowkind import SEQUENCE_COLUMN
from tidemill.changelog.watermarks import END, WATERMARK_COLUMN
from tidemill.operators.api import EpochContext, KeptRows
from tidemill.operators.match.matcher import OPEN, Attempts, Matcher, Rows
from tidemill.operators.match.pattern import Paths, Piece, Variable
from tidemill.operators.match.skip import Search, Skip, SkipTo, search
from tidemill.operators.rows.entries import Entries, entry_layout, load_entries, put_entries
from tidemill.operators.rows.keyed_values import Keys
from tidemill.operators.rows.ordering import OrderKey, codes, sort_rows
from tidemill.operators.rows.schemas import output_schema
from tidemill.operators.rows.stored_before import Late
from tidemill.operators.rows.waiting import WaitingRows, each_copy
from tidemill.state.layout import Layout
from tidemill.state.run import HASH
from tidemill.state.store import StateStore

MICROSECONDS = 1000
_START = "$start"
SLICE_ROWS = 1 << 18
"""As many as are worth an array operation, and as fit the processor's caches."""


@dataclass(frozen=True, kw_only=True)
class MatchSpec:
    """``columns``: all that is kept of a row, (name, type); ``keys`` among them; ``order``: the time first.
    ``within`` in milliseconds. ``results``: output columns and the pieces they show, after the keys.
    ``late``: columns that rows stored before lack, and since when rows have them; None: they go by place."""

    columns: tuple[tuple[str, pa.DataType], ...]
    keys: tuple[str, ...]
    order: tuple[OrderKey, ...]
    variables: tuple[Variable, ...]
    conditions: tuple[tuple[str, Piece], ...]
    results: tuple[tuple[str, pa.DataType, Piece], ...]
    skip: Skip
    within: int | None = None
    sequence: bool = False
    keeps_time: bool = False
    late: Late | None = None

    @property
    def fingerprint(self) -> str:
        facts = (self.columns, self.keys, self.order, self.variables, self.conditions, self.skip, self.within)
        return hashlib.sha256(f"match {facts}".encode()).hexdigest()[:16]

    @cached_property
    def waiting(self) -> WaitingRows:
        """Rows that the watermark has not reached."""
        columns = (*self.columns, (SEQUENCE_COLUMN, pa.int64()))
        return WaitingRows(name="rows", columns=columns, keys=self.keys, late=self.late)

    @property
    def kept_rows(self) -> KeptRows:
        """Conditions are a part of the pattern: what they look at all rows have."""
        order = frozenset(key.name for key in self.order)
        return KeptRows(layouts=(self.waiting.layout, self.open, self.wake), needed=order)

    @cached_property
    def open(self) -> Layout:
        """The rows of open attempts. ``$start``: whether the row starts an attempt."""
        types = dict(self.columns)
        keys = tuple(pa.field(name, types[name]) for name in self.keys)
        values = tuple(pa.field(name, types[name]) for name in self.kept)
        return entry_layout("open", keys, (*values, pa.field(_START, pa.bool_())), 0, self.late)

    @cached_property
    def wake(self) -> Layout:
        """The times at which a key is searched without new rows."""
        return Layout(name="wake", keys=self.open.keys, by_time=True)

    @property
    def kept(self) -> tuple[str, ...]:
        return tuple(name for name, _ in self.columns if name not in self.keys)

    def output_schema(self) -> pa.Schema:
        types = dict(self.columns)
        columns = [*((name, types[name]) for name in self.keys), *(result[:2] for result in self.results)]
        return output_schema(columns, sequence=self.sequence, timed=self.keeps_time)

    def step(self, inputs: tuple[pa.Table, ...], state: StateStore, epoch: EpochContext) -> pa.Table:
        """The matches that are known by now."""
        due = self._due(with_types(inputs[0], dict(self.columns)), state, epoch)
        woken = state.timeline(self.wake).take_due(epoch.watermark)
        both = [pa.concat_arrays([single(due.column(n)), single(woken.column(n))]) for n in self.keys]
        own = hashes_of(due, [single(due.column(n)) for n in self.keys])
        hashes = np.concatenate([own, vector(woken.column(HASH)).values])
        parts = []
        for rows in key_slices(hashes) if len(hashes) else ():
            picks = pa.array(rows)
            keys, numbers = Keys.of([column.take(picks) for column in both], hashes[rows])
            rows = rows[: np.searchsorted(rows, len(due))]
            step = _Step(self, state, keys, epoch.watermark)
            part = due if len(rows) == len(due) else due.take(pa.array(rows))
            parts.append(step.run(part, numbers[: len(rows)]))
        return self._shown(parts, epoch)

    def _due(self, table: pa.Table, state: StateStore, epoch: EpochContext) -> pa.Table:
        """The rows that the watermark has reached; other rows are stored."""
        table = by_arrival(table) if len(table) else table
        waiting = each_copy(self.waiting.take(state, epoch.watermark))
        times, marks = self.times(table), _marks(table)
        late, ready = times <= marks, times <= epoch.watermark
        epoch.late.add(table, late)
        later = ~(late | ready)
        if later.any():
            self.waiting.put(state, self.waiting.weighted(table.filter(pa.array(later)), times[later]))
        chosen = pa.array(ready & ~late)
        # One column after the other, so that none but one is there twice.
        columns = []
        for name, kind in (*self.columns, (SEQUENCE_COLUMN, pa.int64())):
            came = table.column(name).filter(chosen)
            columns.append(single(pa.chunked_array([*waiting.column(name).chunks, *came.chunks], kind)))
        return pa.table(columns, names=[*(name for name, _ in self.columns), SEQUENCE_COLUMN])

    def times(self, table: pa.Table) -> Ints:
        """Of the rows, in milliseconds."""
        if len(table) == 0:
            return np.zeros(0, np.int64)
        times: Ints = vector(single(table.column(self.order[0].name))).values // MICROSECONDS
        return times

    def matches(self, rows: Rows, begins: Ints, startable: Mask) -> tuple[Attempts, Search]:
        """``begins``: the first row of each key; ``startable``: rows that a match may start at."""
        matcher = Matcher(self.variables, dict(self.conditions), rows, self.within)
        attempts = matcher.run(np.flatnonzero(startable))
        ends = rows.ends[begins] if len(begins) else begins
        return attempts, search(self.skip, attempts, begins, ends)

    def _shown(self, parts: list[_Found], epoch: EpochContext) -> pa.Table:
        """The output of the matches found in slices of ascending keys."""
        schema = self.output_schema()
        if not parts:
            return schema.empty_table()
        known_at = np.minimum(np.concatenate([part.known for part in parts]), END - 1)
        order = np.argsort(known_at, kind="stable")
        picks = pa.array(order)
        chunks = zip(*(part.columns for part in parts), strict=True)
        columns = [pa.concat_arrays(arrays).take(picks) for arrays in chunks]
        if self.sequence:
            columns.append(pa.array((epoch.epoch << 32) + np.arange(len(order), dtype=np.int64)))
        if self.keeps_time:
            columns.append(pa.array(known_at[order] - 1))
        return pa.Table.from_arrays(columns, schema=schema)

    def results_of(self, rows: Rows, attempts: Attempts, chosen: Ints) -> list[pa.Array]:
        """The keys and results of the attempts ``chosen``, which matched."""
        pieces = {name: piece for name, _, piece in self.results}
        paths = Paths(rows.table, pieces, attempts.starts[chosen], attempts.counts[:, chosen])
        names = [*self.keys, *pieces]
        types = self.output_schema().types
        return [paths.column(name).cast(kind) for name, kind in zip(names, types, strict=False)]

    def sorted(self, table: pa.Table, numbers: Ints, arrival: Ints) -> Ints:
        """The order of rows whose keys have these numbers."""
        measures = [codes(single(table.column(key.name)), key) for key in self.order]
        return sort_rows(numbers, measures, arrival)


def grouped(spec: MatchSpec, table: pa.Table, numbers: Ints, watermark: int) -> tuple[Rows, Ints]:
    """Sorted rows, and where each key's begin."""
    fresh = np.ones(len(numbers), np.bool_)
    fresh[1:] = numbers[1:] != numbers[:-1]
    begins = np.flatnonzero(fresh)
    sizes = np.diff(begins, append=len(numbers))
    rows = Rows(
        table=table,
        times=spec.times(table),
        groups=np.repeat(np.arange(len(begins)), sizes),
        ends=np.repeat(begins + sizes, sizes),
        watermark=watermark,
    )
    return rows, begins


@dataclass(frozen=True, slots=True)
class _Found:
    """Matches in the order of keys and rows: their output columns, and the times at which they became
    known."""

    columns: list[pa.Array]
    known: Ints


@dataclass(frozen=True, slots=True)
class _Step:
    """One step over the rows of some keys."""

    spec: MatchSpec
    store: StateStore
    keys: Keys
    watermark: int

    def run(self, due: pa.Table, numbers: Ints) -> _Found:
        entries = self._entries(due, numbers)
        spec = self.spec
        names = [*spec.kept, _START]
        table = pa.table(entries.columns, names=names)
        for name, column in zip(spec.keys, self.keys.take(entries.owners), strict=True):
            table = table.append_column(name, column)
        order = spec.sorted(table, entries.owners, entries.sequence)
        rows, begins = grouped(spec, table.take(pa.array(order)), entries.owners[order], self.watermark)
        starts = vector(single(rows.table.column(_START))).values.astype(np.bool_)
        attempts, search_result = spec.matches(rows, begins, starts)
        self._keep(entries, order, rows, begins, attempts, search_result)
        return _Found(spec.results_of(rows, attempts, search_result.matches), search_result.known)

    def _entries(self, due: pa.Table, numbers: Ints) -> Entries:
        """The kept rows of the keys, then those that are due."""
        spec = self.spec
        stored = load_entries(spec.open, self.store.table(spec.open), self.keys.hashes, self.keys.columns)
        columns = [single(due.column(name)) for name in spec.kept]
        new = Entries(
            numbers,
            vector(due.column(SEQUENCE_COLUMN)).values,
            [*columns, pa.array(np.ones(len(due), np.bool_))],
            np.ones(len(due), np.int64),
            np.zeros(len(due), np.bool_),
        )
        return stored.then(new)

    def _keep(
        self,
        entries: Entries,
        order: Ints,
        rows: Rows,
        begins: Ints,
        attempts: Attempts,
        search_result: Search,
    ) -> None:
        """Stores the rows from the first open attempt on. A row with a decided attempt starts no other
        attempt."""
        spec, size = self.spec, len(order)
        stays = np.arange(size) >= np.repeat(search_result.kept, np.diff(begins, append=size))
        were = vector(single(rows.table.column(_START))).values.astype(np.bool_)
        are = were
        if spec.skip.to is SkipTo.NEXT_ROW:
            are = np.zeros(size, np.bool_)
            are[attempts.starts[attempts.verdicts == OPEN]] = True
        left = np.zeros(size, np.bool_)
        left[order] = stays & (are == were)
        turned = order[stays & (are != were)]
        again = _starting_none(entries, turned)
        whole = entries.then(again)
        left = np.concatenate([left, np.ones(len(turned), np.bool_)])
        put_entries(spec.open, self.store.table(spec.open), whole, left, self.keys.hashes, self.keys.columns)
        self._wake(entries, order, rows, begins, search_result)

    def _wake(self, entries: Entries, order: Ints, rows: Rows, begins: Ints, search_result: Search) -> None:
        """Sets the time to search keys whose first open attempt is a new one: the end of that attempt."""
        spec = self.spec
        open_ = search_result.kept < rows.ends[begins]
        is_unchanged = entries.old[order[np.minimum(search_result.kept, len(order) - 1)]] & (
            search_result.kept == begins
        )
        first = search_result.kept[open_ & ~is_unchanged]
        if len(first) == 0:
            return
        numbers = entries.owners[order[first]]
        dues = np.full(len(first), END)
        if spec.within is not None:
            dues = rows.times[first] + spec.within - 1
        columns = dict(zip(spec.keys, self.keys.take(numbers), strict=True))
        self.store.timeline(spec.wake).put(dues, self.keys.hashes[numbers], columns)


def _starting_none(entries: Entries, rows: Ints) -> Entries:
    """``rows`` whose attempts are decided, but that belong to open attempts, as rows that start no
    attempt."""
    picks = pa.array(rows)
    columns = [column.take(picks) for column in entries.columns[:-1]]
    return Entries(
        entries.owners[rows],
        entries.sequence[rows],
        [*columns, pa.array(np.zeros(len(rows), np.bool_))],
        np.ones(len(rows), np.int64),
        np.zeros(len(rows), np.bool_),
    )


def _marks(table: pa.Table) -> Ints:
    if len(table) == 0:
        return np.zeros(0, np.int64)
    marks: Ints = vector(single(table.column(WATERMARK_COLUMN))).values
    return marks


def key_slices(hashes: Hashes) -> Iterator[Ints]:
    """The row indexes, in order, in slices of ascending hashes, so that the work per key needs the memory of
    one slice. Rows of one hash are in one slice."""
    slices = -(-len(hashes) // SLICE_ROWS)
    if slices < 2:
        yield np.arange(len(hashes))
        return
    first, last = hashes.min(), hashes.max()
    width = (int(last) - int(first)) // slices + 1
    numbers = ((hashes - first) // np.uint64(width)).astype(np.uint16)
    # NumPy sorts such short integers by counting.
    order = np.argsort(numbers, kind="stable")
    for start, stop in pairwise(np.searchsorted(numbers[order], np.arange(slices + 1)).tolist()):
        if start < stop:
            yield order[start:stop]
