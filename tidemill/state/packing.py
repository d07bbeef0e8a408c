"""Columns of run files in fewer bytes, which are still read where they lie.

A run of many rows is packed when it is written:

- integers have the narrowest type that holds all values of the run, one bit for 0 and 1;
- text that repeats is a dictionary, with a code of one, two or four bytes in each row.

    counts  1, 1, 3 (8 bytes each)           ->  1, 1, 3 (1 byte each), a field that says "int64"
    days    2026-11-01, 2026-11-01, ...      ->  0, 0, ... and the texts, once each

Lookups compare and take packed values, and widen only the rows that they take, so the cost of an epoch
still follows the keys that it touches. Merges widen whole runs. The columns that order rows ($hash, $due) and
other columns of a run itself are never packed, but for weights.

The file alone says what is packed, by field metadata and dictionary types: a file without either is plain.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidemill.changelog.columns import Ints, single
from tidemill.state.arrow_names import arrow_named

_KIND = b"tidemill.unpacked"
"""Metadata of a field of narrower integers: the type that its values have."""
_NARROW = (pa.int8(), pa.int16(), pa.int32())
_BLOCKS, _BLOCK = 32, 32
"""A sample of rows: blocks of neighbours, as all values of a key are neighbours."""
_REPEATS = 4
"""A dictionary pays if each of its texts is there so many times."""


def packed(table: pa.Table, plain: Sequence[str]) -> pa.Table:
    """``table``, of one chunk, with each column packed if that makes it smaller, but for those named
    ``plain``."""
    fields: list[pa.Field] = []
    columns: list[pa.Array] = []
    for field, chunked in zip(table.schema, table.columns, strict=True):
        column = single(chunked)
        if field.name not in plain:
            column = _packed(column)
        is_narrow = pa.types.is_integer(field.type) and column.type != field.type
        fields.append(
            pa.field(field.name, column.type, metadata={_KIND: str(field.type)} if is_narrow else None)
        )
        columns.append(column)
    return pa.table(columns, schema=pa.schema(fields))


def unpacked_type(field: pa.Field) -> pa.DataType:
    """The type of the column before it was packed."""
    if pa.types.is_dictionary(field.type):
        return field.type.value_type
    kind = (field.metadata or {}).get(_KIND)
    return field.type if kind is None else arrow_named(kind.decode())


def unpacked(table: pa.Table) -> pa.Table:
    """The same rows without packed columns."""
    fields = [pa.field(f.name, unpacked_type(f)) for f in table.schema]
    columns = [c.cast(f.type) for f, c in zip(fields, table.columns, strict=True)]
    return pa.table(columns, schema=pa.schema(fields))


def unpacked_bytes(table: pa.Table) -> int:
    """About the bytes that ``unpacked`` has. Cost: a pass over the codes of dictionaries."""
    size = 0
    for field, column in zip(table.schema, table.columns, strict=True):
        kind = unpacked_type(field)
        if kind == field.type:
            size += column.nbytes
        elif pa.types.is_integer(kind):
            size += len(column) * kind.bit_width // 8
        else:
            size += sum(_text_bytes(chunk) for chunk in column.chunks)
    return size


def taken(column: pa.Array, rows: Ints, kind: pa.DataType) -> pa.Array:
    """The ``rows`` of a column that may be packed, as ``kind``."""
    values = column.take(pa.array(rows))
    return values if values.type == kind else values.cast(kind)


def _packed(column: pa.Array) -> pa.Array:
    kind = column.type
    if pa.types.is_signed_integer(kind):
        return _narrowed(column)
    if (pa.types.is_string(kind) or pa.types.is_binary(kind)) and _repeats(column):
        return _coded(column)
    return column


def _narrowed(column: pa.Array) -> pa.Array:
    bounds = pc.min_max(column)
    least, most = bounds["min"].as_py() or 0, bounds["max"].as_py() or 0
    if least >= 0 and most <= 1:
        return column.cast(pa.bool_(), safe=False)
    for kind in _NARROW:
        if kind.bit_width >= column.type.bit_width:
            break
        limit = 1 << (kind.bit_width - 1)
        if -limit <= least and most < limit:
            return column.cast(kind, safe=False)
    return column


def _repeats(column: pa.Array) -> bool:
    """Whether a sample has most texts twice: a look at little, as most texts that are keys are there once."""
    size = _BLOCKS * _BLOCK
    if len(column) <= size:
        return True
    starts = np.linspace(0, len(column) - _BLOCK, _BLOCKS).astype(np.int64)
    places = (starts[:, None] + np.arange(_BLOCK)).ravel()
    return bool(pc.count_distinct(column.take(pa.array(places)), mode="all").as_py() * 2 <= size)


def _coded(column: pa.Array) -> pa.Array:
    coded = column.dictionary_encode()
    texts = len(coded.dictionary)
    if texts * _REPEATS > len(column):
        return column
    codes = coded.indices
    for kind in _NARROW[:2]:
        if texts <= 1 << (kind.bit_width - 1):
            codes = codes.cast(kind, safe=False)
            break
    return pa.DictionaryArray.from_arrays(codes, coded.dictionary)


def _text_bytes(column: pa.DictionaryArray) -> int:
    lengths = pc.binary_length(column.dictionary).take(column.indices)
    return (pc.sum(lengths).as_py() or 0) + 4 * len(column)
