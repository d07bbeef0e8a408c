"""COUNT(DISTINCT v) by keys that share their values: emits the number of new values per key.

Rows are insert-only, so values never go. An epoch emits for each key the number of its new values, and an
aggregation above adds the numbers up. Rows are partitioned by the other key columns and the value.

State: an entry per value, see ``shared_keys``. Cost of an epoch: its distinct values. Each is looked up once,
whatever its keys, and written if it has a new key.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pyarrow as pa

from tidemill.changelog.batch import contiguous, with_types
from tidemill.changelog.columns import Vec, single, to_arrow
from tidemill.changelog.hashing import hash_columns
from tidemill.operators.api import HASH_COLUMN, EpochContext
from tidemill.operators.shared_distinct.shared_keys import BITS, SharedKeys, bits_of
from tidemill.state.layout import Layout
from tidemill.state.store import StateStore


@dataclass(frozen=True, kw_only=True)
class SharedDistinctSpec:
    """``number``: the name of the column behind the keys'; ``partial_input``: rows are entries already."""

    shared: SharedKeys
    number: str
    partial_input: bool = False

    @cached_property
    def layout(self) -> Layout:
        shared = self.shared
        return Layout(name="values", keys=shared.keys, values=shared.words, columns=(shared.bits,))

    @property
    def fingerprint(self) -> str:
        facts = f"shared-distinct {self.layout.schema} {self.shared.known}"
        return hashlib.sha256(facts.encode()).hexdigest()[:16]

    def output_schema(self) -> pa.Schema:
        columns = [pa.field(*column) for column, _ in self.shared.shown]
        return pa.schema([*columns, pa.field(self.number, pa.int64())])

    @property
    def combinable(self) -> bool:
        return True

    def combine(self, table: pa.Table) -> pa.Table:
        """The values once, with the bits of their keys."""
        entries = self._entries(table)
        keys = [single(entries.column(f.name)) for f in self.shared.keys]
        hashes = to_arrow(Vec(hash_columns(keys, len(entries))), pa.uint64())
        return entries.append_column(HASH_COLUMN, hashes)

    def merged(self, raw: list[pa.Table], combined: list[pa.Table]) -> tuple[SharedDistinctSpec, pa.Table]:
        """All as entries."""
        raw_entries = [self.combine(pa.concat_tables(raw))] if raw else []
        return replace(self, partial_input=True), pa.concat_tables([*combined, *raw_entries])

    def _entries(self, table: pa.Table) -> pa.Table:
        return self.shared.entries(contiguous(with_types(table, self.shared.types)))

    def step(self, inputs: tuple[pa.Table, ...], state: StateStore, epoch: EpochContext) -> pa.Table:
        """The number of new values of each key with new values."""
        (table,) = inputs
        schema = self.output_schema()
        if len(table) == 0:
            return schema.empty_table()
        if self.partial_input:
            table = table.select(self.shared.schema.names).cast(self.shared.schema)
            entries = self.shared.folded(contiguous(table))
        else:
            entries = self._entries(table)
        counts = self.shared.counted(self._new(contiguous(entries), state), self.number)
        return counts.cast(schema)

    def _new(self, entries: pa.Table, state: StateStore) -> pa.Table:
        """Stores the entries with new bits, and returns them with only the new bits."""
        table, names = state.table(self.layout), self.shared.identity
        columns = [single(entries.column(name)) for name in names]
        keys = len(self.shared.keys)
        codes = self.layout.codes(hash_columns(columns[:keys], len(entries)), columns[keys:])
        order = np.argsort(codes, kind="stable")
        codes, picks = codes[order], pa.array(order)
        columns = [column.take(picks) for column in columns]
        stored = table.lookup(codes, columns)
        before = np.where(stored.there, stored.vec(BITS).values, 0).astype(bits_of(entries).dtype)
        bits = bits_of(entries)[order]
        rows = np.flatnonzero(bits & ~before)
        columns_to_store = {name: c.take(pa.array(rows)) for name, c in zip(names, columns, strict=True)}
        columns_to_store[BITS] = to_arrow(Vec((bits | before)[rows]), self.shared.bits.type)
        table.put(codes[rows], columns_to_store)
        return self.shared.with_bits(pa.table(columns_to_store), (bits & ~before)[rows])
