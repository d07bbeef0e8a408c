"""Values as user functions see them, and back: Arrow arrays of natural types, or Python values.

Carriers (``types.physical``) are not natural types if Spark lacks the type. So a function gets TIME as
``time32('ms')``, a day-time interval as ``duration('ms')``, and MAP and MULTISET as Arrow maps. Other values
are unchanged, with TIMESTAMP_LTZ in UTC and year-month intervals as months. Most types are passed without a
copy.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal
from functools import singledispatch
from typing import Any

import numpy as np
import pyarrow as pa

from tidemill.types import logical as t
from tidemill.types.decimals import rounded
from tidemill.types.physical import arrow_type
from tidemill.user_functions.value_types import check_types

_PLAIN: dict[type[t.LogicalType], pa.DataType] = {
    t.TimeType: pa.time32("ms"),
    t.DayTimeIntervalType: pa.duration("ms"),
}


@singledispatch
def presented_type(kind: t.LogicalType) -> pa.DataType:
    """The Arrow type in which a user function sees values of ``kind``."""
    return _PLAIN.get(type(kind)) or arrow_type(kind)


@presented_type.register
def _(kind: t.ArrayType) -> pa.DataType:
    return pa.list_(presented_type(kind.element))


@presented_type.register
def _(kind: t.MapType) -> pa.DataType:
    return pa.map_(presented_type(kind.key), presented_type(kind.value))


@presented_type.register
def _(kind: t.MultisetType) -> pa.DataType:
    return pa.map_(presented_type(kind.element), pa.int32())


@presented_type.register
def _(kind: t.RowType) -> pa.DataType:
    return pa.struct([(f.name, presented_type(f.type)) for f in kind.fields])


def presented(array: pa.Array, kind: t.LogicalType) -> pa.Array:
    """A carrier array as the user's function sees it."""
    target = presented_type(kind)
    carried_as = arrow_type(kind)
    plain = array if array.type == carried_as else array.cast(carried_as)
    return plain if target == carried_as else _rebuilt(plain, kind, target)


def carried(array: pa.Array, kind: t.LogicalType) -> pa.Array:
    """An array of ``presented_type(kind)`` as its carrier."""
    target = arrow_type(kind)
    return array if array.type == target else _rebuilt(array, kind, target)


@singledispatch
def _rebuilt(kind_array: Any, kind: t.LogicalType, target: pa.DataType) -> pa.Array:
    raise TypeError(type(kind_array).__name__)


@_rebuilt.register
def _(array: pa.Array, kind: t.LogicalType, target: pa.DataType) -> pa.Array:
    """Of the same width: another reading of the same bytes."""
    return array if array.type == target else array.view(target)


@_rebuilt.register
def _(array: pa.ListArray, kind: t.LogicalType, target: pa.DataType) -> pa.Array:
    if isinstance(kind, t.ArrayType):
        values = _rebuilt(array.flatten(), kind.element, target.value_type)
        return pa.ListArray.from_arrays(_offsets(array), values, type=target, mask=array.is_null())
    entries = array.flatten()
    key, value = _entry_types(kind)
    keys = _rebuilt(entries.field("key"), key, target.key_type)
    values = _rebuilt(entries.field("value"), value, target.item_type)
    return pa.MapArray.from_arrays(_masked_offsets(array), keys, values, type=target)


@_rebuilt.register
def _(array: pa.MapArray, kind: t.LogicalType, target: pa.DataType) -> pa.Array:
    """An Arrow map becomes a list of (key, value)."""
    rows = pa.concat_arrays([array])
    key, value = _entry_types(kind)
    entry = target.value_type
    first, last = (rows.offsets[0].as_py(), rows.offsets[-1].as_py()) if len(rows) else (0, 0)
    keys = _rebuilt(rows.keys.slice(first, last - first), key, entry.field("key").type)
    values = _rebuilt(rows.items.slice(first, last - first), value, entry.field("value").type)
    entries = pa.StructArray.from_arrays([keys, values], fields=[entry.field("key"), entry.field("value")])
    offsets = pa.array(rows.offsets.to_numpy() - first, pa.int32())
    return pa.ListArray.from_arrays(offsets, entries, type=target, mask=rows.is_null())


@_rebuilt.register
def _(array: pa.StructArray, kind: t.LogicalType, target: pa.DataType) -> pa.Array:
    assert isinstance(kind, t.RowType)
    children = [
        _rebuilt(child, f.type, field.type)
        for child, f, field in zip(array.flatten(), kind.fields, target, strict=True)
    ]
    return pa.StructArray.from_arrays(children, fields=list(target), mask=array.is_null())


def _entry_types(kind: t.LogicalType) -> tuple[t.LogicalType, t.LogicalType]:
    if isinstance(kind, t.MultisetType):
        return kind.element, t.INT
    assert isinstance(kind, t.MapType)
    return kind.key, kind.value


def _offsets(array: pa.ListArray) -> pa.Array:
    lengths = array.value_lengths().fill_null(0).to_numpy(zero_copy_only=False)
    return pa.array(np.concatenate([[0], np.cumsum(lengths)]), pa.int32())


def _masked_offsets(array: pa.ListArray) -> pa.Array:
    """Offsets with NULL if the list is NULL."""
    nulls = np.append(array.is_null().to_numpy(zero_copy_only=False), False)
    return pa.array(_offsets(array).to_numpy(), pa.int32(), mask=nulls)


def to_python(array: pa.Array, kind: t.LogicalType) -> list[Any]:
    """A carrier array's values: ROW and MAP as dicts, TIMESTAMP_LTZ as aware datetimes in UTC."""
    values: list[Any] = presented(array, kind).to_pylist(maps_as_pydicts="strict")
    return values


def from_python(values: Sequence[Any], kind: t.LogicalType) -> pa.Array:
    """Python values as a carrier array.

    Decimals are rounded half up to the type's scale; a ROW may be a tuple, a list or a dict, whose missing
    fields are NULL. Raises pa.ArrowInvalid, pa.ArrowTypeError, OverflowError or TypeError for a value that
    is none of the type.
    """
    adapt = _adapter(kind)
    adapted = values if adapt is None else [None if v is None else adapt(v) for v in values]
    check_types(kind, adapted)
    return carried(pa.array(adapted, presented_type(kind), from_pandas=False), kind)


Adapter = Callable[[Any], Any] | None


@singledispatch
def _adapter(kind: t.LogicalType) -> Adapter:
    """A function that converts a value for Arrow; None if no conversion is needed."""
    return None


@_adapter.register
def _(kind: t.DecimalType) -> Adapter:
    def to_scale(value: Any) -> Any:
        return rounded(value, kind.scale) if isinstance(value, Decimal) else value

    return to_scale


@_adapter.register
def _(kind: t.ArrayType) -> Adapter:
    inner = _adapter(kind.element)
    return None if inner is None else lambda values: [None if v is None else inner(v) for v in values]


@_adapter.register(t.MapType)
@_adapter.register(t.MultisetType)
def _(kind: t.MapType | t.MultisetType) -> Adapter:
    one, two = (_adapter(k) or _same for k in _entry_types(kind))
    return lambda entries: [(one(k), None if v is None else two(v)) for k, v in dict(entries).items()]


@_adapter.register
def _(kind: t.RowType) -> Adapter:
    names = [f.name for f in kind.fields]
    known_names = set(names)
    inner = [_adapter(f.type) or _same for f in kind.fields]

    def by_name(value: Any) -> dict[str, Any]:
        if isinstance(value, dict) and not value.keys() <= known_names:
            raise TypeError(f"{value!r} has other fields than {', '.join(names)}")
        parts = [value.get(n) for n in names] if isinstance(value, dict) else list(value)
        if len(parts) != len(names):
            raise TypeError(f"{value!r} has {len(parts)} fields instead of {len(names)}")
        return {n: None if v is None else f(v) for n, f, v in zip(names, inner, parts, strict=True)}

    return by_name


def _same(value: Any) -> Any:
    return value
