"""Ranks the rows of a Top-N: stored rows and new rows."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from tidemill.changelog.batch import hashes_of, weights_of
from tidemill.changelog.columns import Hashes, Ints, Mask, single, vector
from tidemill.changelog.grouping import Groups
from tidemill.changelog.rowkind import SEQUENCE_COLUMN
from tidemill.operators.rank.shape import RankShape
from tidemill.operators.rank.shown_rows import Shown, ranks_of
from tidemill.operators.rows.entries import Entries
from tidemill.operators.rows.ordering import codes, sort_rows
from tidemill.operators.rows.stored_before import marked


@dataclass(slots=True)
class Ranking:
    """``arrival``: see ``arrivals``, of the entries in question."""

    spec: RankShape
    arrival: Ints = field(default_factory=lambda: np.zeros(0, np.int64), init=False)

    def promising(self, table: pa.Table, groups: Groups) -> Ints:
        """The positions, in group order, of rows that other rows do not displace."""
        new, _, keys = self._arrived(table, groups)
        return self._pushing(new, keys)

    def _arrived(self, table: pa.Table, groups: Groups) -> tuple[Entries, Hashes, list[pa.Array]]:
        """The epoch's rows, partition by partition, and the partitions' hashes and keys."""
        table = marked(table, self.spec.late)
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

    def _pushing(self, new: Entries, keys: list[pa.Array]) -> Ints:
        """The rows that other rows of this epoch do not displace."""
        everyone = np.ones(len(new), np.bool_)
        self.arrival = np.arange(len(new))
        return np.sort(self._shown(new, self._codes(new, keys), everyone, 1).rows)

    def _column(self, rows: Entries, keys: list[pa.Array], name: str) -> pa.Array:
        if name in self.spec.partition:
            return keys[self.spec.partition.index(name)].take(pa.array(rows.owners))
        return rows.columns[self.spec.kept.index(name)]

    def _codes(self, rows: Entries, keys: list[pa.Array]) -> list[Ints]:
        return [codes(self._column(rows, keys, k.name), k) for k in self.spec.order]

    def _shown(self, rows: Entries, order: list[Ints], there: Mask, start: int | None = None) -> Shown:
        """The rows of ``there`` whose rank lies in ``start`` (default: the spec's) to ``end``."""
        live = np.flatnonzero(there)
        arrival = -self.arrival[live] if self.spec.latest else self.arrival[live]
        live = live[sort_rows(rows.owners[live], [c[live] for c in order], arrival)]
        owners = rows.owners[live]
        ranks = ranks_of(self.spec.function, owners, [c[live] for c in order])
        in_range = ranks >= (self.spec.start if start is None else start)
        if self.spec.end is not None:
            in_range &= ranks <= self.spec.end
        return Shown(live[in_range], owners[in_range], ranks[in_range])
