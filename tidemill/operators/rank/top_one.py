"""Top-1 and deduplication of append-only input: one record per partition, the best row so far.

A row replaces its partition's record if it sorts before the record. On ties the earlier row wins, or the
later one (``latest``). Cost per epoch: one sort of the rows' hashes, one lookup and at most one write per
touched partition.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from tidemill.changelog.columns import Ints, Mask, Vec, single, to_arrow, vector
from tidemill.changelog.emit import Kinds
from tidemill.changelog.grouping import Groups
from tidemill.changelog.rowkind import KIND_COLUMN, RowKind
from tidemill.operators.rank.shape import RankShape
from tidemill.operators.rows.grouped import segmented_accumulate
from tidemill.operators.rows.keyed_rows import (
    Candidates,
    KeyedTable,
    open_rows,
    replace_rows,
    stored_then_new,
)
from tidemill.operators.rows.ordering import codes
from tidemill.state.store import StateStore

_WORST = np.iinfo(np.int64).max


@dataclass(slots=True)
class TopOneStep:
    spec: RankShape
    store: StateStore

    def run(self, table: pa.Table) -> pa.Table:
        state = self.store.table(self.spec.layout)
        rows = open_rows(self.spec.records, table, state)
        chosen = self._improvements(rows)
        if not self.spec.steps_shown(rows.groups.sizes):
            chosen = chosen.last_of_each(rows.groups)
        return self._shown(replace_rows(self.spec.records, rows, chosen, state))

    def _improvements(self, rows: KeyedTable) -> Candidates:
        """The rows that are their partition's best when they arrive."""
        positions = np.arange(len(rows.groups.order))
        if self.spec.insert_only:
            positions = rows.groups.starts[~rows.stored.there]
        elif self.spec.order:
            positions = np.flatnonzero(self._better(rows))
        elif not self.spec.latest:
            positions = rows.groups.starts[~rows.stored.there]
        return Candidates(positions, np.ones(len(positions), np.bool_))

    def _better(self, rows: KeyedTable) -> Mask:
        """Per place in group order: whether the row beats the stored one and those before it."""
        groups = rows.groups
        measure = self._measure(rows)
        stored = np.where(rows.stored.there, measure[: groups.count], _WORST)
        arrived = measure[groups.count :][groups.order]
        best = np.roll(segmented_accumulate(np.minimum, arrived, groups.starts), 1)
        best[groups.starts] = _WORST
        best = np.minimum(best, np.repeat(stored, groups.sizes))
        better: Mask = arrived <= best if self.spec.latest else arrived < best
        return better

    def _measure(self, rows: KeyedTable) -> Ints:
        """Integers that sort as the order does: of the stored rows, then of the epoch's."""
        columns = [stored_then_new(self.spec.records, rows, key.name) for key in self.spec.order]
        return _measure(self.spec, columns)

    def _shown(self, changes: pa.Table) -> pa.Table:
        """The rank column, the kinds as the consumer wants them."""
        spec, count = self.spec, len(changes)
        kinds = vector(changes.column(KIND_COLUMN)).values
        columns = {name: changes.column(name) for name in changes.schema.names}
        if spec.rank:
            columns[spec.rank] = to_arrow(Vec(np.ones(count, np.int64)), pa.int64())
        if not spec.in_place:
            columns[KIND_COLUMN] = to_arrow(Vec(_coming_and_going(kinds)), pa.int8())
        schema = spec.output_schema()
        return pa.table([columns[name] for name in schema.names], schema=schema)


def best_rows(shape: RankShape, table: pa.Table, groups: Groups) -> Ints:
    """The best row of each partition of ``table``, which is in arrival order."""
    if shape.insert_only or not shape.order:
        last = shape.latest and not shape.insert_only
        ends: Ints = groups.order[groups.starts + (groups.sizes - 1 if last else 0)]
        return ends
    measure = _measure(shape, [single(table.column(key.name)) for key in shape.order])[groups.order]
    best = np.minimum.reduceat(measure, groups.starts)
    equal = np.flatnonzero(measure == np.repeat(best, groups.sizes))
    owners = np.searchsorted(groups.starts, equal, side="right")
    change = owners[1:] != owners[:-1]
    is_best = np.append(change, True) if shape.latest else np.append(True, change)
    rows: Ints = groups.order[equal[is_best]]
    return rows


def _measure(shape: RankShape, columns: list[pa.Array]) -> Ints:
    """Integers that sort as the order does over its ``columns``."""
    measures = [codes(column, key) for column, key in zip(columns, shape.order, strict=True)]
    if len(measures) == 1:
        return measures[0]
    order = np.lexsort(measures[::-1])
    steps = np.zeros(len(order), np.int64)
    for measure in measures:
        steps[1:] |= measure[order][1:] != measure[order][:-1]
    ranks = np.empty(len(order), np.int64)
    ranks[order] = np.cumsum(steps)
    return ranks


def _coming_and_going(kinds: Kinds) -> Kinds:
    return np.where(kinds & 1, RowKind.DELETE, RowKind.INSERT).astype(np.int8)
