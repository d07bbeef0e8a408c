"""What a declared type asks of values from outside, checked on their carriers (``types.physical``).

A carrier can hold more than its type: NULL where the type says NOT NULL, a text that is longer than
VARCHAR(n), microseconds in a TIMESTAMP(3). The functions here look at nested values, too. Cost: a scan of the
columns whose types limit something.
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc

from tidemill.types import logical as t
from tidemill.types.entries import with_values

_MICROS = 6


def misfit(array: pa.Array, kind: t.LogicalType, *, lengths: bool) -> str:
    """What does not fit the type: 'NULL', or 'a text of length 4'; '' if all values fit. ``lengths``: whether
    to look for texts and bytes that are too long, which Flink lets pass."""
    if not kind.nullable and array.null_count:
        return "NULL"
    if lengths and isinstance(kind, t.LengthType):
        return _too_long(array, kind)
    found = (misfit(values, part, lengths=lengths) for values, part in _parts(array, kind))
    return next(filter(None, found), "")


def _too_long(array: pa.Array, kind: t.LengthType) -> str:
    if kind.length == t.MAX_LENGTH:
        return ""
    name, size = (
        ("text", pc.utf8_length) if isinstance(kind, t.CHARACTER_TYPES) else ("value", pc.binary_length)
    )
    longest = pc.max(size(array)).as_py() or 0
    return f"a {name} of length {longest}" if longest > kind.length else ""


def _parts(array: pa.Array, kind: t.LogicalType) -> Iterator[tuple[pa.Array, t.LogicalType]]:
    """The values inside of those that are not NULL."""
    if isinstance(kind, t.RowType):
        there = array.filter(array.is_valid())
        yield from ((there.field(i), f.type) for i, f in enumerate(kind.fields))
    elif isinstance(kind, t.ArrayType):
        yield array.flatten(), kind.element
    elif isinstance(kind, t.MapType | t.MultisetType):
        entries = array.flatten()
        yield entries.field(0), kind.key if isinstance(kind, t.MapType) else kind.element
        if isinstance(kind, t.MapType):
            yield entries.field(1), kind.value


def at_precision(array: pa.Array, kind: t.LogicalType) -> pa.Array:
    """``array`` without digits of seconds beyond the precision of TIMESTAMP and TIMESTAMP_LTZ, as Flink keeps
    it; in rows and arrays, too."""
    if isinstance(kind, t.TimestampType | t.LocalZonedTimestampType) and kind.precision < _MICROS:
        return pc.floor_temporal(array, 10 ** (_MICROS - kind.precision), "microsecond")
    if isinstance(kind, t.RowType):
        parts = zip(array.flatten(), kind.fields, strict=True)
        children = [at_precision(values, f.type) for values, f in parts]
        return pa.StructArray.from_arrays(children, fields=list(array.type), mask=array.is_null())
    if isinstance(kind, t.ArrayType):
        return with_values(array, at_precision(array.flatten(), kind.element))
    return array
