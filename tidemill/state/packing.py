"""Columns of run files in fewer bytes, which are still read where they lie.

A run of many rows is packed when it is written, if that makes it much smaller:

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


def packed(table: pa.Table, plain: Sequence[str], gain: float) -> pa.Table:
    """``table``, of one chunk, with its columns packed but for those named ``plain``. If it would not become
    smaller by the factor ``gain``, about, it stays as it is."""
    columns = [single(chunked) for chunked in table.columns]
    kinds = [
        c.type if f.name in plain else _packed_type(c) for f, c in zip(table.schema, columns, strict=True)
    ]
    bits = sum(_bits(kind, column) for kind, column in zip(kinds, columns, strict=True))
    if bits * gain >= table.nbytes * 8:
        return table
    stored = [_as(kind, column) for kind, column in zip(kinds, columns, strict=True)]
    fields = [_described(field, column.type) for field, column in zip(table.schema, stored, strict=True)]
    return pa.table(stored, schema=pa.schema(fields))


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


def _packed_type(column: pa.Array) -> pa.DataType:
    """A dictionary's codes have one of ``_NARROW``."""
    kind = column.type
    if pa.types.is_signed_integer(kind):
        return _narrow_type(column)
    if (pa.types.is_string(kind) or pa.types.is_binary(kind)) and _repeats(column):
        return pa.dictionary(pa.int16(), kind)
    return kind


def _narrow_type(column: pa.Array) -> pa.DataType:
    bounds = pc.min_max(column)
    least, most = bounds["min"].as_py() or 0, bounds["max"].as_py() or 0
    if least >= 0 and most <= 1:
        return pa.bool_()
    for kind in _NARROW:
        if kind.bit_width >= column.type.bit_width:
            break
        limit = 1 << (kind.bit_width - 1)
        if -limit <= least and most < limit:
            return kind
    return column.type


def _bits(kind: pa.DataType, column: pa.Array) -> int:
    """About what ``column`` takes as ``kind``; of a dictionary the codes."""
    if kind == column.type:
        return int(column.nbytes) * 8
    width: int = kind.index_type.bit_width if pa.types.is_dictionary(kind) else kind.bit_width
    return len(column) * width


def _as(kind: pa.DataType, column: pa.Array) -> pa.Array:
    if kind == column.type:
        return column
    return _coded(column) if pa.types.is_dictionary(kind) else column.cast(kind, safe=False)


def _described(field: pa.Field, stored: pa.DataType) -> pa.Field:
    is_narrow = pa.types.is_integer(field.type) and stored != field.type
    return pa.field(field.name, stored, metadata={_KIND: str(field.type)} if is_narrow else None)


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
