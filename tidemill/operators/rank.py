"""Top-N and deduplication: the rows ``start``..``end`` of each partition by an order.

State: the partition's rows with their arrivals (ties go by arrival, the earlier first; with ``latest``
the later first); a retraction takes the earliest copy of its row, one of a row that is not there is
ignored. Of an append-only input only the best ``end`` rows are kept: what falls out can never come back.
Any changelog is accepted: touched partitions are ranked before and after the epoch, the difference is
the output.

Cost per epoch: the rows of the touched partitions (at most ``end`` each for append-only input).
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import pyarrow as pa

from tidemill.changelog.batch import by_arrival, contiguous, hashes_of, weights_of
from tidemill.changelog.columns import Hashes, Ints, Mask, Vec, rows_equal, single, to_arrow, vector
from tidemill.changelog.emit import Kinds
from tidemill.changelog.grouping import Groups, group_rows
from tidemill.changelog.hashing import hash_columns
from tidemill.changelog.rowkind import KIND_COLUMN, SEQUENCE_COLUMN, RowKind
from tidemill.errors import ExecutionError
from tidemill.operators.api import EpochContext
from tidemill.operators.entries import Entries, arrivals, entry_layout, load_entries, put_entries, surviving
from tidemill.operators.keyed_rows import RowsByKey
from tidemill.operators.ordering import OrderKey, codes, sort_rows
from tidemill.operators.row_difference import bag_difference, copy_number
from tidemill.operators.top_one import TopOneStep, record_shape
from tidemill.state.layout import Layout
from tidemill.state.store import StateStore


@dataclass(frozen=True, kw_only=True)
class RankSpec:
    """``columns``: what the port carries, (name, type). ``rank``: name of the rank column, '' for none.

    ``end`` None has no upper bound. ``function``: ROW_NUMBER, RANK or DENSE_RANK. ``update_before``: -U
    goes with every +U. ``by_place``: compare place by place without a rank column too (with one it is
    always so). ``insert_only``: only +I can come out (keep-first), no ``$kind`` column. ``rounds``: where
    no partition has more rows in an epoch than that, each row's own change is shown; else the net change.
    ``exclusive``: an epoch that ends with several different rows in a partition is an ExecutionError.
    """

    function: str
    columns: tuple[tuple[str, pa.DataType], ...]
    partition: tuple[str, ...]
    order: tuple[OrderKey, ...]
    start: int
    end: int | None
    rank: str = ""
    latest: bool = False
    by_place: bool = False
    retracts: bool = False
    update_before: bool = True
    insert_only: bool = False
    rounds: int = 0
    exclusive: bool = False
    sequence: bool = False
    state_ttl: int = 0

    @property
    def fingerprint(self) -> str:
        facts = (self.function, self.columns, self.partition, self.order, self.end, self.latest)
        return hashlib.sha256(f"rank {facts} {self.retracts}".encode()).hexdigest()[:16]

    @cached_property
    def layout(self) -> Layout:
        if self.keeps_one:
            return self.records.layout
        types = dict(self.columns)
        keys = tuple(pa.field(p, types[p]) for p in self.partition)
        return entry_layout("rows", keys, tuple(pa.field(n, types[n]) for n in self.kept), self.state_ttl)

    @cached_property
    def records(self) -> RowsByKey:
        """Where a partition's state is its one shown row."""
        return record_shape(self)

    @property
    def in_place(self) -> bool:
        """Whether a rank's row is updated, not deleted and inserted."""
        return bool(self.rank) or self.by_place

    @property
    def kept(self) -> tuple[str, ...]:
        """The columns that are not of the partition key."""
        return tuple(n for n, _ in self.columns if n not in self.partition)

    @property
    def prunes(self) -> bool:
        """Whether rows below the last shown rank may be forgotten."""
        return not self.retracts and self.end is not None

    @property
    def keeps_one(self) -> bool:
        """Whether a partition's state is its one shown row."""
        return self.prunes and self.start == self.end == 1 and self.function == "ROW_NUMBER"

    def output_schema(self) -> pa.Schema:
        fields = [pa.field(n, t) for n, t in self.columns]
        if self.rank:
            fields.append(pa.field(self.rank, pa.int64()))
        if not self.insert_only:
            fields.append(pa.field(KIND_COLUMN, pa.int8()))
        if self.sequence:
            fields.append(pa.field(SEQUENCE_COLUMN, pa.int64()))
        return pa.schema(fields)

    def step(self, inputs: tuple[pa.Table, ...], state: StateStore, epoch: EpochContext) -> pa.Table:
        """The net change of the shown rows."""
        table = contiguous(inputs[0])
        if len(table) == 0:
            return self.output_schema().empty_table()
        state.now = epoch.time
        if self.keeps_one:
            return TopOneStep(self, state).run(table)
        table, step = by_arrival(table), _Step(self, state, epoch)
        groups = self.grouped(table)
        if int(groups.sizes.max()) > self.rounds:
            return step.run(table, groups)
        turns = [contiguous(turn) for turn in _turns(table, groups)]
        output = pa.concat_tables([step.run(turn, self.grouped(turn)) for turn in turns])
        return _numbered(output, epoch) if self.sequence else output

    def grouped(self, table: pa.Table) -> Groups:
        """The rows by partition."""
        keys = [single(table.column(k)) for k in self.partition]
        return group_rows(hashes_of(table, keys), keys)


def _turns(table: pa.Table, groups: Groups) -> list[pa.Table]:
    """The first row of each partition, then the second..."""
    turn = np.empty(len(table), np.int64)
    turn[groups.order] = np.arange(len(table)) - np.repeat(groups.starts, groups.sizes)
    order = np.argsort(turn, kind="stable")
    ends = np.cumsum(np.bincount(turn))
    return [table.take(pa.array(rows)) for rows in np.split(order, ends[:-1])]


@dataclass(frozen=True, slots=True)
class _Shown:
    """Rows shown, in rank order within an owner: row number, its rank, its place among the shown."""

    rows: Ints
    owners: Ints
    ranks: Ints


@dataclass(slots=True)
class _Step:
    """``arrival``: see ``arrivals``, of the entries in question."""

    spec: RankSpec
    store: StateStore
    epoch: EpochContext
    arrival: Ints = field(default_factory=lambda: np.zeros(0, np.int64))

    def run(self, table: pa.Table, groups: Groups) -> pa.Table:
        new, hashes, keys = self._arrived(table, groups)
        layout = self.spec.layout
        state = self.store.table(layout)
        stored = load_entries(layout, state, hashes, keys)
        if self.spec.prunes:
            new = self._promising(self._hopeful(stored, new, keys), keys)
        rows = stored.then(new)
        self.arrival = arrivals(rows)
        order = self._codes(rows, keys)
        left = surviving(rows)
        if self.spec.exclusive:
            self._check_alone(rows, keys, left)
        before = self._shown(rows, order, rows.old)
        after = self._shown(rows, order, left)
        put_entries(layout, state, rows, self._remaining(rows, order, left, after), hashes, keys)
        return self._difference(rows, keys, before, after)

    # -- rows -------------------------------------------------------------------------------------

    def _arrived(self, table: pa.Table, groups: Groups) -> tuple[Entries, Hashes, list[pa.Array]]:
        """The epoch's rows, partition by partition, and the partitions' hashes and keys."""
        keys = [single(table.column(k)) for k in self.spec.partition]
        hashes = hashes_of(table, keys)
        heads, order = groups.heads, groups.order
        weights, picks = weights_of(table), pa.array(order)
        entries = Entries(
            groups.ids(),
            vector(table.column(SEQUENCE_COLUMN)).values[order],
            [single(table.column(n)).take(picks) for n in self.spec.kept],
            np.ones(len(order), np.int64) if weights is None else weights[order],
            np.zeros(len(order), np.bool_),
        )
        return entries, hashes[heads], [k.take(pa.array(heads)) for k in keys]

    def _hopeful(self, stored: Entries, new: Entries, keys: list[pa.Array]) -> Entries:
        """Without the rows whose first order column lies behind all of a full partition's rows."""
        spec = self.spec
        if not spec.order or spec.function == "DENSE_RANK" or len(stored) == 0:
            return new
        columns = [self._column(rows, keys, spec.order[0].name) for rows in (stored, new)]
        measure = codes(single(pa.chunked_array(columns)), spec.order[0])
        count = np.bincount(stored.owners, minlength=int(new.owners[-1]) + 1)
        bound = np.full(len(count), np.iinfo(np.int64).max)
        full = np.flatnonzero(count >= (spec.end or 0))
        starts = np.cumsum(count) - count
        filled = np.flatnonzero(count)
        worst = np.maximum.reduceat(measure[: len(stored)], starts[filled])
        bound[full] = worst[np.searchsorted(filled, full)]
        return _of(new, np.flatnonzero(measure[len(stored) :] <= bound[new.owners]))

    def _promising(self, new: Entries, keys: list[pa.Array]) -> Entries:
        """Without the rows that others of this epoch push out."""
        everyone = np.ones(len(new), np.bool_)
        self.arrival = np.arange(len(new))
        return _of(new, np.sort(self._shown(new, self._codes(new, keys), everyone, 1).rows))

    def _column(self, rows: Entries, keys: list[pa.Array], name: str) -> pa.Array:
        if name in self.spec.partition:
            return keys[self.spec.partition.index(name)].take(pa.array(rows.owners))
        return rows.columns[self.spec.kept.index(name)]

    def _codes(self, rows: Entries, keys: list[pa.Array]) -> list[Ints]:
        return [codes(self._column(rows, keys, k.name), k) for k in self.spec.order]

    # -- ranking ----------------------------------------------------------------------------------

    def _shown(self, rows: Entries, order: list[Ints], there: Mask, start: int | None = None) -> _Shown:
        """The rows of ``there`` whose rank lies in ``start`` (default: the spec's) to ``end``."""
        live = np.flatnonzero(there)
        arrival = -self.arrival[live] if self.spec.latest else self.arrival[live]
        live = live[sort_rows(rows.owners[live], [c[live] for c in order], arrival)]
        owners = rows.owners[live]
        ranks = self._ranks(owners, [c[live] for c in order])
        shown = ranks >= (self.spec.start if start is None else start)
        if self.spec.end is not None:
            shown &= ranks <= self.spec.end
        return _Shown(live[shown], owners[shown], ranks[shown])

    def _ranks(self, owners: Ints, order: list[Ints]) -> Ints:
        """1-based rank of each row; rows are sorted by owner, then by the order."""
        size = len(owners)
        place = np.arange(size)
        fresh = np.ones(size, np.bool_)
        np.not_equal(owners[1:], owners[:-1], out=fresh[1:])
        starts = np.maximum.accumulate(np.where(fresh, place, 0))
        if self.spec.function == "ROW_NUMBER":
            return place - starts + 1
        step = fresh.copy()
        for code in order:
            step[1:] |= code[1:] != code[:-1]
        if self.spec.function == "RANK":
            peers: Ints = np.maximum.accumulate(np.where(step, place, 0))
            return peers - starts + 1
        dense: Ints = np.cumsum(step)
        return dense - dense[starts] + 1

    # -- state ------------------------------------------------------------------------------------

    def _remaining(self, rows: Entries, order: list[Ints], left: Mask, after: _Shown) -> Mask:
        """What stays in state: of append-only input only rank 1..end, whatever ``start`` is (those above
        the range hold the others' places)."""
        if not self.spec.prunes:
            return left
        kept = np.zeros(len(rows), np.bool_)
        whole = after if self.spec.start == 1 else self._shown(rows, order, left, 1)
        kept[whole.rows] = True
        return kept

    def _check_alone(self, rows: Entries, keys: list[pa.Array], left: Mask) -> None:
        """Flink's ON CONFLICT DO ERROR: equal rows of one key are one row."""
        live = np.flatnonzero(left)
        owners = rows.owners[live]
        _, first = np.unique(owners, return_index=True)
        heads = live[first][np.searchsorted(owners[first], owners)]
        differs = np.flatnonzero(~rows_equal(rows.columns, live, rows.columns, heads))
        if len(differs) == 0:
            return
        owner = int(owners[differs[0]])
        shown = ", ".join(f"{n}={k[owner].as_py()}" for n, k in zip(self.spec.partition, keys, strict=True))
        raise ExecutionError(
            "Primary key constraint violation: multiple distinct records with the same primary key detected. "
            f"Conflicting key: [{shown}].",
            hint="ON CONFLICT DO NOTHING keeps the first record, DO DEDUPLICATE the last one.",
        )

    # -- output -----------------------------------------------------------------------------------

    def _difference(self, rows: Entries, keys: list[pa.Array], before: _Shown, after: _Shown) -> pa.Table:
        """Without a rank column rows come and go; with one each place is updated."""
        in_place = self.spec.in_place
        compare = _by_place if in_place else _by_row
        old, new, updated_old, updated_new = compare(before, after, self._contents(rows, before, after))
        gone = np.where(updated_old, RowKind.UPDATE_BEFORE, RowKind.DELETE)
        come = np.where(updated_new, RowKind.UPDATE_AFTER, RowKind.INSERT)
        if not self.spec.update_before:
            keep = ~updated_old
            old, gone = old[keep], gone[keep]
        picked = np.concatenate([before.rows[old], after.rows[new]])
        ranks = np.concatenate([before.ranks[old], after.ranks[new]])
        owners = np.concatenate([before.owners[old], after.owners[new]])
        kinds = np.concatenate([gone, come]).astype(np.int8)
        # A rank's -U stands right before its +U; without ranks what goes stands before what comes.
        order = np.lexsort((1 - (kinds & 1), ranks if in_place else 1 - (kinds & 1), owners))
        return self._table(rows, keys, picked[order], ranks[order], kinds[order])

    def _contents(self, rows: Entries, before: _Shown, after: _Shown) -> Ints:
        """Per entry a number, the same for equal rows of a partition among those that enter or leave."""
        shown = np.zeros((2, len(rows)), np.bool_)
        shown[0, before.rows] = shown[1, after.rows] = True
        moved = np.flatnonzero(shown[0] != shown[1])
        numbers = np.arange(len(rows))
        picks = pa.array(moved)
        identity = [to_arrow(Vec(rows.owners[moved]), pa.int64()), *(c.take(picks) for c in rows.columns)]
        groups = group_rows(hash_columns(identity, len(moved)), identity)
        numbers[moved[groups.order]] = np.repeat(moved[groups.heads], groups.sizes)
        return numbers

    def _table(
        self, rows: Entries, keys: list[pa.Array], picked: Ints, ranks: Ints, kinds: Kinds
    ) -> pa.Table:
        spec = self.spec
        picks = pa.array(picked)
        columns = [self._column(rows, keys, n).take(picks) for n, _ in spec.columns]
        if spec.rank:
            columns.append(to_arrow(Vec(ranks.astype(np.int64)), pa.int64()))
        if not spec.insert_only:
            columns.append(to_arrow(Vec(kinds), pa.int8()))
        if spec.sequence:
            numbers = (self.epoch.epoch << 32) + np.arange(len(picked), dtype=np.int64)
            columns.append(to_arrow(Vec(numbers), pa.int64()))
        return pa.Table.from_arrays(columns, schema=spec.output_schema())


def _of(entries: Entries, rows: Ints) -> Entries:
    """Some of the entries."""
    if len(rows) == len(entries):
        return entries
    picks = pa.array(rows)
    return Entries(
        entries.owners[rows],
        entries.sequence[rows],
        [c.take(picks) for c in entries.columns],
        entries.weights[rows],
        entries.old[rows],
    )


def _numbered(table: pa.Table, epoch: EpochContext) -> pa.Table:
    numbers = (epoch.epoch << 32) + np.arange(len(table), dtype=np.int64)
    place = table.schema.get_field_index(SEQUENCE_COLUMN)
    return table.set_column(place, SEQUENCE_COLUMN, pa.array(numbers))


def _by_row(before: _Shown, after: _Shown, content: Ints) -> tuple[Ints, Ints, Mask, Mask]:
    """Places of ``before`` that go and of ``after`` that come, counting copies of a row."""
    held, taken = content[before.rows], content[after.rows]
    old, new = bag_difference(held, taken, len(content))
    return old, new, np.zeros(len(old), np.bool_), np.zeros(len(new), np.bool_)


def _by_place(before: _Shown, after: _Shown, content: Ints) -> tuple[Ints, Ints, Mask, Mask]:
    """Compares what stands at each (owner, rank, place among equal ranks)."""
    place = _places(before, after)
    split = len(before.rows)
    size = int(place.max()) + 1 if len(place) else 0
    held = np.full(size, -1, np.int64)
    taken = np.full(size, -1, np.int64)
    held[place[:split]] = content[before.rows]
    taken[place[split:]] = content[after.rows]
    differs = held != taken
    old = np.flatnonzero(differs[place[:split]])
    new = np.flatnonzero(differs[place[split:]])
    return old, new, taken[place[:split]][old] >= 0, held[place[split:]][new] >= 0


def _places(before: _Shown, after: _Shown) -> Ints:
    """A number for each row of both: the same for the same (owner, rank, place among equal ranks)."""
    ranks = np.concatenate([before.ranks, after.ranks])
    size = int(ranks.max()) + 1 if len(ranks) else 1
    slots = np.concatenate([before.owners, after.owners]) * size + ranks
    copies = np.concatenate([copy_number(part) for part in np.split(slots, [len(before.rows)])])
    _, numbers = np.unique(slots, return_inverse=True)
    if copies.any():
        _, numbers = np.unique(numbers * (int(copies.max()) + 1) + copies, return_inverse=True)
    return numbers
