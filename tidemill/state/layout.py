"""What a state table holds: its identity, its payload and how versions of a row combine.

Two families. *Records*: the newest row of an identity wins, deletions are tombstones. *Multisets*
(``additive``): rows of an identity add their ``$weight``; weight zero is absence.
An identity is the key columns, then (two-part tables) the value columns: rows are ordered by a hash code
whose upper half comes from the key's hash, so that all values of a key lie together. The lower half is
the hash of the values, but for a ``growing`` multiset: its rows are never taken back, so equal ones need
not meet, and one value (``coded``) is enough to spread a key's rows.
Tables ``by_time`` are ordered by the time a row is due (part of its identity) before that: see
``state.timeline``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from tidemill.changelog.columns import Hashes, Vec, is_fixed, to_arrow
from tidemill.changelog.hashing import hash_columns, pair_code
from tidemill.state.run import DELETED, DUE, HASH, TIME, WEIGHT

VERSION = b"tidemill.version"
"""Metadata of a field whose values mean something else than under the same name and type before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """``ttl`` in milliseconds, 0 for ever (records only: a multiset expires with its record). ``growing``:
    rows of the multiset only come, and it is read by key (``StateTable.pieces``, ``TimeTable.gather``)."""

    name: str
    keys: tuple[pa.Field, ...]
    values: tuple[pa.Field, ...] = ()
    columns: tuple[pa.Field, ...] = ()
    additive: bool = False
    ttl: int = 0
    growing: bool = False
    by_time: bool = False

    def __post_init__(self) -> None:
        if self.additive and (self.columns or self.ttl):
            raise ValueError(f"state table '{self.name}': a multiset has neither payload nor TTL")
        if self.by_time and self.ttl:
            raise ValueError(f"state table '{self.name}': rows by time go when they are due, in no other way")

    @property
    def identity(self) -> tuple[pa.Field, ...]:
        due = (pa.field(DUE, pa.int64()),) if self.by_time else ()
        return (*due, *self.keys, *self.values)

    @property
    def schema(self) -> pa.Schema:
        """The columns of a run."""
        fields = [pa.field(HASH, pa.uint64()), *self._fields]
        if self.additive:
            fields.append(pa.field(WEIGHT, pa.int64()))
        else:
            fields.append(pa.field(DELETED, pa.bool_()))
        if self.ttl:
            fields.append(pa.field(TIME, pa.int64()))
        return pa.schema([f.with_nullable(True).remove_metadata() for f in fields])

    @property
    def described(self) -> dict[str, str]:
        """Per column what a run must agree on: its type and, where a field says one, its version."""
        versions = {f.name: f.metadata.get(VERSION, b"").decode() for f in self._fields if f.metadata}
        return {f.name: f"{f.type} {versions.get(f.name, '')}".rstrip() for f in self.schema}

    @property
    def _fields(self) -> tuple[pa.Field, ...]:
        return (*self.identity, *self.columns)

    @property
    def coded(self) -> tuple[pa.Field, ...]:
        """The value columns that a row's code is made of; of a growing multiset a cheap one to hash."""
        if not self.growing:
            return self.values
        return tuple(sorted(self.values, key=lambda f: not is_fixed(f.type))[:1])

    def codes(self, key_hashes: Hashes, values: Sequence[pa.Array]) -> Hashes:
        """The order of rows: the key's hash, or its upper half and the hash of the ``coded`` values."""
        if not self.values:
            return key_hashes
        return pair_code(key_hashes, hash_columns(values, len(key_hashes)))


def conform(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """``table`` with exactly the columns of ``schema``: missing ones NULL (no tombstone), others dropped."""
    if table.schema.equals(schema):
        return table
    have = set(table.schema.names)
    columns = [
        table.column(f.name).cast(f.type) if f.name in have else pa.nulls(len(table), f.type) for f in schema
    ]
    return pa.table(columns, schema=schema)


def hash_array(hashes: Hashes) -> pa.Array:
    return to_arrow(Vec(hashes), pa.uint64())
