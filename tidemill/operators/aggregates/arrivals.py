"""All values of each key in order of arrival: the state of LISTAGG, ARRAY_AGG, JSON aggregates and of
FIRST_VALUE/LAST_VALUE under retraction.

Cost: the entries of the touched keys are read in each epoch, which is also the size of the results.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from tidemill.changelog.columns import Ints
from tidemill.changelog.rowkind import SEQUENCE_COLUMN
from tidemill.operators.aggregates.api import AggregateSpec, Cells, Source
from tidemill.operators.aggregates.count import count_weights
from tidemill.operators.rows.entries import (
    Entries,
    entry_layout,
    load_entries,
    put_entries,
    surviving_additions,
)
from tidemill.operators.rows.grouped import GroupedRows, WeightKey
from tidemill.state.layout import Layout
from tidemill.state.table import StateTable


@dataclass(frozen=True, slots=True)
class Bag:
    """Per group the values ``columns[:][offsets[g]:offsets[g + 1]]``; ``counts`` copies of each (None: 1)."""

    offsets: Ints
    columns: list[pa.Array]
    counts: Ints | None = None

    @property
    def sizes(self) -> Ints:
        return np.diff(self.offsets)

    def owners(self) -> Ints:
        return np.repeat(np.arange(len(self.offsets) - 1), self.sizes)


def bag_of(owners: Ints, columns: list[pa.Array], groups: int, counts: Ints | None = None) -> Bag:
    """A bag of entries that are already in group order."""
    offsets = np.searchsorted(owners, np.arange(groups + 1))
    return Bag(offsets, columns, counts)


@dataclass(frozen=True, slots=True)
class ArrivalsAccumulator:
    """One cell: the ``Bag`` of live entries, columns are the call's arguments. Nothing is in the record."""

    name: str
    args: tuple[str, ...]
    weight_key: WeightKey
    nulls: bool
    layout: Layout

    @classmethod
    def of(cls, spec: AggregateSpec, source: Source, *, nulls: bool) -> ArrivalsAccumulator:
        name = spec.canonical("ARRIVALS" if nulls else "ARRIVALS NOT NULL")
        values = tuple(pa.field(f"$value{i}", kind) for i, kind in enumerate(spec.arg_types))
        layout = entry_layout(name, source.keys, values, source.ttl)
        return cls(name, spec.args, spec.weight_key, nulls, layout)

    @property
    def fields(self) -> tuple[pa.Field, ...]:
        return ()

    def advance(self, old: Cells, rows: GroupedRows, table: StateTable) -> tuple[Cells, Cells]:
        groups = rows.groups.count
        stored = load_entries(self.layout, table, rows.hashes, rows.keys)
        before = bag_of(stored.owners, stored.columns, groups)
        entries = stored.then(self._arrived(rows))
        left = surviving_additions(entries)
        # Values expire with the group's record; otherwise a retraction would not match the emitted result.
        renews = self.layout.ttl > 0
        put_entries(self.layout, table, entries, left, rows.hashes, rows.keys, renews=renews)
        remaining = np.flatnonzero(left)
        order = remaining[np.argsort(entries.owners[remaining], kind="stable")]
        columns = [column.take(pa.array(order)) for column in entries.columns]
        return (before,), (bag_of(entries.owners[order], columns, groups),)

    def _arrived(self, rows: GroupedRows) -> Entries:
        weights = count_weights(rows, () if self.nulls else self.args[:1], self.weight_key)
        positions = np.arange(len(rows.groups.order)) if weights is None else np.flatnonzero(weights)
        picks = pa.array(positions)
        return Entries(
            rows.groups.ids()[positions],
            rows.vec(SEQUENCE_COLUMN).values[positions],
            [rows.array(arg).take(picks) for arg in self.args],
            np.ones(len(positions), np.int64) if weights is None else weights[positions],
            np.zeros(len(positions), np.bool_),
        )
