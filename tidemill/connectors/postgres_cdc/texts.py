"""Parses PostgreSQL's texts of values into columns of Flink's types, one column at a time.

The server writes the texts with ``server.SETTINGS``. The table ``_READS`` says which server types a declared
type can read. If a declared type cannot hold a value, the error shows the value.
"""

from __future__ import annotations

import binascii
from functools import singledispatch
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidemill.connectors.formats.text_scalars import CSV_RULES, parse
from tidemill.types import logical as t
from tidemill.types.physical import arrow_type

_BOOL, _BYTEA, _DATE, _TIME, _TIMESTAMP, _TIMESTAMPTZ, _NUMERIC = 16, 17, 1082, 1083, 1114, 1184, 1700
_INTEGERS, _FLOATS = (21, 23, 20), (700, 701)
_READS: dict[type[t.LogicalType], tuple[int, ...]] = {
    t.BooleanType: (_BOOL,),
    **dict.fromkeys((t.TinyIntType, t.SmallIntType, t.IntType, t.BigIntType), _INTEGERS),
    **dict.fromkeys((t.FloatType, t.DoubleType), (*_FLOATS, *_INTEGERS)),
    t.DecimalType: (_NUMERIC, *_INTEGERS),
    t.DateType: (_DATE,),
    t.TimeType: (_TIME,),
    t.TimestampType: (_TIMESTAMP,),
    t.LocalZonedTimestampType: (_TIMESTAMPTZ,),
    **dict.fromkeys((t.BinaryType, t.VarBinaryType), (_BYTEA,)),
}
"""By declared type, the server's types (as ``pg_type.oid``) that it can read. Text types read any type."""
_WIDE = pa.decimal256(76, 38)
_MILLIS = 1000


def can_declare(kind: t.LogicalType) -> bool:
    """Whether a column may be declared as ``kind`` at all."""
    return isinstance(kind, t.CHARACTER_TYPES) or type(kind) in _READS


def can_read(kind: t.LogicalType, oid: int) -> bool:
    """Whether a column of the server's type ``oid`` may be declared as ``kind``."""
    return isinstance(kind, t.CHARACTER_TYPES) or oid in _READS.get(type(kind), ())


def typed(texts: pa.Array, kind: t.LogicalType) -> pa.Array:
    """Parses a column of strings as ``kind``. ValueError shows the first text that does not fit. Example: as
    BOOLEAN, ``["t", "f", None]`` gives ``[True, False, None]``."""
    try:
        return _column(kind, texts)
    except (pa.ArrowException, binascii.Error):
        return pa.array([_one(kind, text) for text in texts], arrow_type(kind))


def _one(kind: t.LogicalType, text: pa.Scalar) -> Any:
    """Parses one value. As in Flink, a DECIMAL with too many digits is rounded, or NULL if it overflows."""
    if not text.is_valid:
        return None
    try:
        if isinstance(kind, t.DecimalType):
            return parse(kind, text.as_py(), CSV_RULES)
        return _column(kind, pa.array([text.as_py()], pa.string()))[0].as_py()
    except (pa.ArrowException, ValueError, ArithmeticError):
        raise ValueError(f"'{text.as_py()}' is no {kind.with_nullable(True)}") from None


@singledispatch
def _column(kind: t.LogicalType, texts: pa.Array) -> pa.Array:
    return texts.cast(arrow_type(kind))


@_column.register
def _(kind: t.BooleanType, texts: pa.Array) -> pa.Array:
    return pc.equal(texts, "t")


@_column.register
def _(kind: t.DecimalType, texts: pa.Array) -> pa.Array:
    try:
        return texts.cast(arrow_type(kind))
    except pa.ArrowException:
        rounded = pc.round(texts.cast(_WIDE), kind.scale, "half_towards_infinity")
        return rounded.cast(arrow_type(kind))


@_column.register
def _(kind: t.TimeType, texts: pa.Array) -> pa.Array:
    """Milliseconds of the day."""
    moments = pc.binary_join_element_wise("1970-01-01", texts, " ").cast(pa.timestamp("us"))
    millis = pc.divide(moments.cast(pa.int64()), _MILLIS)
    return _floored(millis, 10 ** max(0, 3 - kind.precision)).cast(pa.int32())


@_column.register
def _(kind: t.TimestampType, texts: pa.Array) -> pa.Array:
    return _moments(texts, kind.precision)


@_column.register
def _(kind: t.LocalZonedTimestampType, texts: pa.Array) -> pa.Array:
    """The session's zone is UTC: all texts end with +00."""
    return _moments(pc.utf8_slice_codeunits(texts, 0, -3), kind.precision).cast(arrow_type(kind))


def _moments(texts: pa.Array, precision: int) -> pa.Array:
    micros = texts.cast(pa.timestamp("us")).cast(pa.int64())
    return _floored(micros, 10 ** max(0, 6 - precision)).cast(pa.timestamp("us"))


def _floored(numbers: pa.Array, unit: int) -> pa.Array:
    if unit == 1:
        return numbers
    values = numbers.fill_null(0).to_numpy(zero_copy_only=False)
    mask = numbers.is_null().to_numpy(zero_copy_only=False)
    return pa.array(values - values % unit, numbers.type, mask=mask)


@_column.register(t.BinaryType)
@_column.register(t.VarBinaryType)
def _(kind: t.LogicalType, texts: pa.Array) -> pa.Array:
    r"""Each text is ``\x`` and two digits per byte. All digits are decoded at once; each value's end offset
    in bytes is half its end offset in digits."""
    digits = pc.utf8_slice_codeunits(texts, 2)
    ends = np.frombuffer(digits.buffers()[1], np.int32)[digits.offset : digits.offset + len(digits) + 1]
    data = binascii.unhexlify(memoryview(digits.buffers()[2] or b"")[ends[0] : ends[-1]])
    offsets = ((ends - ends[0]) // 2).astype(np.int32)
    valid = texts.is_valid() if texts.null_count else None
    mask = None if valid is None else valid.buffers()[1]
    return pa.Array.from_buffers(
        arrow_type(kind), len(texts), [mask, pa.py_buffer(offsets), pa.py_buffer(data)]
    )
