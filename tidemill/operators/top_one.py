"""Top-1 and deduplication of append-only input: one record per partition, the best row so far.

The epoch's rows are first reduced to the best of each partition, then compared with the record.
Cost per epoch: one sort of the rows' hashes, one lookup and at most one write per touched partition.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from tidemill.changelog.batch import hashes_of
from tidemill.changelog.columns import Hashes, Ints, Mask, Vec, rows_equal, single, to_arrow, vector
from tidemill.changelog.emit import Changes, Kinds, net_changes
from tidemill.changelog.grouping import Groups, group_rows
from tidemill.changelog.rowkind import SEQUENCE_COLUMN, RowKind
from tidemill.operators.api import EpochContext
from tidemill.operators.ordering import codes
from tidemill.state.layout import Layout
from tidemill.state.lookup import Found
from tidemill.state.store import StateStore

if TYPE_CHECKING:
    from tidemill.operators.rank import RankSpec

SEEN = "$seen"


def record_layout(
    columns: tuple[tuple[str, pa.DataType], ...], partition: tuple[str, ...], ttl: int
) -> Layout:
    """The state table: the partition's row and its arrival."""
    types = dict(columns)
    rest = tuple(pa.field(n, t) for n, t in columns if n not in partition)
    return Layout(
        name="rows",
        keys=tuple(pa.field(p, types[p]) for p in partition),
        columns=(*rest, pa.field(SEEN, pa.int64())),
        ttl=ttl,
    )


@dataclass(slots=True)
class TopOneStep:
    spec: RankSpec
    store: StateStore
    epoch: EpochContext

    def run(self, table: pa.Table) -> pa.Table:
        keys = [single(table.column(k)) for k in self.spec.partition]
        hashes = hashes_of(table, keys)
        groups = group_rows(hashes, keys)
        heads = groups.heads
        state = self.store.table(self.spec.layout)
        found = state.lookup(hashes[heads], [k.take(pa.array(heads)) for k in keys])
        seen = vector(table.column(SEQUENCE_COLUMN)).values
        best = self._best(table, groups, seen)
        rows = self._rows(table, best, found)
        wins = self._wins(rows, found, seen[best])
        self._keep(rows, wins, hashes[best], seen[best])
        return self._show(rows, wins, found.found)

    def _best(self, table: pa.Table, groups: Groups, seen: Ints) -> Ints:
        """The row of each group that comes first in the order."""
        if groups.count == len(table):
            return groups.heads
        measures = [codes(single(table.column(k.name)), k) for k in self.spec.order]
        alive: Mask | None = None
        for measure in (*measures, self._arrival(seen)):
            ordered = measure[groups.order]
            if alive is not None:
                ordered = np.where(alive, ordered, np.iinfo(np.int64).max)
            least = np.repeat(np.minimum.reduceat(ordered, groups.starts), groups.sizes)
            hits = ordered == least
            alive = hits if alive is None else hits & alive
        places = np.flatnonzero(alive if alive is not None else np.zeros(0, np.bool_))
        if len(places) > groups.count:
            places = places[np.searchsorted(places, groups.starts)]
        return groups.order[places]

    def _arrival(self, seen: Ints) -> Ints:
        return -seen if self.spec.latest else seen

    def _rows(self, table: pa.Table, best: Ints, found: Found) -> dict[str, pa.Array]:
        """The stored rows, then the epoch's best ones: one of each per partition."""
        picks = pa.array(best)
        rows = {}
        for name, kind in self.spec.columns:
            new = single(table.column(name)).take(picks)
            old = new if name in self.spec.partition else found.array(name)
            rows[name] = single(pa.chunked_array([old, new], kind))
        rows[SEEN] = found.array(SEEN)
        return rows

    def _wins(self, rows: dict[str, pa.Array], found: Found, seen: Ints) -> Mask:
        """Where the epoch's best row takes the place of the stored one, or there was none."""
        if self.spec.insert_only or not found.found.any():
            return ~found.found
        size = len(seen)
        better, equal = np.zeros(size, np.bool_), np.ones(size, np.bool_)
        stored = vector(rows[SEEN]).values
        measures = [codes(rows[k.name], k) for k in self.spec.order]
        arrivals = np.concatenate([self._arrival(stored), self._arrival(seen)])
        for measure in (*measures, arrivals):
            old, new = measure[:size], measure[size:]
            better |= equal & (new < old)
            equal &= new == old
        return better | ~found.found

    def _keep(self, rows: dict[str, pa.Array], wins: Mask, hashes: Hashes, seen: Ints) -> None:
        winners = np.flatnonzero(wins)
        if len(winners) == 0:
            return
        picks = pa.array(winners + len(wins))
        columns = {n: rows[n].take(picks) for n, _ in self.spec.columns}
        columns[SEEN] = to_arrow(Vec(seen[winners]), pa.int64())
        self.store.table(self.spec.layout).put(hashes[winners], columns)

    def _show(self, rows: dict[str, pa.Array], wins: Mask, existed: Mask) -> pa.Table:
        spec, size = self.spec, len(wins)
        same = ~wins
        both = np.flatnonzero(wins & existed)
        names = [n for n, _ in spec.columns if n not in spec.partition]
        same[both] = rows_equal([rows[n] for n in names], both, [rows[n] for n in names], both + size)
        in_place = bool(spec.rank) or spec.by_place
        changes = net_changes(
            existed, np.ones(size, np.bool_), same, spec.update_before if in_place else True
        )
        picks = pa.array(np.where(changes.after, changes.owners + size, changes.owners))
        columns = [rows[n].take(picks) for n, _ in spec.columns]
        count = len(changes.owners)
        if spec.rank:
            columns.append(to_arrow(Vec(np.ones(count, np.int64)), pa.int64()))
        if not spec.insert_only:
            columns.append(to_arrow(Vec(_kinds(changes, in_place)), pa.int8()))
        if spec.sequence:
            numbers = (self.epoch.epoch << 32) + np.arange(count, dtype=np.int64)
            columns.append(to_arrow(Vec(numbers), pa.int64()))
        return pa.Table.from_arrays(columns, schema=spec.output_schema())


def _kinds(changes: Changes, in_place: bool) -> Kinds:
    """Without a place to update a row goes and another comes."""
    if in_place:
        return changes.kinds
    return np.where(changes.kinds & 1, RowKind.DELETE, RowKind.INSERT).astype(np.int8)
