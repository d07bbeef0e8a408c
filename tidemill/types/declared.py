"""What a declared type asks of values from outside, checked on their carriers (``types.physical``).

A carrier can hold more than its type: NULL where the type says NOT NULL, a text that is longer than
VARCHAR(n), microseconds in a TIMESTAMP(3). The functions here look at nested values, too. Cost: a scan of the
columns whose types limit something.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

import pyarrow as pa
import pyarrow.compute as pc

from tidemill.types import logical as t
from tidemill.types.entries import with_parts
from tidemill.types.values import parts

_MICROS = 6


def misfit(array: pa.Array, kind: t.LogicalType, *, lengths: bool) -> str:
    """What does not fit the type: 'NULL', or 'a text of length 4'; '' if all values fit. ``lengths``: whether
    to look for texts and bytes that are too long, which Flink lets pass."""
    if not _is_limited(kind, lengths):
        return ""
    if not kind.nullable and array.null_count:
        return "NULL"
    if lengths and isinstance(kind, t.LengthType):
        return _too_long(array, kind)
    found = (misfit(values, part, lengths=lengths) for values, part in _inside(array, kind))
    return next(filter(None, found), "")


def _too_long(array: pa.Array, kind: t.LengthType) -> str:
    name, size = (
        ("text", pc.utf8_length) if isinstance(kind, t.CHARACTER_TYPES) else ("value", pc.binary_length)
    )
    longest = pc.max(size(array)).as_py() or 0
    return f"a {name} of length {longest}" if longest > kind.length else ""


def _inside(array: pa.Array, kind: t.LogicalType) -> Iterator[tuple[pa.Array, t.LogicalType]]:
    """The values in those that are not NULL."""
    if isinstance(kind, t.ArrayType):
        yield array.flatten(), kind.element
    elif types := parts(kind):
        rows = array.filter(array.is_valid()) if isinstance(kind, t.RowType) else array.flatten()
        yield from ((rows.field(i), part) for i, part in enumerate(types))


def at_precision(array: pa.Array, kind: t.LogicalType) -> pa.Array:
    """``array`` without digits of seconds beyond the precision of TIMESTAMP and TIMESTAMP_LTZ, as Flink keeps
    it; in rows and arrays, too."""
    if not _drops_digits(kind):
        return array
    if isinstance(kind, t.TimestampType | t.LocalZonedTimestampType):
        return pc.floor_temporal(array, 10 ** (_MICROS - kind.precision), "microsecond")
    return with_parts(array, kind, at_precision)


@cache
def _drops_digits(kind: t.LogicalType) -> bool:
    if isinstance(kind, t.TimestampType | t.LocalZonedTimestampType):
        return kind.precision < _MICROS
    return isinstance(kind, t.RowType | t.ArrayType) and any(map(_drops_digits, parts(kind)))


@cache
def _is_limited(kind: t.LogicalType, lengths: bool) -> bool:
    """Whether a carrier can hold what the type excludes."""
    has_length = lengths and isinstance(kind, t.LengthType) and kind.length < t.MAX_LENGTH
    return not kind.nullable or has_length or any(_is_limited(part, lengths) for part in parts(kind))
