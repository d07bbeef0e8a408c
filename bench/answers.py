"""Whether two engines give one answer: the same rows in any order, numbers but for their last digits.

Scales of averages and quotients differ between dialects, and the order in which doubles are added is open.
"""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any

import pyarrow as pa

Row = tuple[Any, ...]


def same_answers(one: pa.Table, other: pa.Table) -> bool:
    if one.shape != other.shape:
        return False
    return all(
        all(map(_same, left, right)) for left, right in zip(_in_order(one), _in_order(other), strict=True)
    )


def _in_order(table: pa.Table) -> list[Row]:
    rows = zip(*(column.to_pylist() for column in table.columns), strict=True)
    return sorted(rows, key=lambda row: [_digits(value) for value in row])


def _digits(value: object) -> str:
    return f"{value:.6g}" if isinstance(value, Decimal | float) else str(value)


def _same(one: object, other: object) -> bool:
    if isinstance(one, Decimal | float) and isinstance(other, Decimal | float):
        return math.isclose(one, other, rel_tol=1e-9, abs_tol=1e-5)
    return one == other
