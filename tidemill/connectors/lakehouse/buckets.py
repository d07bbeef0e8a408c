"""Files bucketed by key: which rows belong together, and what a file's name says of it.

A key's bucket is its hash modulo the number of buckets. The name of a data file says its bucket and the
number, so that the table needs no other record: ``b00003of00016-*.parquet``. A file with another name, as
another writer makes it, or with another number, may hold rows of every bucket.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tidemill.catalog.table import CatalogTable
from tidemill.changelog.hashing import hash_columns
from tidemill.connectors.api import ConnectorOption
from tidemill.errors import NotSupportedError
from tidemill.types import logical as t

BUCKETS = ConnectorOption(
    key="sink.buckets",
    kind="int",
    default="16",
    least=1,
    doc="With a primary key: number of buckets of a table, or of each of its partitions.",
)
_NAME = re.compile(r"b(\d{5})of(\d{5})-")
_UNHASHED = (t.FloatType, t.DoubleType, t.ArrayType, t.MapType, t.MultisetType, t.RowType)


def bucket_keys(table: CatalogTable) -> tuple[str, ...]:
    """The columns of the primary key that say the bucket within a partition. NotSupportedError where a key
    could be in several partitions, or where all of it is the partition."""
    outside = [name for name in table.partitioned_by if name not in table.primary_key]
    if outside:
        raise NotSupportedError(
            f"A PRIMARY KEY without the partition column '{outside[0]}': a change of the column would move"
            " a row to another partition",
            hint="Add the column to the key.",
        )
    keys = tuple(name for name in table.primary_key if name not in table.partitioned_by)
    if not keys:
        raise NotSupportedError("A PRIMARY KEY of partition columns alone")
    for column in table.columns:
        if column.name in keys and isinstance(column.type, _UNHASHED):
            raise NotSupportedError(f"A PRIMARY KEY with column '{column.name}' of type {column.type}")
    return keys


def bucket_prefix(bucket: int, count: int) -> str:
    return f"b{bucket:05d}of{count:05d}"


def bucket_of(path: str, count: int) -> int | None:
    """Of a file, None where its name does not say it, or says it of another number of buckets."""
    found = _NAME.match(path.rpartition("/")[2])
    return int(found[1]) if found and int(found[2]) == count else None


def buckets_of(table: pa.Table, keys: Sequence[str], count: int) -> npt.NDArray[np.int64]:
    """Of each row. The hashes are the same in every version and process."""
    hashes = hash_columns([table.column(name) for name in keys], table.num_rows)
    return (hashes % np.uint64(count)).astype(np.int64)
