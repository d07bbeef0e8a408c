"""COUNT(DISTINCT v) by keys that share their values: how many have come that a key had not yet.

Rows only come, and so do values: an epoch gives, for each key, the number of its new ones, which an
aggregation above adds up. Rows are sent by the other columns of their keys and the value.

State: an entry per value, see ``shared_keys``. Cost of an epoch: its distinct values, each looked up once
whatever keys it comes under, and written where it has a new one.
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
        rest = [self.combine(pa.concat_tables(raw))] if raw else []
        return replace(self, partial_input=True), pa.concat_tables([*combined, *rest])

    def _entries(self, table: pa.Table) -> pa.Table:
        return self.shared.entries(contiguous(with_types(table, self.shared.types)))

    def step(self, inputs: tuple[pa.Table, ...], state: StateStore, epoch: EpochContext) -> pa.Table:
        """The number of new values of each key that has any."""
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
        """The entries with the bits that are new, where there are any; they are kept."""
        table, names = state.table(self.layout), self.shared.identity
        columns = [single(entries.column(name)) for name in names]
        keys = len(self.shared.keys)
        codes = self.layout.codes(hash_columns(columns[:keys], len(entries)), columns[keys:])
        order = np.argsort(codes, kind="stable")
        codes, picks = codes[order], pa.array(order)
        columns = [column.take(picks) for column in columns]
        found = table.lookup(codes, columns)
        before = np.where(found.there, found.vec(BITS).values, 0).astype(bits_of(entries).dtype)
        bits = bits_of(entries)[order]
        rows = np.flatnonzero(bits & ~before)
        kept = {name: c.take(pa.array(rows)) for name, c in zip(names, columns, strict=True)}
        kept[BITS] = to_arrow(Vec((bits | before)[rows]), self.shared.bits.type)
        table.put(codes[rows], kept)
        return self.shared.with_bits(pa.table(kept), (bits & ~before)[rows])
