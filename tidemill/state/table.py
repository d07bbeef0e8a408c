"""One named table of an operator's state: ``lookup``, ``gather`` and ``put``.

Rows that are put during the epoch are visible to later lookups of the same step. ``StateStore.flush``
merges and writes them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from tidemill.changelog.columns import Hashes, Ints, Mask, Vec, single, to_arrow, vector
from tidemill.changelog.grouping import group_rows
from tidemill.changelog.hashing import code_range, hash_columns
from tidemill.changelog.values import rows_same
from tidemill.state.layers import TableLayers
from tidemill.state.layout import Layout, conform, hash_array
from tidemill.state.lookup import Answers, Queries, find, total_weight
from tidemill.state.merge import expired
from tidemill.state.run import DELETED, HASH, TIME, WEIGHT, RunReader
from tidemill.state.spine import Layer


@dataclass(slots=True)
class StateTable:
    """A table ordered by hash."""

    rows: TableLayers

    @property
    def layout(self) -> Layout:
        return self.rows.layout

    @property
    def layers(self) -> list[Layer]:
        """The stored layers, from before this epoch."""
        return self.rows.stored

    def lookup(self, hashes: Hashes, keys: list[pa.Array]) -> Answers:
        """The records of distinct identities. ``hashes`` are ascending (``Layout.codes``), and ``keys``
        are the identity columns, with one row per query. Deleted and expired records are not found."""
        found = find(self.layout, self.rows.all, Queries(hashes), keys)
        if found.pieces:
            found.there &= self._alive(found)
        return found

    def weights(self, hashes: Hashes, keys: list[pa.Array]) -> Ints:
        """The total weight in a multiset of each queried identity (ascending ``hashes``)."""
        return total_weight(self.layout, self.rows.all, Queries(hashes), keys, WEIGHT)

    def gather(self, key_hashes: Hashes, keys: list[pa.Array]) -> tuple[Ints, pa.Table]:
        """All live rows of the given distinct keys, in a two-part table.

        Gives the number of the key per row (ascending), and the value, payload and weight columns.
        """
        owners, tables = self._pieces(key_hashes, keys)
        if len(tables) == 1:
            # One run has one row of an identity, and they are in order.
            (owner,), (table,) = owners, tables
            rows = np.arange(len(owner))
            keep = self._live_rows(table, rows)
            if not keep.all():
                owner, table = owner[keep], table.take(pa.array(rows[keep]))
            return owner, self._public(table)
        return self._consolidate(*self._together(owners, tables))

    def pieces(self, key_hashes: Hashes, keys: list[pa.Array]) -> tuple[Ints, pa.Table]:
        """All rows of the given distinct keys as they are stored, newest layer first. Versions of a
        record, tombstones and parts of a weight are separate rows.

        Gives the number of the key per row (ascending within a layer), and all columns of the layout.
        """
        return self._together(*self._pieces(key_hashes, keys))

    def _pieces(self, key_hashes: Hashes, keys: list[pa.Array]) -> tuple[list[Ints], list[pa.Table]]:
        """For each run with rows of the keys, the numbers of these keys, and the rows."""
        lo, hi = code_range(key_hashes)
        owners: list[Ints] = []
        tables: list[pa.Table] = []
        schema = self.layout.schema
        for layer in self.rows.all if len(lo) else ():
            for reader in layer:
                owner, rows = self._ranges(reader, lo, hi, keys)
                if len(rows):
                    owners.append(owner)
                    tables.append(conform(reader.table.take(pa.array(rows)), schema))
        return owners, tables

    def _together(self, owners: list[Ints], tables: list[pa.Table]) -> tuple[Ints, pa.Table]:
        if not tables:
            return np.zeros(0, np.int64), self.layout.schema.empty_table()
        return np.concatenate(owners), pa.concat_tables(tables).combine_chunks()

    def everything(self) -> pa.Table:
        """All live rows, with all columns of the layout. Costs a read of the whole state."""
        readers = [reader for layer in self.rows.all for reader in layer]
        pieces = [reader.table for reader in (self.rows.merge(readers, True) if readers else ())]
        return pa.concat_tables(pieces or [self.layout.schema.empty_table()])

    def put(self, hashes: Hashes, columns: dict[str, pa.Array], deleted: Mask | None = None) -> None:
        """Adds distinct records; ``deleted`` marks tombstones. In a table that is only read by ``pieces``,
        rows of a multiset may repeat."""
        rows = len(hashes)
        if rows == 0:
            return
        columns = {HASH: hash_array(hashes), **columns}
        if deleted is not None:
            columns[DELETED] = to_arrow(Vec(deleted), pa.bool_())
        if self.layout.ttl:
            columns[TIME] = to_arrow(Vec(np.full(rows, self.rows.now, np.int64)), pa.int64())
        table = conform(pa.table(columns), self.layout.schema)
        if not (hashes[1:] >= hashes[:-1]).all():
            table = table.take(pa.array(np.argsort(hashes, kind="stable")))
        self.rows.add(table)

    def _alive(self, found: Answers) -> Mask:
        deleted = found.vec(DELETED)
        alive = ~(deleted.values & deleted.mask())
        if self.layout.ttl:
            alive &= ~expired(found.vec(TIME).values, self.layout, self.rows.now)
        return alive

    def _ranges(self, reader: RunReader, lo: Hashes, hi: Hashes, keys: list[pa.Array]) -> tuple[Ints, Ints]:
        """Key numbers and rows of ``reader`` whose key is among the queried ones."""
        first = np.searchsorted(reader.hashes, lo, side="left")
        counts = np.searchsorted(reader.hashes, hi, side="right") - first
        owner = np.repeat(np.arange(len(lo)), counts)
        ends = np.cumsum(counts)
        rows = np.arange(len(owner)) - np.repeat(ends - counts - first, counts)
        columns = [reader.column(f.name) for f in self.layout.keys]
        same = rows_same(columns, rows, keys, owner)
        return owner[same], rows[same]

    def _consolidate(self, owners: Ints, table: pa.Table) -> tuple[Ints, pa.Table]:
        values = [single(table.column(f.name)) for f in self.layout.values]
        identity = [to_arrow(Vec(owners), pa.int64()), *values]
        groups = group_rows(hash_columns(identity, len(owners)), identity)
        heads = groups.heads
        if self.layout.additive:
            weights = np.add.reduceat(vector(table.column(WEIGHT)).values[groups.order], groups.starts)
            keep = weights != 0
            table = table.set_column(
                table.schema.get_field_index(WEIGHT), WEIGHT, _scattered(heads, weights, len(table))
            )
        else:
            keep = self._live_rows(table, heads)
        heads = heads[keep]
        heads = heads[np.argsort(owners[heads], kind="stable")]
        return owners[heads], self._public(table.take(pa.array(heads)))

    def _live_rows(self, table: pa.Table, rows: Ints) -> Mask:
        if self.layout.additive:
            there: Mask = vector(table.column(WEIGHT)).values[rows] != 0
            return there
        deleted = vector(table.column(DELETED)).take(rows)
        keep = ~(deleted.values & deleted.mask())
        if self.layout.ttl:
            keep &= ~expired(vector(table.column(TIME)).values[rows], self.layout, self.rows.now)
        return keep

    def _public(self, table: pa.Table) -> pa.Table:
        names = [f.name for f in (*self.layout.values, *self.layout.columns)]
        return table.select([*names, WEIGHT] if self.layout.additive else names)


def _scattered(rows: Ints, values: Ints, size: int) -> pa.Array:
    spread = np.zeros(size, np.int64)
    spread[rows] = values
    return to_arrow(Vec(spread), pa.int64())
