"""Types and values of random columns, by theme: few and exact ones, hostile ones, or many.

Hostile are the ends of every type, signed zeros, NaN and infinities, texts that are empty, long, beyond the
basic plane or differ in what the eye does not see. Sums of hostile doubles depend on their order, so such
columns are not ``exact``. Columns that are written DOUBLE PRECISION, and FLOATs, have multiples of one power
of two, zeros, NaN and infinities: their sums are the same in any order.
"""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from enum import Enum
from typing import Any


class Type(Enum):
    """A column's type, by its text in DDL."""

    INT = "INT"
    BIGINT = "BIGINT"
    STRING = "STRING"
    DOUBLE = "DOUBLE"
    DYADIC = "DOUBLE PRECISION"
    DECIMAL = "DECIMAL(8, 2)"
    TIMESTAMP = "TIMESTAMP(3)"
    BOOLEAN = "BOOLEAN"
    INTS = "ARRAY<INT>"
    STRINGS = "ARRAY<STRING>"
    TINYINT = "TINYINT"
    SMALLINT = "SMALLINT"
    FLOAT = "FLOAT"
    WIDE = "DECIMAL(38, 10)"
    WIDEST = "DECIMAL(38, 0)"
    CHAR = "CHAR(3)"
    DATE = "DATE"
    TIME = "TIME"
    INSTANT = "TIMESTAMP_LTZ(3)"
    BINARY = "BINARY(2)"
    BYTES = "BYTES"
    ROW = "ROW<a INT, b STRING>"
    MAP = "MAP<STRING, INT>"


Values = dict[Type, tuple[Any, ...]]

PLAIN: Values = {
    Type.INT: (0, 1, 2, 3, -1),
    Type.BIGINT: (0, 1, 2, 5, 10_000_000_000),
    Type.STRING: ("a", "b", "ab", "", "B"),
    Type.DOUBLE: (0.5, 1.0, -2.25, 4.0),
    Type.DECIMAL: (Decimal("0.10"), Decimal("1.00"), Decimal("2.50"), Decimal("-1.00")),
    Type.TIMESTAMP: tuple(dt.datetime(2024, 1, 1, 0, 0, n) for n in (0, 1, 5, 30)),
    Type.BOOLEAN: (True, False),
    Type.INTS: ([], [1], [1, 2], [2, 2, None], [3]),
    Type.STRINGS: ([], ["a"], ["b", "a"], [None]),
}
_ENDS = (dt.datetime(1, 1, 1), dt.datetime(9999, 12, 31, 23, 59, 59, 999000))
_TURNS = (dt.datetime(1969, 12, 31, 23, 59, 59, 999000), dt.datetime(1582, 10, 10, 12))
_TEXTS = ("", "a", "A", " ", "a ", " a", "\u00e9", "e\u0301", "\U0001f600")
_WIDE, _WIDEST = Decimal("9" * 28 + "." + "9" * 10), Decimal("9" * 38)

HOSTILE: Values = {
    Type.INT: (0, -1, 2, 2**31 - 1, -(2**31)),
    Type.BIGINT: (0, -1, 2, 2**63 - 1, -(2**63), 2**53 + 1),
    Type.STRING: (*_TEXTS, "\U0001d4b3", "\uffff", "x" * 300, "it's", "a%_\\", "a\nb", "null"),
    Type.DOUBLE: (0.0, -0.0, float("nan"), float("inf"), float("-inf"), 5e-324, 1.7976931348623157e308, 0.1),
    Type.DECIMAL: (Decimal("999999.99"), Decimal("-999999.99"), Decimal("0.00"), Decimal("0.01")),
    Type.TIMESTAMP: (*_ENDS, *_TURNS, dt.datetime(2024, 1, 1)),
    Type.BOOLEAN: (True, False),
    Type.INTS: ([], [None], [2**31 - 1, -(2**31)], [0, 0], [0]),
    Type.STRINGS: ([], [""], ["", None], ["\U0001d4b3"], [None]),
    Type.TINYINT: (0, 127, -128, 1),
    Type.SMALLINT: (0, 32767, -32768, 1),
    Type.DYADIC: (0.0, -0.0, float("nan"), float("inf"), float("-inf"), 0.25, -0.75, 2.0**30, -(2.0**30)),
    Type.FLOAT: (0.0, -0.0, float("nan"), float("inf"), float("-inf"), 0.5, -1024.0),
    Type.WIDE: (_WIDE, _WIDE.copy_negate(), Decimal("0E-10"), Decimal("1E-10"), Decimal("1.5")),
    Type.WIDEST: (_WIDEST, _WIDEST.copy_negate(), Decimal(0), Decimal(1)),
    Type.CHAR: ("abc", "ab ", "xyz", "\U0001d4b3bc"),
    Type.DATE: (dt.date(1, 1, 1), dt.date(9999, 12, 31), dt.date(1970, 1, 1), dt.date(1582, 10, 10)),
    Type.TIME: (dt.time(0), dt.time(23, 59, 59), dt.time(12, 30)),
    Type.INSTANT: (*_ENDS, *_TURNS),
    Type.BINARY: (b"\x00\x00", b"\xff\xff", b"ab"),
    Type.BYTES: (b"", b"\x00", b"\xff\xfe", b"a" * 100),
    Type.ROW: ({"a": 1, "b": ""}, {"a": None, "b": None}, {"a": -(2**31), "b": "\U0001d4b3"}),
    Type.MAP: ({}, {"": 1}, {"a": None}, {"a": 1, "\U0001d4b3": 2}),
}
MANY: Values = {
    Type.INT: tuple(range(-300, 300)),
    Type.BIGINT: tuple(7_000_000_000 * n for n in range(-200, 200)),
    Type.STRING: tuple(f"text {n}" * (n % 4) for n in range(400)),
    Type.DECIMAL: tuple(Decimal(n) / 100 for n in range(-200, 200)),
    Type.TIMESTAMP: tuple(dt.datetime(2024, 1, 1) + dt.timedelta(seconds=n) for n in range(600)),
}


class Theme(Enum):
    """What a case is about; ``least`` and ``most``: events of a table."""

    PLAIN = "plain"
    HOSTILE = "hostile"
    LARGE = "large"

    @property
    def values(self) -> Values:
        return {"plain": PLAIN, "hostile": HOSTILE, "large": MANY}[self.value]

    @property
    def least(self) -> int:
        return 800 if self is Theme.LARGE else 0

    @property
    def most(self) -> int:
        return 2000 if self is Theme.LARGE else 24

    @property
    def depth(self) -> tuple[int, ...]:
        """How many operators stand on top of each other."""
        return (1, 1, 2) if self is Theme.LARGE else (1, 2, 2, 3)

    def exact(self, kind: Type) -> bool:
        """Whether sums of a column are the same in any order."""
        return kind is not Type.DOUBLE or self is Theme.PLAIN
