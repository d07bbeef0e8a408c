"""Spreads rows over a fixed number of buckets by their values, if they have no key to partition by."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidemill.changelog.columns import Ints, Mask, vector
from tidemill.changelog.hashing import hash_columns
from tidemill.operators.api import HASH_COLUMN

BUCKET = pa.int64()
"""The type of a bucket's number."""
TELLS = "$tells"
"""True where every bucket must know of the row (BOOLEAN)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Buckets:
    """Adds ``column`` with one of ``count`` buckets by the columns ``of``; equal values have the same
    bucket."""

    column: str
    of: tuple[str, ...]
    count: int

    def added(self, table: pa.Table) -> pa.Table:
        return table.append_column(self.column, pa.array(_buckets(table, self.of, self.count)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Everywhere:
    """Copies rows of ``hot`` keys to all of ``count`` buckets; rows of other keys go to the first bucket.

    ``column`` gets the bucket. ``keys``: it and the other partition columns. ``hot``: the hashes of hot keys
    with the first bucket. For hot keys each of the ``sets`` of columns has its values in one bucket, and NULL
    in the others. Columns ``with_first`` go with the first set; ``flags`` (BOOLEAN) are false elsewhere."""

    column: str
    keys: tuple[str, ...]
    sets: tuple[tuple[str, ...], ...]
    with_first: tuple[str, ...]
    flags: tuple[str, ...]
    count: int
    hot: tuple[int, ...] = ()

    @property
    def of(self) -> tuple[str, ...]:
        return tuple(name for names in self.sets for name in names)

    def added(self, table: pa.Table) -> pa.Table:
        """``table`` with all rows in the first bucket."""
        return table.append_column(self.column, pa.array(np.zeros(len(table), np.int64)))

    def parted(self, table: pa.Table) -> tuple[pa.Table, pa.Table]:
        """The rows of other keys, and the rows of hot keys (with ``$hash``)."""
        if not self.hot:
            return table, table.slice(0, 0)
        hot = np.isin(vector(table.column(HASH_COLUMN)).values.view(np.uint64), np.array(self.hot, np.uint64))
        return table.filter(pa.array(~hot)), table.filter(pa.array(hot))

    def copied(self, table: pa.Table) -> pa.Table:
        """Copies of the rows of hot keys: for each set in the bucket of its values, and in every bucket
        without values. If there is a column ``TELLS``, only marked rows are copied to every bucket."""
        tells = np.ones(len(table), np.bool_)
        if TELLS in table.column_names:
            tells = vector(table.column(TELLS)).values
            table = table.drop_columns([TELLS])
        buckets = [_buckets(table, names, self.count) for names in self.sets]
        # The first bucket has each row once, even if several sets belong to it.
        here = [own == 0 for own in buckets]
        first = {
            name: _where(table, name, mine)
            for names, mine in zip(self.sets, here, strict=True)
            for name in names
        }
        first |= {name: _where(table, name, here[0]) for name in self.with_first}
        first |= {name: pc.and_(table.column(name), pa.array(here[0])) for name in self.flags}
        chosen = np.flatnonzero(np.logical_or.reduce([tells, *here]))
        copies = [self._in(table, first, np.zeros(len(table), np.int64)).take(pa.array(chosen))]
        others = (*self.with_first, *self.flags)
        for names, own in zip(self.sets, buckets, strict=True):
            rows = table.take(pa.array(elsewhere := np.flatnonzero(own)))
            values = {name: rows.column(name) for name in (*names, *others)}
            copies.append(self._in(rows, self._nothing(rows) | values, own[elsewhere]))
            others = ()
        telling = np.flatnonzero(tells)
        rows = table.take(pa.array(np.tile(telling, self.count - 1)))
        bucket_numbers = np.repeat(np.arange(1, self.count), len(telling))
        copies.append(self._in(rows, self._nothing(rows), bucket_numbers))
        whole = pa.concat_tables(copies)
        # Rows of a bucket are contiguous, so equal bounds are recognized.
        return whole.take(pa.array(np.argsort(vector(whole.column(self.column)).values, kind="stable")))

    def _nothing(self, table: pa.Table) -> dict[str, pa.Array | pa.ChunkedArray]:
        """The columns of rows that count nothing."""
        size, types = len(table), table.schema
        nulls = {name: pa.nulls(size, types.field(name).type) for name in (*self.of, *self.with_first)}
        return nulls | {name: pa.array(np.zeros(size, np.bool_)) for name in self.flags}

    def _in(
        self, table: pa.Table, columns: Mapping[str, pa.Array | pa.ChunkedArray], buckets: Ints
    ) -> pa.Table:
        """``table`` with replaced ``columns`` and ``buckets``."""
        output = {name: columns.get(name, table.column(name)) for name in table.column_names}
        output[self.column] = pa.array(buckets)
        output[HASH_COLUMN] = pa.array(hash_columns([output[name] for name in self.keys], len(table)))
        return pa.table(output, schema=table.schema)


def _where(table: pa.Table, name: str, there: Mask) -> pa.ChunkedArray:
    column = table.column(name)
    return pc.if_else(pa.array(there), column, pa.scalar(None, column.type))


def _buckets(table: pa.Table, of: tuple[str, ...], count: int) -> Ints:
    hashes = hash_columns([table.column(name) for name in of], len(table))
    buckets: Ints = (hashes % np.uint64(count)).view(np.int64)
    return buckets
