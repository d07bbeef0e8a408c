"""Reading the hidden columns of a change batch: weights, arrival order, key hashes."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from tidemill.changelog.columns import Hashes, Ints, single, vector
from tidemill.changelog.hashing import hash_columns
from tidemill.changelog.rowkind import KIND_COLUMN, SEQUENCE_COLUMN

HASH_COLUMN = "$hash"


COPIES = "$copies"
"""Of how many equal rows that came a row tells, where it is there."""


def weights_of(table: pa.Table) -> Ints | None:
    """+1 or -1 per row, or the number of its copies; None when every row is an addition."""
    if COPIES in table.schema.names:
        copies: Ints = vector(single(table.column(COPIES))).values
        return copies
    if KIND_COLUMN not in table.schema.names:
        return None
    kinds = vector(table.column(KIND_COLUMN)).values
    odd = kinds & 1
    return 1 - 2 * odd.astype(np.int64) if odd.any() else None


def one_by_one(table: pa.Table, most: int | None = None) -> pa.Table:
    """``table`` with a row for each of its ``$copies``, of ``most`` each."""
    if COPIES not in table.schema.names:
        return table
    copies = vector(single(table.column(COPIES))).values
    times = copies if most is None else np.minimum(copies, most)
    return table.drop_columns([COPIES]).take(pa.array(np.repeat(np.arange(len(table)), times)))


def hashes_of(table: pa.Table, keys: list[pa.Array]) -> Hashes:
    """The key hashes: ``$hash`` as the exchange made it (int64 or uint64), else computed."""
    if HASH_COLUMN in table.schema.names:
        return vector(table.column(HASH_COLUMN)).values.view(np.uint64)
    return hash_columns(keys, len(table))


def by_arrival(table: pa.Table) -> pa.Table:
    """Rows in ``$seq`` order. Rows with equal ``$seq`` keep their order: a task emits the changes of one row
    in sequence, and each branch of a union only retracts its own earlier rows."""
    sequence = vector(table.column(SEQUENCE_COLUMN)).values
    if (sequence[1:] >= sequence[:-1]).all():
        return table
    return table.take(pa.array(arrival_order(table)))


def arrival_order(table: pa.Table) -> Ints:
    """The row numbers in ``$seq`` order."""
    order: Ints = np.argsort(vector(table.column(SEQUENCE_COLUMN)).values, kind="stable")
    return order


def with_types(table: pa.Table, types: Mapping[str, pa.DataType]) -> pa.Table:
    """The table with columns of the declared types; Spark's nested types differ in nullability."""
    for name, kind in types.items():
        at = table.schema.get_field_index(name)
        if at >= 0 and table.schema.field(at).type != kind:
            table = table.set_column(at, name, table.column(at).cast(kind))
    return table


def in_utc(table: pa.Table) -> pa.Table:
    """The table with instants in UTC, as in state: Spark gives instants in its session's zone."""
    return with_types(table, {field.name: _in_utc(field.type) for field in table.schema})


def _in_utc(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_timestamp(kind) and kind.tz is not None:
        return pa.timestamp(kind.unit, "UTC")
    inner = [kind.field(index) for index in range(kind.num_fields)]
    fields = [field.with_type(_in_utc(field.type)) for field in inner]
    if fields == inner:
        return kind
    if pa.types.is_struct(kind):
        return pa.struct(fields)
    if pa.types.is_list(kind):
        return pa.list_(fields[0])
    ((key, item),) = ([field.with_type(_in_utc(field.type)) for field in entry.type] for entry in inner)
    return pa.map_(key, item)


def contiguous(table: pa.Table) -> pa.Table:
    """The table with one chunk per column."""
    if all(column.num_chunks == 1 for column in table.columns):
        return table
    return pa.table([single(column) for column in table.columns], schema=table.schema)
