"""Rows in a fixed number of buckets by their values: what has no key to be sent by is sent by them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidemill.changelog.columns import Ints
from tidemill.changelog.hashing import hash_columns

BUCKET = pa.int64()
"""The type of a bucket's number."""


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
    """Every row in all of ``count`` buckets, told by ``column``. Each of the ``sets`` of columns has its
    values in one of them and NULL in the others; ``flags`` (BOOLEAN) are false but in the bucket of the first
    set."""

    column: str
    sets: tuple[tuple[str, ...], ...]
    flags: tuple[str, ...]
    count: int

    @property
    def of(self) -> tuple[str, ...]:
        return tuple(name for names in self.sets for name in names)

    def added(self, table: pa.Table) -> pa.Table:
        return pa.concat_tables(self._copies(table))

    def _copies(self, table: pa.Table) -> Iterator[pa.Table]:
        own = [_buckets(table, names, self.count) for names in self.sets]
        for bucket in range(self.count):
            here = [pa.array(each == bucket) for each in own]
            shown = {name: table.column(name) for name in table.column_names}
            for names, mine in zip(self.sets, here, strict=True):
                for name in names:
                    shown[name] = pc.if_else(mine, shown[name], pa.scalar(None, shown[name].type))
            for name in self.flags:
                shown[name] = pc.and_(shown[name], here[0])
            shown[self.column] = pa.array(np.full(len(table), bucket, np.int64))
            yield pa.table(shown)


def _buckets(table: pa.Table, of: tuple[str, ...], count: int) -> Ints:
    hashes = hash_columns([table.column(name) for name in of], len(table))
    buckets: Ints = (hashes % np.uint64(count)).view(np.int64)
    return buckets
