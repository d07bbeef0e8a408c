"""Converts between the carriers of ``types.physical`` and the types of columnar files.

TIME is time32[ms] in a file and INT milliseconds as a carrier. MAP and MULTISET are maps in a file
and lists of entries as carriers. Other values are cast if the file's type differs.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import singledispatch

import pyarrow as pa
import pyarrow.compute as pc

from tidemill.connectors.formats.column_names import mistaken
from tidemill.types import logical as t
from tidemill.types.physical import arrow_type

_MILLISECONDS = pa.time32("ms")
_DAY = 86_400_000


@singledispatch
def file_type(kind: t.LogicalType) -> pa.DataType:
    return arrow_type(kind)


@file_type.register
def _(kind: t.TimeType) -> pa.DataType:
    return _MILLISECONDS


@file_type.register
def _(kind: t.ArrayType) -> pa.DataType:
    return pa.list_(file_type(kind.element))


@file_type.register
def _(kind: t.MapType) -> pa.DataType:
    return pa.map_(file_type(kind.key), file_type(kind.value))


@file_type.register
def _(kind: t.MultisetType) -> pa.DataType:
    return pa.map_(file_type(kind.element), pa.int32())


@file_type.register
def _(kind: t.RowType) -> pa.DataType:
    return pa.struct([(f.name, file_type(f.type)) for f in kind.fields])


@singledispatch
def to_file(kind: t.LogicalType, values: pa.Array) -> pa.Array:
    """Carrier values as values of ``file_type(kind)``."""
    return values


@to_file.register
def _(kind: t.TimeType, values: pa.Array) -> pa.Array:
    return values.cast(_MILLISECONDS)


@to_file.register
def _(kind: t.ArrayType, values: pa.Array) -> pa.Array:
    return _list(values, to_file(kind.element, values.flatten()))


@to_file.register
def _(kind: t.MapType, values: pa.Array) -> pa.Array:
    return _map(kind, kind.key, kind.value, values)


@to_file.register
def _(kind: t.MultisetType, values: pa.Array) -> pa.Array:
    return _map(kind, kind.element, t.INT, values)


@to_file.register
def _(kind: t.RowType, values: pa.Array) -> pa.Array:
    children = [to_file(f.type, child) for f, child in zip(kind.fields, values.flatten(), strict=True)]
    return _struct([f.name for f in kind.fields], children, values)


def from_file(kind: t.LogicalType, values: pa.Array) -> pa.Array:
    """A file's values as carrier values of ``kind``. ArrowInvalid if a value does not fit the type."""
    if pa.types.is_null(values.type):
        return pa.nulls(len(values), arrow_type(kind))
    if not _SHAPES.get(type(kind), _any)(values.type):
        raise pa.ArrowInvalid("no conversion exists")
    return _from_file(kind, values)


def _any(_: pa.DataType) -> bool:
    return True


def _is_list(kind: pa.DataType) -> bool:
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind))


def _is_point_in_time(kind: pa.DataType) -> bool:
    return bool(pa.types.is_timestamp(kind) or pa.types.is_date(kind))


_SHAPES: dict[type[t.LogicalType], Callable[[pa.DataType], bool]] = {
    t.ArrayType: _is_list,
    t.MapType: pa.types.is_map,
    t.MultisetType: pa.types.is_map,
    t.RowType: pa.types.is_struct,
    t.TimestampType: _is_point_in_time,
    t.LocalZonedTimestampType: pa.types.is_timestamp,
}
"""Types of file values that can be read as a type; other types accept any value that can be cast."""


@singledispatch
def _from_file(kind: t.LogicalType, values: pa.Array) -> pa.Array:
    return values if values.type == arrow_type(kind) else values.cast(arrow_type(kind))


@_from_file.register
def _(kind: t.FloatType, values: pa.Array) -> pa.Array:
    """DOUBLE values are rounded to FLOAT. ArrowInvalid if a finite value would become infinite."""
    found = values.cast(arrow_type(kind))
    if values.type == pa.float64():
        lost = values.filter(pc.and_(pc.is_finite(values), pc.is_inf(found)))
        if len(lost):
            raise pa.ArrowInvalid(f"{lost[0]} is too large")
    return found


@_from_file.register
def _(kind: t.TimeType, values: pa.Array) -> pa.Array:
    millis = values if pa.types.is_integer(values.type) else values.cast(_MILLISECONDS, safe=False)
    found = millis.cast(pa.int32())
    odd = found.filter(pc.or_(pc.less(found, 0), pc.greater_equal(found, _DAY)))
    if len(odd):
        raise pa.ArrowInvalid(f"{odd[0]} ms are no time of day")
    return found


@_from_file.register(t.TimestampType)
@_from_file.register(t.LocalZonedTimestampType)
def _(kind: t.LogicalType, values: pa.Array) -> pa.Array:
    """Nanoseconds are truncated; an instant in a TIMESTAMP column is read as UTC wall-clock time."""
    target = arrow_type(kind)
    cut = _microseconds(values) if pa.types.is_timestamp(values.type) and values.type.unit == "ns" else values
    zone = values.type.tz if pa.types.is_timestamp(values.type) else None
    plain = cut.cast(pa.timestamp("us", tz=zone))
    return plain if plain.type == target else plain.cast(pa.int64()).cast(target)


def _microseconds(values: pa.Array) -> pa.Array:
    """Nanoseconds as microseconds, rounded down, also before 1970."""
    nanos = values.cast(pa.int64())
    whole = pc.divide(nanos, 1000)
    rest = pc.subtract(nanos, pc.multiply(whole, 1000))
    return pc.subtract(whole, pc.less(rest, 0).cast(pa.int64()))


@_from_file.register
def _(kind: t.ArrayType, values: pa.Array) -> pa.Array:
    return _list(values, from_file(kind.element, values.flatten()))


@_from_file.register
def _(kind: t.MapType, values: pa.Array) -> pa.Array:
    return _entries(kind.key, kind.value, values)


@_from_file.register
def _(kind: t.MultisetType, values: pa.Array) -> pa.Array:
    return _entries(kind.element, t.INT, values)


@_from_file.register
def _(kind: t.RowType, values: pa.Array) -> pa.Array:
    """Fields are matched by name; a field that the file lacks is NULL."""
    places = {values.type.field(i).name: i for i in range(values.type.num_fields)}
    names = [f.name for f in kind.fields]
    wrong = mistaken(names, names, places)
    if wrong:
        raise pa.ArrowInvalid(wrong)
    flat = values.flatten()
    children = [
        from_file(f.type, flat[places[f.name]])
        if f.name in places
        else pa.nulls(len(values), arrow_type(f.type))
        for f in kind.fields
    ]
    return _struct(names, children, values)


def _struct(names: list[str], children: list[pa.Array], like: pa.Array) -> pa.Array:
    return pa.StructArray.from_arrays(children, names=names, mask=like.is_null())


def _offsets(values: pa.Array) -> pa.Array:
    lengths = pc.fill_null(_lengths(values), 0)
    return pa.concat_arrays([pa.array([0], pa.int32()), pc.cumulative_sum(lengths).cast(pa.int32())])


def _lengths(values: pa.Array) -> pa.Array:
    if pa.types.is_map(values.type):
        plain = pa.list_(pa.struct([("key", values.type.key_type), ("value", values.type.item_type)]))
        values = values.cast(plain)
    return pc.list_value_length(values).cast(pa.int32())


def _list(like: pa.Array, elements: pa.Array) -> pa.Array:
    return pa.ListArray.from_arrays(_offsets(like), elements, mask=like.is_null())


def _map(kind: t.LogicalType, key: t.LogicalType, value: t.LogicalType, values: pa.Array) -> pa.Array:
    keys, items = values.flatten().flatten()
    made = pa.MapArray.from_arrays(_offsets(values), to_file(key, keys), to_file(value, items))
    return pc.if_else(values.is_valid(), made, pa.scalar(None, made.type))


def _entries(key: t.LogicalType, value: t.LogicalType, values: pa.Array) -> pa.Array:
    plain = pa.list_(pa.struct([("key", values.type.key_type), ("value", values.type.item_type)]))
    entries = values.cast(plain).flatten()
    keys, items = entries.flatten()
    made = pa.StructArray.from_arrays([from_file(key, keys), from_file(value, items)], names=["key", "value"])
    return _list(values, made)
