"""Values that tell one notion of equality from another, and what each says of them, in plain Python."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable
from decimal import Decimal
from typing import Any

from tidemill.types import logical as t

NAN = math.nan
FLOATS: tuple[Any, ...] = (0.0, -0.0, NAN, math.inf, -math.inf, 1.5, -1.5, None)
WIDE = t.DecimalType(precision=38, scale=10)

VALUES: dict[t.LogicalType, tuple[Any, ...]] = {
    t.DOUBLE: (*FLOATS, 5e-324, 1.7976931348623157e308),
    t.FloatType(): FLOATS,
    t.BIGINT: (-(2**63), 2**63 - 1, 0, -1, None),
    t.INT: (-(2**31), 2**31 - 1, 0, None),
    t.BOOLEAN: (True, False, None),
    t.STRING: ("", "a", "a ", "A", "é", "\uffff", "\U0001f600", "x" * 40, None),
    t.BYTES: (b"", b"\0", b"\xff", b"\x7f", b"\0\0", None),
    WIDE: (Decimal("9" * 28 + "." + "9" * 10), Decimal("-0.0000000001"), Decimal("0E-10"), None),
    t.DATE: (dt.date(1, 1, 1), dt.date(9999, 12, 31), dt.date(1970, 1, 1), None),
    t.TimestampType(precision=6): (dt.datetime(1, 1, 1), dt.datetime(9999, 12, 31, 23, 59, 59, 999999), None),
    t.ArrayType(element=t.DOUBLE): ([], [0.0], [-0.0], [NAN], [None], [0.0, 1.5], None),
    t.RowType(fields=(t.Field("f", t.DOUBLE), t.Field("s", t.STRING))): (
        (0.0, "a"),
        (-0.0, "a"),
        (NAN, "a"),
        (1.5, "a "),
        (None, "a"),
        (None, None),
        None,
    ),
    t.RowType(fields=(t.Field("n", t.INT), t.Field("s", t.STRING))): (
        (1, "a"),
        (None, "a"),
        (1, None),
        (None, None),
        None,
    ),
}


def identity(value: Any) -> Any:
    """Equal, and of equal hash, exactly where values are one."""
    if isinstance(value, float):
        return ("float", repr(value))
    if isinstance(value, list | tuple):
        return tuple(map(identity, value))
    if isinstance(value, dict):
        return frozenset((identity(k), identity(v)) for k, v in value.items())
    return value


def place(value: Any) -> Any:
    """Sorts as ORDER BY does, NULL lowest."""
    if value is None:
        return (0,)
    if isinstance(value, float):
        return (1, value != value, 0.0 if value != value else value, math.copysign(1.0, value))
    return (1, value)


def equal(a: Any, b: Any) -> bool | None:
    """SQL's ``=``."""
    if a is None or b is None:
        return None
    if isinstance(a, tuple):
        return all((x is None and y is None) or equal(x, y) for x, y in zip(a, b, strict=True))
    return identity(a) == identity(b) if isinstance(a, list) else bool(a == b)


ORDERED = tuple(kind for kind in VALUES if not isinstance(kind, t.COLLECTION_TYPES))
COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
}
