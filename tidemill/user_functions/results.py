"""Checks the result of a user function against its declaration, and converts it to carriers.

An array may be narrower or wider within its family (int32 for BIGINT, large_string for STRING) as long as
every value fits; anything else is an error that names function, expected and found.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa

from tidemill.types.declared import at_precision, misfit
from tidemill.types.entries import in_order
from tidemill.types.logical import LogicalType
from tidemill.user_functions.failures import wrong_result
from tidemill.user_functions.values import carried, from_python, presented_type

_REFUSED = (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, OverflowError, TypeError)
_FAMILIES: tuple[tuple[Callable[[pa.DataType], bool], ...], ...] = (
    (pa.types.is_integer,),
    (pa.types.is_floating, pa.types.is_integer),
    (pa.types.is_decimal, pa.types.is_integer),
    (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view),
    (pa.types.is_binary, pa.types.is_large_binary, pa.types.is_binary_view, pa.types.is_fixed_size_binary),
    (pa.types.is_timestamp,),
    (pa.types.is_date,),
    (pa.types.is_time,),
    (pa.types.is_duration,),
    (pa.types.is_boolean,),
)
"""By the declared type (the first test): the types that may stand in for it."""


def from_array(name: str, returned: Any, kind: LogicalType, rows: int) -> pa.Array:
    """The carrier of the array that function ``name`` gave for ``rows`` rows."""
    array = _as_array(returned)
    if array is None:
        raise wrong_result(name, "a pyarrow array", f"a value of type {type(returned).__name__}")
    if len(array) != rows:
        raise wrong_result(name, f"{rows} values, one per row", f"{len(array)}")
    target = presented_type(kind)
    try:
        fitted = _fitted(array, target)
    except _REFUSED as e:
        raise wrong_result(name, f"{kind} ({target})", f"an array of {array.type}: {e}") from None
    if fitted is None:
        raise wrong_result(name, f"{kind} ({target})", f"an array of {array.type}")
    return _finished(name, carried(fitted, kind), kind)


def from_values(name: str, values: Sequence[Any], kind: LogicalType) -> pa.Array:
    """The carrier of the Python values that function ``name`` gave."""
    try:
        array = from_python(values, kind)
    except (*_REFUSED, ArithmeticError, AttributeError, ValueError):
        raise wrong_result(name, str(kind), _shown(_misfit(values, kind))) from None
    return _finished(name, array, kind)


def _finished(name: str, array: pa.Array, kind: LogicalType) -> pa.Array:
    """``array`` without digits beyond the declared precision, and with the entries of maps in order; NULLs
    only where allowed."""
    found = misfit(array, kind, lengths=False)
    if found:
        raise wrong_result(name, str(kind), found)
    return in_order(at_precision(array, kind), kind)


def _misfit(values: Sequence[Any], kind: LogicalType) -> Any:
    """The first value that is not of the type."""
    for value in values:
        try:
            from_python([value], kind)
        except Exception:
            return value
    return list(values)


def _shown(value: Any) -> str:
    text = repr(value)
    return f"{text if len(text) <= 80 else text[:77] + '...'} of type {type(value).__name__}"


def _as_array(returned: Any) -> pa.Array | None:
    if isinstance(returned, pa.Table | pa.RecordBatch):
        returned = returned.to_struct_array()
    if isinstance(returned, pa.ChunkedArray):
        returned = returned.combine_chunks()
    if isinstance(returned, pa.DictionaryArray):
        returned = returned.dictionary_decode()
    return returned if isinstance(returned, pa.Array) else None


def _fitted(array: pa.Array, target: pa.DataType) -> pa.Array | None:
    """``array`` as ``target``; None if the types are of different families."""
    if array.type == target:
        return array
    if pa.types.is_null(array.type):
        return pa.nulls(len(array), target)
    if isinstance(array, pa.StructArray) and pa.types.is_struct(target):
        return _fitted_struct(array, target)
    if pa.types.is_list(target) and (pa.types.is_list(array.type) or pa.types.is_large_list(array.type)):
        return _fitted_list(array, target)
    if pa.types.is_map(target) and pa.types.is_map(array.type):
        return array.cast(target)
    for declared, *others in _FAMILIES:
        if declared(target):
            return array.cast(target) if any(f(array.type) for f in (declared, *others)) else None
    return None


def _fitted_struct(array: pa.StructArray, target: pa.DataType) -> pa.Array | None:
    """By position, whatever the fields are called."""
    if array.type.num_fields != target.num_fields:
        return None
    children = [_fitted(c, f.type) for c, f in zip(array.flatten(), target, strict=True)]
    if any(c is None for c in children):
        return None
    return pa.StructArray.from_arrays(children, fields=list(target), mask=array.is_null())


def _fitted_list(array: pa.Array, target: pa.DataType) -> pa.Array | None:
    plain = array.cast(pa.list_(array.type.value_type))
    values = _fitted(plain.flatten(), target.value_type)
    if values is None:
        return None
    lengths = plain.value_lengths().fill_null(0)
    ends = lengths.to_numpy(zero_copy_only=False).cumsum()
    offsets = pa.array([0, *ends], pa.int32())
    return pa.ListArray.from_arrays(offsets, values, type=target, mask=plain.is_null())
