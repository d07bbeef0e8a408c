"""Rows in a fixed number of buckets by their values: what has no key to be sent by is sent by them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

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
        hashes = hash_columns([table.column(name) for name in self.of], len(table))
        return table.append_column(self.column, pa.array((hashes % np.uint64(self.count)).view(np.int64)))
