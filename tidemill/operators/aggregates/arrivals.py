"""All values of each key in order of arrival: the state of LISTAGG, ARRAY_AGG, JSON aggregates and of
FIRST_VALUE/LAST_VALUE under retraction.

A state table of (key, sequence, values). A retraction takes away the earliest copy of its value that is
there, as Flink's list views do; one whose value is not there is ignored. Cost: the entries of the touched
keys are read in each epoch, which is also the size of the results.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from tidemill.changelog.columns import Ints, Mask, Vec, single, to_arrow, vector
from tidemill.changelog.grouping import group_rows
from tidemill.changelog.hashing import hash_columns
from tidemill.changelog.rowkind import SEQUENCE_COLUMN
from tidemill.operators.aggregates.api import AggregateSpec, Cells, Source
from tidemill.operators.aggregates.count import counted
from tidemill.operators.grouped import GroupedRows, WeightKey, segmented_accumulate
from tidemill.state.layout import Layout
from tidemill.state.run import WEIGHT
from tidemill.state.table import StateTable

COUNT = "$count"


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
class _Entries:
    """Rows in order of arrival within a group; ``old`` ones come from state."""

    owners: Ints
    sequence: Ints
    columns: list[pa.Array]
    weights: Ints
    old: Mask


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
        layout = Layout(
            name=name,
            keys=source.keys,
            values=(pa.field(SEQUENCE_COLUMN, pa.int64()), *values),
            columns=(pa.field(COUNT, pa.int64()),) if source.ttl else (),
            additive=not source.ttl,
            ttl=source.ttl,
        )
        return cls(name, spec.args, spec.weight_key, nulls, layout)

    @property
    def fields(self) -> tuple[pa.Field, ...]:
        return ()

    def advance(self, old: Cells, rows: GroupedRows, table: StateTable) -> tuple[Cells, Cells]:
        groups = rows.groups.count
        stored = self._stored(rows, table)
        before = bag_of(stored.owners, stored.columns, groups)
        new = self._arrived(rows)
        entries = _concat(stored, new)
        left = _live(entries) if (new.weights < 0).any() else np.ones(len(entries.owners), np.bool_)
        self._put(entries, left, rows, table)
        kept = np.flatnonzero(left)
        order = kept[np.argsort(entries.owners[kept], kind="stable")]
        columns = [column.take(pa.array(order)) for column in entries.columns]
        return (before,), (bag_of(entries.owners[order], columns, groups),)

    def _stored(self, rows: GroupedRows, table: StateTable) -> _Entries:
        """The entries in state, one row per copy, by group and sequence."""
        owners, found = table.gather(rows.hashes, rows.keys)
        counts = vector(found.column(WEIGHT if self.layout.additive else COUNT)).values
        sequence = vector(found.column(SEQUENCE_COLUMN)).values
        order = np.lexsort((sequence, owners))
        picks = np.repeat(order, np.maximum(counts[order], 0))
        columns = [single(found.column(f.name)).take(pa.array(picks)) for f in self.layout.values[1:]]
        ones = np.ones(len(picks), np.int64)
        return _Entries(owners[picks], sequence[picks], columns, ones, ones.astype(np.bool_))

    def _arrived(self, rows: GroupedRows) -> _Entries:
        weights = counted(rows, () if self.nulls else self.args[:1], self.weight_key)
        places = np.arange(len(rows.groups.order)) if weights is None else np.flatnonzero(weights)
        picks = pa.array(places)
        return _Entries(
            rows.groups.ids()[places],
            rows.vec(SEQUENCE_COLUMN).values[places],
            [rows.array(arg).take(picks) for arg in self.args],
            np.ones(len(places), np.int64) if weights is None else weights[places],
            np.zeros(len(places), np.bool_),
        )

    def _put(self, entries: _Entries, left: Mask, rows: GroupedRows, table: StateTable) -> None:
        """Adds the new entries that stay, takes out the old ones that go."""
        changed = np.flatnonzero(left != entries.old)
        if len(changed) == 0:
            return
        owners = entries.owners[changed]
        picks = pa.array(changed)
        values = [to_arrow(Vec(entries.sequence[changed]), pa.int64())]
        values += [column.take(picks) for column in entries.columns]
        identity = [to_arrow(Vec(owners), pa.int64()), *values]
        groups = group_rows(hash_columns(identity, len(owners)), identity)
        signs = np.where(left[changed], 1, -1)[groups.order]
        weights = np.add.reduceat(signs, groups.starts)
        heads = pa.array(groups.heads)
        values = [value.take(heads) for value in values]
        owners = owners[groups.heads]
        keys = [key.take(pa.array(owners)) for key in rows.keys]
        names = [f.name for f in self.layout.identity]
        columns = dict(zip(names, [*keys, *values], strict=True))
        codes = self.layout.codes(rows.hashes[owners], values)
        if self.layout.additive:
            table.put(codes, {**columns, WEIGHT: to_arrow(Vec(weights), pa.int64())})
        else:
            table.put(codes, {**columns, COUNT: to_arrow(Vec(weights), pa.int64())}, weights < 0)


def _concat(a: _Entries, b: _Entries) -> _Entries:
    columns = [single(pa.chunked_array([x, y], x.type)) for x, y in zip(a.columns, b.columns, strict=True)]
    return _Entries(
        np.concatenate([a.owners, b.owners]),
        np.concatenate([a.sequence, b.sequence]),
        columns,
        np.concatenate([a.weights, b.weights]),
        np.concatenate([a.old, b.old]),
    )


def _live(entries: _Entries) -> Mask:
    """Additions that are left: of each (group, value) the latest, as many as survive the retractions."""
    identity = [to_arrow(Vec(entries.owners), pa.int64()), *entries.columns]
    groups = group_rows(hash_columns(identity, len(entries.owners)), identity)
    weights = entries.weights[groups.order]
    totals = segmented_accumulate(np.add, weights, groups.starts)
    debts = np.minimum(segmented_accumulate(np.minimum, totals, groups.starts), 0)
    ends = groups.starts + groups.sizes - 1
    survivors = (totals - debts)[ends]
    added = (weights > 0).astype(np.int64)
    rank = segmented_accumulate(np.add, added, groups.starts)
    from_end = np.repeat(rank[ends], groups.sizes) - rank
    stays = (added > 0) & (from_end < np.repeat(survivors, groups.sizes))
    left = np.zeros(len(stays), np.bool_)
    left[groups.order] = stays
    return left
