"""Encodes rows for the protocol: by column since version 6, by row before.

Columns are written from Arrow's buffers: numbers with reversed bytes, texts each with its length before it.
Only nested values and TIME become Python objects, one by one; for the old versions all values do.
"""

from __future__ import annotations

import datetime as dt
import struct
from collections.abc import Callable
from dataclasses import dataclass
from functools import singledispatch
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from thriftpy2.thrift import TType

from tidemill.functions.text.cast import cast
from tidemill.functions.text.endpoint_json import endpoint_json
from tidemill.functions.text.format_columns import plain_decimals, shortest
from tidemill.types import logical as t

COLUMNS_SINCE = 5
"""The protocol's version 6."""
_FIELD = struct.Struct("!bh")
_LIST = struct.Struct("!bi")
_STOP = b"\0"
_RESULTS_FIELD = 3


@dataclass(frozen=True, slots=True)
class _Layout:
    """``field``: the field's number in the unions of columns and of values; ``element``: the Thrift type."""

    field: int
    element: int
    encode: Callable[[pa.Array], bytes]


def results(table: pa.Table, fields: tuple[t.Field, ...], zone: dt.tzinfo, version: int) -> bytes:
    """The field ``results`` of a response to FetchResults."""
    columns = [_column(table, place) for place in range(len(fields))]
    typed = list(zip(columns, (f.type for f in fields), strict=True))
    if version >= COLUMNS_SINCE:
        body = _list_of(2, []) + _list_of(3, [_encoded(*column, zone) for column in typed])
    else:
        body = _list_of(2, _rows(typed, zone, table.num_rows))
    start = _FIELD.pack(TType.I64, 1) + struct.pack("!q", 0)
    return _FIELD.pack(TType.STRUCT, _RESULTS_FIELD) + start + body + _STOP


def _list_of(field: int, parts: list[bytes]) -> bytes:
    return _FIELD.pack(TType.LIST, field) + _LIST.pack(TType.STRUCT, len(parts)) + b"".join(parts)


def _column(table: pa.Table, place: int) -> pa.Array:
    column = table.column(place)
    return pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)


def _encoded(array: pa.Array, kind: t.LogicalType, zone: dt.tzinfo) -> bytes:
    """Encodes a TColumn: a union with one struct of ``values`` and ``nulls``."""
    layout = _LAYOUTS.get(type(kind), _TEXT)
    encodable = texts(kind, array, zone) if layout is _TEXT else array
    nulls = _nulls(encodable)
    return b"".join(
        (
            _FIELD.pack(TType.STRUCT, layout.field),
            _FIELD.pack(TType.LIST, 1),
            _LIST.pack(layout.element, len(array)),
            layout.encode(encodable),
            _FIELD.pack(TType.STRING, 2),
            struct.pack("!i", len(nulls)),
            nulls,
            _STOP,
            _STOP,
        )
    )


def _nulls(array: pa.Array) -> bytes:
    """A bitmap of NULLs, lowest bit first."""
    missing = array.is_null().to_numpy(zero_copy_only=False)
    return np.packbits(missing, bitorder="little").tobytes() or b"\0"


def _numbers(form: str) -> Callable[[pa.Array], bytes]:
    def encode(array: pa.Array) -> bytes:
        filled = array.fill_null(False if form == "?" else 0)
        return bytes(filled.to_numpy(zero_copy_only=False).astype(form).tobytes())

    return encode


def _floats(array: pa.Array) -> bytes:
    """FLOAT as DOUBLE by its shortest text: 1.1 stays 1.1, and does not become 1.10000002384."""
    return _DOUBLES(array.cast(pa.string()).cast(pa.float64()))


def _binaries(array: pa.Array) -> bytes:
    """Concatenates the values, each with its length in four bytes before it."""
    if not len(array):
        return b""
    filled = array.cast(pa.large_binary()).fill_null(b"")
    lengths = pc.binary_length(filled).to_numpy(zero_copy_only=False).astype(">i4")
    heads = pa.Array.from_buffers(pa.binary(4), len(array), [None, pa.py_buffer(lengths.tobytes())])
    joined = pc.binary_join_element_wise(
        heads.cast(pa.large_binary()), filled, pa.scalar(b"", pa.large_binary())
    )
    _, offsets, data = joined.buffers()
    first, last = np.frombuffer(offsets, np.int64)[[joined.offset, joined.offset + len(joined)]]
    return bytes(memoryview(data)[first:last])


_DOUBLES = _numbers(">f8")
_TEXT = _Layout(7, TType.STRING, _binaries)
_BINARY = _Layout(8, TType.STRING, _binaries)
_LAYOUTS: dict[type[t.LogicalType], _Layout] = {
    t.BooleanType: _Layout(1, TType.BOOL, _numbers("?")),
    t.TinyIntType: _Layout(2, TType.BYTE, _numbers("i1")),
    t.SmallIntType: _Layout(3, TType.I16, _numbers(">i2")),
    t.IntType: _Layout(4, TType.I32, _numbers(">i4")),
    t.BigIntType: _Layout(5, TType.I64, _numbers(">i8")),
    t.FloatType: _Layout(6, TType.DOUBLE, _floats),
    t.DoubleType: _Layout(6, TType.DOUBLE, _DOUBLES),
    t.BinaryType: _BINARY,
    t.VarBinaryType: _BINARY,
}


@singledispatch
def texts(kind: t.LogicalType, array: pa.Array, zone: dt.tzinfo) -> pa.Array:
    """Values as the protocol's texts. By default, those of CAST to STRING."""
    return _one_by_one(array, cast(kind, zone))


@texts.register(t.CharType)
@texts.register(t.VarCharType)
@texts.register(t.DateType)
@texts.register(t.NullType)
def _(kind: t.LogicalType, array: pa.Array, zone: dt.tzinfo) -> pa.Array:
    return array.cast(pa.string())


@texts.register
def _(kind: t.DecimalType, array: pa.Array, zone: dt.tzinfo) -> pa.Array:
    return plain_decimals(array, kind.scale)


@texts.register
def _(kind: t.TimestampType, array: pa.Array, zone: dt.tzinfo) -> pa.Array:
    return shortest(array.cast(pa.string()))


@texts.register
def _(kind: t.LocalZonedTimestampType, array: pa.Array, zone: dt.tzinfo) -> pa.Array:
    local = pc.local_timestamp(array.cast(pa.timestamp("us", tz=_zone_name(zone))))
    return texts(t.TimestampType(), local, zone)


@texts.register(t.ArrayType)
@texts.register(t.MapType)
@texts.register(t.MultisetType)
@texts.register(t.RowType)
def _(kind: t.LogicalType, array: pa.Array, zone: dt.tzinfo) -> pa.Array:
    return _one_by_one(array, endpoint_json(kind))


def _one_by_one(array: pa.Array, text: Callable[[Any], str]) -> pa.Array:
    return pa.array([None if v is None else text(v) for v in array.to_pylist()], pa.string())


def _zone_name(zone: dt.tzinfo) -> str:
    """The zone's name for Arrow: a region, or an offset such as ``+02:00``."""
    named = getattr(zone, "key", None)
    if named:
        return str(named)
    minutes = int((zone.utcoffset(None) or dt.timedelta()).total_seconds()) // 60
    return f"{'-' if minutes < 0 else '+'}{abs(minutes) // 60:02d}:{abs(minutes) % 60:02d}"


def _rows(typed: list[tuple[pa.Array, t.LogicalType]], zone: dt.tzinfo, count: int) -> list[bytes]:
    """Encodes TRows: each is a list of unions, whose struct is empty for NULL."""
    columns = [_cells(array, kind, zone) for array, kind in typed]
    head = _FIELD.pack(TType.LIST, 1) + _LIST.pack(TType.STRUCT, len(columns))
    return [head + b"".join(column[row] for column in columns) + _STOP for row in range(count)]


def _cells(array: pa.Array, kind: t.LogicalType, zone: dt.tzinfo) -> list[bytes]:
    """Encodes TColumnValues. A BINARY becomes a text, with U+FFFD for undecodable bytes: the union has no
    field for bytes."""
    layout = _LAYOUTS.get(type(kind), _TEXT)
    encodable = texts(kind, array, zone) if layout is _TEXT else array
    outer = _FIELD.pack(TType.STRUCT, min(layout.field, _TEXT.field))
    inner = _FIELD.pack(layout.element, 1)
    present = encodable.is_valid().to_pylist()
    return [
        outer + (inner + data if there else b"") + _STOP + _STOP
        for data, there in zip(_pieces(encodable, layout), present, strict=True)
    ]


def _pieces(array: pa.Array, layout: _Layout) -> list[bytes]:
    """The output of ``encode``, divided by value."""
    if layout.element == TType.STRING:
        decoded = (v.decode("utf-8", "replace") for v in array.cast(pa.binary()).fill_null(b"").to_pylist())
        return [struct.pack("!i", len(value)) + value for value in map(str.encode, decoded)]
    data = layout.encode(array)
    width = len(data) // max(len(array), 1)
    return [data[row * width : (row + 1) * width] for row in range(len(array))]


def lines(log_lines: list[str], version: int) -> bytes:
    """Encodes log lines: one column of texts."""
    table = pa.table({"Log": pa.array(log_lines, pa.string())})
    return results(table, (t.Field("Log", t.STRING),), dt.UTC, version)
