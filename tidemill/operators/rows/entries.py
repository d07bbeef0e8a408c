"""Rows of a key in order of arrival, kept as a state table of (key, sequence, values).

The state of operators that need all rows of a key: Top-N, LISTAGG and similar, the sink materializer. An
epoch loads the entries of the touched keys, adds its own, removes retracted entries (the earliest equal row,
as in Flink's list states) and writes the difference. Cost: the entries of the touched keys.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from tidemill.changelog.columns import Hashes, Ints, Mask, Vec, single, to_arrow, vector
from tidemill.changelog.grouping import group_rows
from tidemill.changelog.hashing import hash_columns
from tidemill.changelog.rowkind import SEQUENCE_COLUMN
from tidemill.operators.rows.grouped import segmented_accumulate
from tidemill.operators.rows.stored_before import Late, as_stored, marks
from tidemill.state.layout import Layout
from tidemill.state.run import WEIGHT
from tidemill.state.table import StateTable

COUNT = "$count"


def kept_columns(
    columns: Iterable[tuple[str, object]], keys: tuple[str, ...], late: Late | None
) -> tuple[str, ...]:
    """The names of ``columns`` outside of the key. If a query may change its columns, the order does not
    depend on the query, and the marks of rows come last."""
    names = [name for name, _ in columns if name not in keys]
    return tuple(names if late is None else [*sorted(names), *marks(late)])


def entry_layout(
    name: str,
    keys: tuple[pa.Field, ...],
    values: tuple[pa.Field, ...],
    ttl: int,
    late: Late | None = None,
) -> Layout:
    """The state table of a key's rows; with TTL it holds counts, as an expired copy must not cut a weight."""
    layout = Layout(
        name=name,
        keys=keys,
        values=(pa.field(SEQUENCE_COLUMN, pa.int64()), *values),
        columns=(pa.field(COUNT, pa.int64()),) if ttl else (),
        additive=not ttl,
        ttl=ttl,
        counts=COUNT if ttl else "",
        arrival=SEQUENCE_COLUMN,
    )
    return evolving(layout, late)


def evolving(layout: Layout, late: Late | None) -> Layout:
    """``layout`` in which other columns may be stored, unless columns are stored by position."""
    if late is None:
        return layout
    names = {f.name for f in layout.values}
    return replace(layout, evolves=True, late=tuple(name for name, _ in late if name in names))


@dataclass(frozen=True, slots=True)
class Entries:
    """Rows in order of arrival within a key. ``owners``: number of the key; ``weights``: +1 or -1;
    ``old``: comes from state."""

    owners: Ints
    sequence: Ints
    columns: list[pa.Array]
    weights: Ints
    old: Mask

    def __len__(self) -> int:
        return len(self.owners)

    def then(self, later: Entries) -> Entries:
        """These entries, then ``later`` ones."""
        return Entries(
            np.concatenate([self.owners, later.owners]),
            np.concatenate([self.sequence, later.sequence]),
            [
                single(pa.chunked_array([a, b], a.type))
                for a, b in zip(self.columns, later.columns, strict=True)
            ],
            np.concatenate([self.weights, later.weights]),
            np.concatenate([self.old, later.old]),
        )


def with_missing_columns(entries: Entries, names: tuple[str, ...], late: Late | None) -> Entries:
    """Stored entries, then the epoch's entries. A retraction lacks a ``late`` column if its row was stored
    without the column. ``names``: of the columns."""
    if not late:
        return entries
    columns = dict(zip(names, entries.columns, strict=True))
    stored_columns = as_stored(entries.owners, columns, entries.weights, entries.old, late)
    return replace(entries, columns=[stored_columns[name] for name in names])


def load_entries(layout: Layout, table: StateTable, hashes: Hashes, keys: list[pa.Array]) -> Entries:
    """The entries of the given distinct keys, one per copy, by key and sequence."""
    owners, stored = table.gather(hashes, keys)
    counts = vector(stored.column(WEIGHT if layout.additive else COUNT)).values
    sequence = vector(stored.column(SEQUENCE_COLUMN)).values
    order = np.lexsort((sequence, owners))
    picks = np.repeat(order, np.maximum(counts[order], 0))
    columns = [single(stored.column(f.name)).take(pa.array(picks)) for f in layout.values[1:]]
    ones = np.ones(len(picks), np.int64)
    return Entries(owners[picks], sequence[picks], columns, ones, ones.astype(np.bool_))


def surviving_additions(entries: Entries) -> Mask:
    """The additions that remain: of equal (key, values) the latest, minus the retractions.

    A retraction without a matching earlier addition is ignored.
    """
    if not (entries.weights < 0).any():
        return np.ones(len(entries), np.bool_)
    identity = [to_arrow(Vec(entries.owners), pa.int64()), *entries.columns]
    groups = group_rows(hash_columns(identity, len(entries)), identity)
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


def arrivals(entries: Entries) -> Ints:
    """A number per entry, smaller for earlier arrivals; old entries come before new entries. If entries of a
    key share a position in the sequence (two tasks or two branches of a union gave them), their contents
    decide: a later epoch reads them in another order, and must find the same."""
    size, split = len(entries), int(entries.old.sum())
    owners, sequence = entries.owners, entries.sequence
    grows = split in (0, size) or int(sequence[:split].max()) < int(sequence[split:].min())
    if grows and not ((owners[1:] == owners[:-1]) & (sequence[1:] == sequence[:-1])).any():
        return np.arange(size)
    numbers = np.empty(size, np.int64)
    numbers[np.lexsort((hash_columns(entries.columns, size), sequence))] = np.arange(size)
    return numbers


def put_entries(
    layout: Layout,
    table: StateTable,
    entries: Entries,
    left: Mask,
    hashes: Hashes,
    keys: list[pa.Array],
    *,
    renews: bool = False,
) -> None:
    """Adds the new entries that are ``left``, and removes the old entries that are not. ``renews``: entries
    that stay are written again, so that all entries live as long as the last. A multiset takes in the
    difference. A count replaces the count before it, so it includes all equal entries, also the entries that
    stay: branches of a union give several entries with one position in the sequence."""
    moved = left | entries.old if renews else left != entries.old
    rows = np.flatnonzero(moved)
    if len(rows) == 0:
        return
    weights = left.astype(np.int64)
    if layout.additive:
        weights -= entries.old
    else:
        rows = np.flatnonzero(np.isin(entries.sequence, entries.sequence[rows]))
    owners, picks = entries.owners[rows], pa.array(rows)
    values = [to_arrow(Vec(entries.sequence[rows]), pa.int64())]
    values += [column.take(picks) for column in entries.columns]
    identity = [to_arrow(Vec(owners), pa.int64()), *values]
    groups = group_rows(hash_columns(identity, len(owners)), identity)
    written = np.flatnonzero(np.logical_or.reduceat(moved[rows][groups.order], groups.starts))
    heads = groups.heads[written]
    weights = np.add.reduceat(weights[rows][groups.order], groups.starts)[written]
    values = [value.take(pa.array(heads)) for value in values]
    owners = owners[heads]
    names = [f.name for f in layout.identity]
    columns = dict(zip(names, [*(key.take(pa.array(owners)) for key in keys), *values], strict=True))
    codes = layout.codes(hashes[owners], values)
    if layout.additive:
        table.put(codes, {**columns, WEIGHT: to_arrow(Vec(weights), pa.int64())})
    else:
        table.put(codes, {**columns, COUNT: to_arrow(Vec(weights), pa.int64())}, weights == 0)
