"""The layout of a state table: its identity, its payload, and how versions of a row combine.

There are two families:

- *Records*: of several rows with the same identity the newest wins. Deletions are tombstones.
- *Multisets* (``additive``): rows with the same identity add their ``$weight``. A row of weight zero is
  absent.

    records:    put (k=1, n=5), put (k=1, n=7)       -> (k=1, n=7)
    multiset:   put (v=1, +1), put (v=1, +1)         -> (v=1, weight 2)

The identity is the key columns, and in two-part tables also the value columns. Rows are ordered by a
hash code. The upper half of the code is from the key's hash, so all values of a key are neighbours. The
lower half is the hash of the values. A ``growing`` multiset never takes rows back, so equal rows need
not meet, and the hash of one value (``coded``) is enough to spread a key's rows.

If a query that changed has other value columns than rows that are stored (``evolves``), these are converted
(see ``state.conversion``).

Tables ``by_time`` are ordered first by the time at which a row is due, which is a part of its identity. See
``state.timeline``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property

import pyarrow as pa

from tidemill.changelog.columns import Hashes, Vec, is_fixed, to_arrow
from tidemill.changelog.hashing import hash_columns, pair_code
from tidemill.state.manifest import TableShape
from tidemill.state.packing import unpacked
from tidemill.state.run import DELETED, DUE, HASH, TIME, WEIGHT
from tidemill.types.decimals import WIDE

EXCESS = " EXCESS"
"""A sum of decimals has up to 38 digits in a column, and whole units of 10^38 in another one, whose name goes
on so."""
DIGITS = 38
VERSION = b"tidemill.version"
"""Metadata of a field whose values mean something else than under the same name and type before."""


@dataclass(frozen=True, kw_only=True)
class Layout:
    """``ttl`` is in milliseconds; 0 keeps rows forever. Only records have a TTL: a multiset expires with
    its record. ``growing``: the multiset only gets new rows, and is read by key (``StateTable.pieces``,
    ``TimeTable.gather``). ``evolves``: rows that are stored may have other value columns; they lack those
    that are ``late``, and no others. ``since``: the column that says since when a value is there.
    ``counts``: the column that says how often a record is there; ``arrival``: that which numbers a key's rows
    as they came, where contents decide between equal numbers."""

    name: str
    keys: tuple[pa.Field, ...]
    values: tuple[pa.Field, ...] = ()
    columns: tuple[pa.Field, ...] = ()
    additive: bool = False
    ttl: int = 0
    growing: bool = False
    by_time: bool = False
    evolves: bool = False
    late: tuple[str, ...] = ()
    since: str = ""
    counts: str = ""
    arrival: str = ""

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
    def says_presence(self) -> bool:
        """Whether a row only says that a value of its key is there, or since when."""
        return bool(self.values) and not self.additive and all(f.name == self.since for f in self.columns)

    @property
    def shape(self) -> TableShape:
        """As manifests have it."""
        keys, values = (tuple(f.name for f in fields) for fields in (self.keys, self.values))
        return TableShape(keys=keys, values=values, ttl=self.ttl)

    @cached_property
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

    @cached_property
    def described(self) -> dict[str, str]:
        """Per column the description that all runs must agree on: its type and, if a field declares one,
        its version."""
        versions = {f.name: f.metadata.get(VERSION, b"").decode() for f in self._fields if f.metadata}
        return {f.name: f"{f.type} {versions.get(f.name, '')}".rstrip() for f in self.schema}

    @property
    def _fields(self) -> tuple[pa.Field, ...]:
        return (*self.identity, *self.columns)

    @property
    def coded(self) -> tuple[pa.Field, ...]:
        """The value columns that form a row's code. In a growing multiset it is one column that is cheap
        to hash."""
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
    table = unpacked(table)
    have = set(table.schema.names)
    for f in schema:
        if f.name + EXCESS in have and table.schema.field(f.name).type != f.type:
            table = _rescaled(table, f)
    columns = [
        table.column(f.name).cast(f.type) if f.name in have else pa.nulls(len(table), f.type) for f in schema
    ]
    return pa.table(columns, schema=schema)


def _rescaled(table: pa.Table, total: pa.Field) -> pa.Table:
    """``table`` with a sum of decimals and its excess in the scale of the field ``total``, exactly."""
    excess = total.name + EXCESS
    sums, units = (table.column(name).to_pylist() for name in (total.name, excess))
    shift = 10 ** (total.type.scale - table.schema.field(total.name).type.scale)
    found: list[Decimal | None] = []
    beyond: list[int] = []
    for value, unit in zip(sums, units, strict=True):
        whole = 0 if value is None else int(value.scaleb(total.type.scale, WIDE))
        whole += (unit or 0) * shift * 10**DIGITS
        over, rest = divmod(abs(whole), 10**DIGITS)
        sign = -1 if whole < 0 else 1
        found.append(None if value is None else Decimal(sign * rest).scaleb(-total.type.scale, WIDE))
        beyond.append(sign * over)
    for name, column in ((total.name, pa.array(found, total.type)), (excess, pa.array(beyond, pa.int64()))):
        index = table.schema.get_field_index(name)
        table = table.set_column(index, pa.field(name, column.type), column)
    return table


def hash_array(hashes: Hashes) -> pa.Array:
    return to_arrow(Vec(hashes), pa.uint64())
