"""One epoch of a Top-N that keeps its partitions' rows: ranks them before and after, and emits the
difference."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from tidemill.changelog.columns import Ints, Mask, Vec, single, to_arrow
from tidemill.changelog.emit import Kinds
from tidemill.changelog.grouping import Groups, group_rows
from tidemill.changelog.hashing import hash_columns
from tidemill.changelog.rowkind import RowKind
from tidemill.changelog.values import rows_same
from tidemill.errors import ExecutionError
from tidemill.operators.api import EpochContext
from tidemill.operators.rank.ranking import Ranking
from tidemill.operators.rank.shown_rows import Shown, changes_by_rank, changes_by_row
from tidemill.operators.rows.entries import (
    Entries,
    arrivals,
    load_entries,
    put_entries,
    surviving_additions,
    with_missing_columns,
)
from tidemill.operators.rows.ordering import codes
from tidemill.state.store import StateStore


@dataclass(slots=True)
class RankStep(Ranking):
    store: StateStore
    epoch: EpochContext

    came: pa.Table | None = field(default=None, init=False)
    """Per group of the turn the row that makes its changes, where changes are told by it."""

    def run(self, table: pa.Table, groups: Groups) -> pa.Table:
        if self.spec.handed_on:
            self.came = table.take(pa.array(groups.heads))
        new, hashes, keys = self._arrived(table, groups)
        layout = self.spec.layout
        state = self.store.table(layout)
        stored = load_entries(layout, state, hashes, keys)
        if self.spec.prunes:
            hopeful = self._hopeful(stored, new, keys)
            new = _of(hopeful, self._pushing(hopeful, keys))
        rows = with_missing_columns(stored.then(new), self.spec.kept, self.spec.late)
        self.arrival = arrivals(rows)
        order = self._codes(rows, keys)
        left = surviving_additions(rows)
        if self.spec.exclusive:
            self._check_alone(rows, keys, left)
        before = self._shown(rows, order, rows.old)
        after = self._shown(rows, order, left)
        put_entries(layout, state, rows, self._remaining(rows, order, left, after), hashes, keys)
        return self._difference(rows, keys, before, after)

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

    # -- state ------------------------------------------------------------------------------------

    def _remaining(self, rows: Entries, order: list[Ints], left: Mask, after: Shown) -> Mask:
        """The rows that stay in state: for append-only input only ranks 1..end. Ranks before ``start`` are
        needed to number the others."""
        if not self.spec.prunes:
            return left
        stays = np.zeros(len(rows), np.bool_)
        whole = after if self.spec.start == 1 else self._shown(rows, order, left, 1)
        stays[whole.rows] = True
        return stays

    def _check_alone(self, rows: Entries, keys: list[pa.Array], left: Mask) -> None:
        """Flink's ON CONFLICT DO ERROR: equal rows of one key are one row."""
        live = np.flatnonzero(left)
        owners = rows.owners[live]
        _, first = np.unique(owners, return_index=True)
        heads = live[first][np.searchsorted(owners[first], owners)]
        differs = np.flatnonzero(~rows_same(rows.columns, live, rows.columns, heads))
        if len(differs) == 0:
            return
        owner = int(owners[differs[0]])
        names = self.spec.key_names or self.spec.partition
        key_text = ", ".join(f"{n}={k[owner].as_py()}" for n, k in zip(names, keys, strict=True))
        raise ExecutionError(
            "Primary key constraint violation: multiple distinct records with the same primary key detected. "
            f"Conflicting key: [{key_text}].",
            hint="ON CONFLICT DO NOTHING keeps the first record, DO DEDUPLICATE the last one.",
        )

    # -- output -----------------------------------------------------------------------------------

    def _difference(self, rows: Entries, keys: list[pa.Array], before: Shown, after: Shown) -> pa.Table:
        """Without a rank column rows are inserted and deleted; with a rank column each rank is updated."""
        in_place = self.spec.in_place
        compare = changes_by_rank if in_place else changes_by_row
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
        # A rank's -U is directly before its +U; without ranks retractions come first.
        order = np.lexsort((1 - (kinds & 1), ranks if in_place else 1 - (kinds & 1), owners))
        return self._table(rows, keys, picked[order], ranks[order], kinds[order])

    def _contents(self, rows: Entries, before: Shown, after: Shown) -> Ints:
        """Per entry a number, the same for equal rows of a partition among those that enter or leave."""
        is_shown = np.zeros((2, len(rows)), np.bool_)
        is_shown[0, before.rows] = is_shown[1, after.rows] = True
        moved = np.flatnonzero(is_shown[0] != is_shown[1])
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
        if self.came is not None:
            changed = pa.array(rows.owners[picked])
            columns += [single(self.came.column(name)).take(changed) for name in spec.handed_on]
        elif spec.sequence:
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
