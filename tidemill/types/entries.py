"""MAPs and MULTISETs as Arrow columns: their entries in the order of their keys.

Maps are equal whatever the order of their entries. So entries are sorted when a value is created, and code
that groups, hashes, compares or stores values can ignore the order. Spark SQL sorts with
``functions.values.in_order``, this module sorts values from Python. Both order keys alike: NULL first, then
as in ``types.values``, nested keys part by part.

Cost: a sort of a column's entries; none for types without maps.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidemill.types import logical as t
from tidemill.types.python_values import python_values
from tidemill.types.values import has_maps


def in_order(array: pa.Array, kind: t.LogicalType) -> pa.Array:
    """Carriers of ``kind`` with all entries of maps, at any depth, in order."""
    if not has_maps(kind):
        return array
    if isinstance(kind, t.RowType | t.ArrayType):
        return with_parts(array, kind, in_order)
    assert isinstance(kind, t.MapType | t.MultisetType)
    key, value = (kind.key, kind.value) if isinstance(kind, t.MapType) else (kind.element, t.INT)
    entries = array.flatten()
    keys, values = in_order(entries.field(0), key), in_order(entries.field(1), value)
    inner = pa.StructArray.from_arrays([keys, values], fields=list(array.type.value_type))
    return by_key(_with_values(array, inner))


def with_parts(
    array: pa.Array, kind: t.LogicalType, change: Callable[[pa.Array, t.LogicalType], pa.Array]
) -> pa.Array:
    """Rows and arrays with ``change`` made of the values in them."""
    if isinstance(kind, t.RowType):
        fields = zip(array.flatten(), kind.fields, strict=True)
        children = [change(child, f.type) for child, f in fields]
        return pa.StructArray.from_arrays(children, fields=list(array.type), mask=array.is_null())
    assert isinstance(kind, t.ArrayType)
    return _with_values(array, change(array.flatten(), kind.element))


def by_key(maps: pa.ListArray) -> pa.ListArray:
    """Lists of (key, value) sorted by their keys, whose own maps are in order."""
    entries = maps.flatten()
    if len(entries) < 2:
        return maps
    owners = np.repeat(np.arange(len(maps)), _lengths(maps))
    order = np.lexsort((_ranks(entries.field(0)), owners))
    return _with_values(maps, entries.take(pa.array(order)))


def _with_values(like: pa.ListArray, values: pa.Array) -> pa.ListArray:
    """The lists ``like`` with other values: as many, in the same order."""
    offsets = pa.array(np.concatenate([[0], np.cumsum(_lengths(like))]), pa.int32())
    return pa.ListArray.from_arrays(offsets, values, type=like.type, mask=like.is_null())


def _lengths(lists: pa.ListArray) -> Any:
    return lists.value_lengths().fill_null(0).to_numpy(zero_copy_only=False)


def _ranks(keys: pa.Array) -> Any:
    """Integers that ascend as ``keys`` do. Arrow takes both zeros for one, and ranks nothing nested."""
    if pa.types.is_null(keys.type):
        return np.zeros(len(keys), np.int64)
    if pa.types.is_nested(keys.type) or pa.types.is_floating(keys.type):
        sort_keys = list(map(_sort_key, python_values(keys)))
        rank_of = {sort_key: rank for rank, sort_key in enumerate(sorted(set(sort_keys)))}
        return np.array([rank_of[sort_key] for sort_key in sort_keys], np.int64)
    ranks = pc.rank(keys, sort_keys="ascending", tiebreaker="dense").to_numpy().astype(np.int64)
    return np.where(keys.is_null().to_numpy(zero_copy_only=False), -1, ranks)


def _sort_key(value: Any) -> tuple[Any, ...]:
    """A tuple that sorts as the value sorts among values of its type."""
    if value is None:
        return (0,)
    if isinstance(value, dict):
        return (1, *map(_sort_key, value.values()))
    if isinstance(value, list):
        return (1, *map(_sort_key, value))
    if isinstance(value, float):
        missing = value != value
        return (1, missing, 0.0 if missing else value, missing or np.copysign(1.0, value) > 0)
    return (1, value)
