"""Rows in a fixed number of buckets by their values: what has no key to be sent by is sent by them."""

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
    """``column`` gets the bucket, of ``count``, of the values of the columns ``of``: equals are in one."""

    column: str
    of: tuple[str, ...]
    count: int

    def added(self, table: pa.Table) -> pa.Table:
        return table.append_column(self.column, pa.array(_buckets(table, self.of, self.count)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Everywhere:
    """Rows of ``hot`` keys in all of ``count`` buckets, those of others in the first.

    ``column`` gets the bucket; ``keys`` are that and the others that rows are sent by. ``hot``: hashes, those
    with the first bucket. Of hot keys each of the ``sets`` of columns has its values in one bucket, NULL in
    the others, and columns ``with_first`` go with the first set; ``flags`` (BOOLEAN) are false elsewhere."""

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
        """All in the first bucket."""
        return table.append_column(self.column, pa.array(np.zeros(len(table), np.int64)))

    def parted(self, table: pa.Table) -> tuple[pa.Table, pa.Table]:
        """The rows of other keys, and those of hot ones (with ``$hash``)."""
        if not self.hot:
            return table, table.slice(0, 0)
        hot = np.isin(vector(table.column(HASH_COLUMN)).values.view(np.uint64), np.array(self.hot, np.uint64))
        return table.filter(pa.array(~hot)), table.filter(pa.array(hot))

    def copied(self, table: pa.Table) -> pa.Table:
        """The rows of hot keys, for each of the sets in the bucket of its values, and in every bucket without
        values: of rows with a column ``TELLS`` those that it says, as the others tell no more."""
        tells = np.ones(len(table), np.bool_)
        if TELLS in table.column_names:
            tells = vector(table.column(TELLS)).values
            table = table.drop_columns([TELLS])
        buckets = [_buckets(table, names, self.count) for names in self.sets]
        # In the first bucket a row is one, whatever of it belongs there.
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
        places = np.repeat(np.arange(1, self.count), len(telling))
        copies.append(self._in(rows, self._nothing(rows), places))
        whole = pa.concat_tables(copies)
        # What is of one bucket stands together, so that equal bounds are seen as such.
        return whole.take(pa.array(np.argsort(vector(whole.column(self.column)).values, kind="stable")))

    def _nothing(self, table: pa.Table) -> dict[str, pa.Array | pa.ChunkedArray]:
        """What counts nothing."""
        size, types = len(table), table.schema
        nulls = {name: pa.nulls(size, types.field(name).type) for name in (*self.of, *self.with_first)}
        return nulls | {name: pa.array(np.zeros(size, np.bool_)) for name in self.flags}

    def _in(
        self, table: pa.Table, columns: Mapping[str, pa.Array | pa.ChunkedArray], buckets: Ints
    ) -> pa.Table:
        """``table`` with other ``columns``, in ``buckets``."""
        shown = {name: columns.get(name, table.column(name)) for name in table.column_names}
        shown[self.column] = pa.array(buckets)
        shown[HASH_COLUMN] = pa.array(hash_columns([shown[name] for name in self.keys], len(table)))
        return pa.table(shown, schema=table.schema)


def _where(table: pa.Table, name: str, there: Mask) -> pa.ChunkedArray:
    column = table.column(name)
    return pc.if_else(pa.array(there), column, pa.scalar(None, column.type))


def _buckets(table: pa.Table, of: tuple[str, ...], count: int) -> Ints:
    hashes = hash_columns([table.column(name) for name in of], len(table))
    buckets: Ints = (hashes % np.uint64(count)).view(np.int64)
    return buckets
