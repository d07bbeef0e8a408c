"""One named table of an operator's state: look up, gather, put; merged and written by ``flush``.

``layers`` are newest first; rows put during the epoch form in-memory layers on top, visible to later
lookups of the same step. Nothing is written before ``flush``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa

from tidemill.changelog.columns import Hashes, Ints, Mask, Vec, single, to_arrow, vector
from tidemill.changelog.grouping import group_rows
from tidemill.changelog.hashing import code_range, hash_columns
from tidemill.changelog.values import rows_same
from tidemill.state.layout import Layout, conform, hash_array
from tidemill.state.lookup import Found, find, total_weight
from tidemill.state.merge import expired, merge_tables
from tidemill.state.run import DELETED, HASH, TIME, WEIGHT, RunReader
from tidemill.state.spine import Layer, SpineOptions, compact
from tidemill.state.storage import Storage

GROWING_LAYERS = 8
"""Layers of a growing table that are not merged: its rows are wide, and few keys are asked for at a time."""


@dataclass(slots=True)
class StateTable:
    """``now``: the epoch's processing time in ms, the clock of TTL."""

    layout: Layout
    storage: Storage
    options: SpineOptions
    now: int
    epoch: int
    layers: list[Layer]
    added: int = 0
    fresh: list[Layer] = field(default_factory=list)

    @property
    def all_layers(self) -> list[Layer]:
        return [*self.fresh, *self.layers]

    def lookup(self, hashes: Hashes, keys: list[pa.Array]) -> Found:
        """Records of distinct identities. ``hashes`` ascending (``Layout.codes``); ``keys`` are the
        identity columns, one row per query. Deleted and expired records are not found."""
        found = find(self.layout, self.all_layers, hashes, keys)
        if found.pieces:
            found.found &= self._alive(found)
        return found

    def weights(self, hashes: Hashes, keys: list[pa.Array]) -> Ints:
        """A multiset's total weight of each queried identity (ascending ``hashes``)."""
        return total_weight(self.layout, self.all_layers, hashes, keys, WEIGHT)

    def gather(self, key_hashes: Hashes, keys: list[pa.Array]) -> tuple[Ints, pa.Table]:
        """All live rows of the given distinct keys, in a two-part table.

        Returns the number of the key per row (ascending) and the value, payload and weight columns.
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
        """All rows of the given distinct keys as they are stored, newest layer first: versions of a
        record, tombstones and parts of a weight stand side by side.

        Returns the number of the key per row (ascending within a layer) and all columns of the layout.
        """
        return self._together(*self._pieces(key_hashes, keys))

    def _pieces(self, key_hashes: Hashes, keys: list[pa.Array]) -> tuple[list[Ints], list[pa.Table]]:
        """Per run that has rows of the keys the numbers of these keys, and the rows."""
        lo, hi = code_range(key_hashes)
        owners: list[Ints] = []
        tables: list[pa.Table] = []
        schema = self.layout.schema
        for layer in self.all_layers if len(lo) else ():
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

    def put(self, hashes: Hashes, columns: dict[str, pa.Array], deleted: Mask | None = None) -> None:
        """Adds distinct records; ``deleted`` marks tombstones. Rows of a multiset may repeat in a table
        that is read by ``pieces`` only."""
        rows = len(hashes)
        if rows == 0:
            return
        columns = {HASH: hash_array(hashes), **columns}
        if deleted is not None:
            columns[DELETED] = to_arrow(Vec(deleted), pa.bool_())
        if self.layout.ttl:
            columns[TIME] = to_arrow(Vec(np.full(rows, self.now, np.int64)), pa.int64())
        table = conform(pa.table(columns), self.layout.schema)
        if not (hashes[1:] >= hashes[:-1]).all():
            table = table.take(pa.array(np.argsort(hashes, kind="stable")))
        self.added += rows
        self.fresh.insert(0, (RunReader.of_table(self.storage, table, (self.epoch, self.epoch)),))
        self._settle()

    def finish(self, write: Callable[[RunReader], RunReader]) -> list[Layer] | None:
        """The layers after this epoch, every new one written by ``write``; None if nothing changed."""
        if not self.fresh:
            return None
        if len(self.fresh) > 1:
            merged = self._merge([layer[0] for layer in self.fresh], not self.layers)
            self.fresh = [(merged,)] if merged is not None else []
        options = replace(self.options, lazy_layers=GROWING_LAYERS) if self.layout.growing else self.options
        layers = compact(self.all_layers, options, self.added, self._merge)
        return [tuple(r if r.run is not None else write(r) for r in layer) for layer in layers]

    def _merge(self, readers: list[RunReader], last: bool) -> RunReader | None:
        merged = merge_tables(self.layout, [r.table for r in readers], last=last, now=self.now)
        if len(merged) == 0:
            return None
        epochs = min(r.epochs[0] for r in readers), max(r.epochs[1] for r in readers)
        return RunReader.of_table(self.storage, merged, epochs)

    def _settle(self) -> None:
        """Keeps in-memory layers geometric, so that many small puts stay cheap."""
        while len(self.fresh) > 1 and 2 * self.fresh[0][0].rows >= self.fresh[1][0].rows:
            merged = self._merge([layer[0] for layer in self.fresh[:2]], False)
            self.fresh[:2] = [(merged,)] if merged is not None else []

    def _alive(self, found: Found) -> Mask:
        deleted = found.vec(DELETED)
        alive = ~(deleted.values & deleted.mask())
        if self.layout.ttl:
            alive &= ~expired(found.vec(TIME).values, self.layout, self.now)
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
            keep &= ~expired(vector(table.column(TIME)).values[rows], self.layout, self.now)
        return keep

    def _public(self, table: pa.Table) -> pa.Table:
        names = [f.name for f in (*self.layout.values, *self.layout.columns)]
        return table.select([*names, WEIGHT] if self.layout.additive else names)


def _scattered(rows: Ints, values: Ints, size: int) -> pa.Array:
    spread = np.zeros(size, np.int64)
    spread[rows] = values
    return to_arrow(Vec(spread), pa.int64())
