"""Top-N and deduplication: the rows ``start``..``end`` of each partition by an order.

State: the partition's rows with how often each stands and when it first came (ties go by arrival, the
earlier first; with ``latest`` the later first). Of an append-only input only the best ``end`` rows are
kept: what falls out can never come back. Any changelog is accepted: touched partitions are ranked
before and after the epoch, the difference is the output.

Cost per epoch: the rows of the touched partitions (at most ``end`` each for append-only input).
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa

from tidemill.changelog.batch import contiguous, hashes_of, weights_of
from tidemill.changelog.columns import Hashes, Ints, Mask, Vec, single, to_arrow, vector
from tidemill.changelog.emit import Kinds
from tidemill.changelog.grouping import group_rows
from tidemill.changelog.hashing import hash_columns
from tidemill.changelog.rowkind import KIND_COLUMN, SEQUENCE_COLUMN, RowKind
from tidemill.operators.api import EpochContext
from tidemill.operators.ordering import OrderKey, codes, sort_rows
from tidemill.state.layout import Layout
from tidemill.state.store import StateStore

COUNT = "$count"
FIRST_SEEN = "$first"


@dataclass(frozen=True, kw_only=True)
class RankSpec:
    """``columns``: what the port carries, (name, type). ``rank``: name of the rank column, '' for none.

    ``end`` None has no upper bound. ``function``: ROW_NUMBER, RANK or DENSE_RANK. ``update_before``: -U
    goes with every +U. ``by_place``: compare place by place without a rank column too (with one it is
    always so). ``insert_only``: only +I can come out (keep-first), no ``$kind`` column.
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
    sequence: bool = False
    state_ttl: int = 0

    @property
    def fingerprint(self) -> str:
        facts = (self.function, self.columns, self.partition, self.order, self.end, self.latest)
        return hashlib.sha256(f"rank {facts} {self.retracts}".encode()).hexdigest()[:16]

    @cached_property
    def layout(self) -> Layout:
        types = dict(self.columns)
        return Layout(
            name="rows",
            keys=tuple(pa.field(p, types[p]) for p in self.partition),
            values=tuple(pa.field(n, t) for n, t in self.columns if n not in self.partition),
            columns=(pa.field(COUNT, pa.int64()), pa.field(FIRST_SEEN, pa.int64())),
            ttl=self.state_ttl,
        )

    @property
    def prunes(self) -> bool:
        """Whether rows below the last shown rank may be forgotten."""
        return not self.retracts and self.end is not None

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
        (table,) = inputs
        return _Step(self, state, epoch).run(contiguous(table))


@dataclass(frozen=True, slots=True)
class _Rows:
    """The touched partitions' distinct rows: counts before and after, and since when they stand."""

    table: pa.Table
    owners: Ints
    before: Ints
    after: Ints
    seen_before: Ints
    seen_after: Ints


@dataclass(frozen=True, slots=True)
class _Shown:
    """Rows shown, in rank order within an owner: row number, its rank, its place among the shown."""

    rows: Ints
    owners: Ints
    ranks: Ints


@dataclass(slots=True)
class _Step:
    spec: RankSpec
    store: StateStore
    epoch: EpochContext

    def run(self, table: pa.Table) -> pa.Table:
        if len(table) == 0:
            return self.spec.output_schema().empty_table()
        keys = [single(table.column(k)) for k in self.spec.partition]
        hashes = hashes_of(table, keys)
        groups = group_rows(hashes, keys)
        owners = np.empty(len(table), np.int64)
        owners[groups.order] = groups.ids()
        heads = groups.heads
        rows = self._rows(table, owners, hashes[heads], [k.take(pa.array(heads)) for k in keys])
        order = self._codes(rows)
        before = self._shown(rows, order, rows.before, rows.seen_before)
        after = self._shown(rows, order, rows.after, rows.seen_after)
        self._keep(rows, order, hashes[heads])
        return self._difference(rows, before, after)

    # -- rows -------------------------------------------------------------------------------------

    def _rows(self, table: pa.Table, owners: Ints, hashes: Hashes, keys: list[pa.Array]) -> _Rows:
        """State's rows of the touched partitions and the epoch's, equal rows merged."""
        names = [n for n, _ in self.spec.columns]
        found, old = self.store.table(self.spec.layout).gather(hashes, keys)
        old_columns = {n: k.take(pa.array(found)) for n, k in zip(self.spec.partition, keys, strict=True)}
        old_columns |= {n: single(old.column(n)) for n in old.schema.names}
        weights = weights_of(table)
        delta = np.ones(len(table), np.int64) if weights is None else weights
        columns = [
            single(pa.chunked_array([old_columns[n], single(table.column(n))], old_columns[n].type))
            for n in names
        ]
        owner = np.concatenate([found, owners])
        count = np.concatenate([vector(old_columns[COUNT]).values, np.zeros(len(table), np.int64)])
        change = np.concatenate([np.zeros(len(found), np.int64), delta])
        seen = np.concatenate(
            [vector(old_columns[FIRST_SEEN]).values, vector(table.column(SEQUENCE_COLUMN)).values]
        )
        return _merged(pa.table(columns, names=names), owner, count, change, seen)

    def _codes(self, rows: _Rows) -> list[Ints]:
        return [codes(single(rows.table.column(k.name)), k) for k in self.spec.order]

    # -- ranking ----------------------------------------------------------------------------------

    def _shown(self, rows: _Rows, order: list[Ints], counts: Ints, seen: Ints) -> _Shown:
        live = np.flatnonzero(counts > 0)
        live = live[sort_rows(rows.owners[live], [c[live] for c in order], self._arrival(seen[live]))]
        if (counts[live] > 1).any():
            most = counts[live] if self.spec.end is None else np.minimum(counts[live], self.spec.end)
            live = np.repeat(live, most)
        owners = rows.owners[live]
        ranks = self._ranks(owners, [c[live] for c in order])
        keep = ranks >= self.spec.start
        if self.spec.end is not None:
            keep &= ranks <= self.spec.end
        return _Shown(live[keep], owners[keep], ranks[keep])

    def _arrival(self, seen: Ints) -> Ints:
        return -seen if self.spec.latest else seen

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

    def _keep(self, rows: _Rows, order: list[Ints], hashes: Hashes) -> None:
        """Writes the rows whose count changed; of append-only input only those that still matter."""
        after = rows.after
        if self.spec.prunes:
            shown = self._shown_from_first(rows, order)
            after = np.where(shown, after, 0)
        changed = np.flatnonzero((after != rows.before) | (after > 0) & (rows.seen_after != rows.seen_before))
        gone = after[changed] <= 0
        changed = changed[~(gone & (rows.before[changed] == 0))]
        if len(changed) == 0:
            return
        picks = pa.array(changed)
        layout = self.spec.layout
        columns = {f.name: single(rows.table.column(f.name)).take(picks) for f in layout.identity}
        owner_hashes = hashes[rows.owners[changed]]
        place = layout.codes(owner_hashes, [columns[f.name] for f in layout.values])
        columns[COUNT] = to_arrow(Vec(after[changed]), pa.int64())
        columns[FIRST_SEEN] = to_arrow(Vec(rows.seen_after[changed]), pa.int64())
        deleted = after[changed] <= 0
        self.store.table(layout).put(place, columns, deleted if deleted.any() else None)

    def _shown_from_first(self, rows: _Rows, order: list[Ints]) -> Mask:
        """Rows of rank 1..end, whatever ``start`` is: those above the range hold the others' places."""
        whole = _Step(_from_first(self.spec), self.store, self.epoch)
        keep = np.zeros(len(rows.owners), np.bool_)
        keep[whole._shown(rows, order, rows.after, rows.seen_after).rows] = True
        return keep

    # -- output -----------------------------------------------------------------------------------

    def _difference(self, rows: _Rows, before: _Shown, after: _Shown) -> pa.Table:
        """Without a rank column rows come and go; with one each place is updated."""
        if self.spec.rank or self.spec.by_place:
            old, new, updated_old, updated_new = _by_place(before, after)
        else:
            old, new, updated_old, updated_new = _by_row(before, after, len(rows.owners))
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
        order = np.lexsort(
            (1 - (kinds & 1), ranks if self.spec.rank or self.spec.by_place else 1 - (kinds & 1), owners)
        )
        return self._table(rows, picked[order], ranks[order], kinds[order])

    def _table(self, rows: _Rows, picked: Ints, ranks: Ints, kinds: Kinds) -> pa.Table:
        spec = self.spec
        picks = pa.array(picked)
        columns = [single(rows.table.column(n)).take(picks) for n, _ in spec.columns]
        if spec.rank:
            columns.append(to_arrow(Vec(ranks.astype(np.int64)), pa.int64()))
        if not spec.insert_only:
            columns.append(to_arrow(Vec(kinds), pa.int8()))
        if spec.sequence:
            numbers = (self.epoch.epoch << 32) + np.arange(len(picked), dtype=np.int64)
            columns.append(to_arrow(Vec(numbers), pa.int64()))
        return pa.Table.from_arrays(columns, schema=spec.output_schema())


def _from_first(spec: RankSpec) -> RankSpec:
    return RankSpec(
        function=spec.function,
        columns=spec.columns,
        partition=spec.partition,
        order=spec.order,
        start=1,
        end=spec.end,
        latest=spec.latest,
    )


def _merged(table: pa.Table, owners: Ints, count: Ints, change: Ints, seen: Ints) -> _Rows:
    """Equal rows as one. A row that stood keeps its arrival; a new one takes its first; retracting more
    than there is leaves nothing."""
    identity = [to_arrow(Vec(owners), pa.int64()), *(single(c) for c in table.columns)]
    groups = group_rows(hash_columns(identity, len(owners)), identity)
    order, starts, heads = groups.order, groups.starts, groups.heads
    before = np.add.reduceat(count[order], starts)
    after = np.maximum(before + np.add.reduceat(change[order], starts), 0)
    stood = count > 0
    latest = np.iinfo(np.int64).max
    seen_before = np.minimum.reduceat(np.where(stood, seen, latest)[order], starts)
    came = np.minimum.reduceat(np.where(change > 0, seen, latest)[order], starts)
    anew = _taken(change, order, starts, before)
    seen_after = np.where((before > 0) & ~anew, seen_before, came)
    by_owner = np.argsort(owners[heads], kind="stable")
    merged = table.take(pa.array(heads[by_owner]))
    return _Rows(
        contiguous(merged),
        owners[heads][by_owner],
        before[by_owner],
        after[by_owner],
        seen_before[by_owner],
        seen_after[by_owner],
    )


def _taken(change: Ints, order: Ints, starts: Ints, before: Ints) -> Mask:
    """Whether every copy that stood was taken away and some came: then the row stands anew."""
    ordered = change[order]
    taken: Ints = -np.add.reduceat(np.minimum(ordered, 0), starts)
    added: Ints = np.add.reduceat(np.maximum(ordered, 0), starts)
    return (taken >= before) & (added > 0)


def _by_row(before: _Shown, after: _Shown, rows: int) -> tuple[Ints, Ints, Mask, Mask]:
    """Places of ``before`` that go and of ``after`` that come, counting copies of a row."""
    have, want = np.bincount(before.rows, minlength=rows), np.bincount(after.rows, minlength=rows)
    old = np.flatnonzero(_copy_number(before.rows) >= want[before.rows])
    new = np.flatnonzero(_copy_number(after.rows) >= have[after.rows])
    return old, new, np.zeros(len(old), np.bool_), np.zeros(len(new), np.bool_)


def _copy_number(rows: Ints) -> Ints:
    """0 for the first appearance of a row number, 1 for the second, ..."""
    order = np.argsort(rows, kind="stable")
    ordered = rows[order]
    fresh = np.ones(len(rows), np.bool_)
    np.not_equal(ordered[1:], ordered[:-1], out=fresh[1:])
    place = np.arange(len(rows))
    number = np.empty(len(rows), np.int64)
    number[order] = place - np.maximum.accumulate(np.where(fresh, place, 0))
    return number


def _by_place(before: _Shown, after: _Shown) -> tuple[Ints, Ints, Mask, Mask]:
    """Compares what stands at each (owner, rank, place among equal ranks)."""
    pairs = np.concatenate([_places(before), _places(after)])
    _, place = np.unique(pairs, axis=0, return_inverse=True)
    place = place.reshape(-1)
    split = len(before.rows)
    size = int(place.max()) + 1 if len(place) else 0
    held = np.full(size, -1, np.int64)
    taken = np.full(size, -1, np.int64)
    held[place[:split]] = before.rows
    taken[place[split:]] = after.rows
    differs = held != taken
    old = np.flatnonzero(differs[place[:split]])
    new = np.flatnonzero(differs[place[split:]])
    return old, new, taken[place[:split]][old] >= 0, held[place[split:]][new] >= 0


def _places(shown: _Shown) -> Ints:
    size = int(shown.ranks.max()) + 1 if len(shown.ranks) else 1
    return np.column_stack([shown.owners, shown.ranks, _copy_number(shown.owners * size + shown.ranks)])
