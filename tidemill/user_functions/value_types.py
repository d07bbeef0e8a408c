"""The Python types that are allowed for values of a declared type.

Arrow converts too much: a number to a timestamp, 1.5 to the integer 1, text to bytes. This module refuses
such values before Arrow sees them. Cost: one pass over the types of a batch's values, for nested values over
the types of their elements.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Sequence
from decimal import Decimal
from functools import singledispatch
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa

from tidemill.types import logical as t

Types = tuple[type, ...]

_INTEGERS: Types = (int, np.integer)
_NUMBERS: Types = (*_INTEGERS, float, np.floating)
_BYTES: Types = (bytes, bytearray, memoryview)
_ALLOWED: tuple[tuple[Types, Types], ...] = (
    (t.INTEGER_TYPES, _INTEGERS),
    (t.APPROXIMATE_TYPES, _NUMBERS),
    ((t.DecimalType,), (*_INTEGERS, Decimal)),
    ((t.BooleanType,), (bool, np.bool_)),
    (t.CHARACTER_TYPES, (str,)),
    (t.BINARY_TYPES, _BYTES),
    ((t.DateType,), (datetime.date, np.datetime64)),
    ((t.TimeType,), (datetime.time,)),
    (t.TIMESTAMP_TYPES, (datetime.datetime, np.datetime64)),
    ((t.DayTimeIntervalType,), (datetime.timedelta, np.timedelta64)),
    ((t.YearMonthIntervalType,), _INTEGERS),
)
_ALWAYS: Types = (type(None), pa.Scalar)
# Subclasses whose values are of another kind than those of their base class.
_APART: Types = (bool, np.timedelta64)


@singledispatch
def check_types(kind: t.LogicalType, values: Iterable[Any]) -> None:
    """Raises TypeError if a value's type is not allowed for ``kind``; ROWs are dicts by field."""
    wrong = [actual for actual in set(map(type, values)) if not _stands_for(actual, type(kind))]
    if wrong:
        raise TypeError(f"{wrong[0].__name__} is no {kind}")


@check_types.register
def _(kind: t.ArrayType, values: Iterable[Any]) -> None:
    check_types(kind.element, chain.from_iterable(_there(values)))


@check_types.register(t.MapType)
@check_types.register(t.MultisetType)
def _(kind: t.MapType | t.MultisetType, values: Iterable[Any]) -> None:
    key, value = (kind.key, kind.value) if isinstance(kind, t.MapType) else (kind.element, t.INT)
    entries = list(chain.from_iterable(_there(values)))
    check_types(key, (k for k, _ in entries))
    check_types(value, (v for _, v in entries))


@check_types.register
def _(kind: t.RowType, values: Iterable[Any]) -> None:
    rows = _there(values)
    for field in kind.fields:
        check_types(field.type, [row[field.name] for row in rows])


def _there(values: Iterable[Any]) -> Sequence[Any]:
    return [v for v in values if v is not None]


def _stands_for(actual: type, kind: type[t.LogicalType]) -> bool:
    if issubclass(actual, _ALWAYS):
        return True
    allowed = next((types for kinds, types in _ALLOWED if issubclass(kind, kinds)), (object,))
    return issubclass(actual, allowed) and (actual in allowed or not issubclass(actual, _APART))
