"""Random values of every type that state keeps, few of each kind, so that they meet; NULL among them."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from decimal import Decimal
from random import Random
from typing import Any

import pyarrow as pa

_POOLS: dict[str, Sequence[Any]] = {
    "string": ["", "a", "b", "long text of many letters", "\U0001d4b3"],
    "float": [0.5, -1.0],
    "double": [0.5, -1.0, float("inf")],
    "bool": [True, False],
    "int8": [0, 1, -128],
    "uint8": [0, 1, 255],
    "uint64": [0, 1, 2**64 - 1],
    "int32": [0, 1, -(2**31)],
    "int64": [0, 1, 2, -(2**63), 2**63 - 1],
}
_NULL = 0.15


def random_value(chance: Random, kind: pa.DataType) -> Any:
    """None, or a value as Arrow gives it back; nested ones are ``frozen``."""
    if chance.random() < _NULL:
        return None
    if pa.types.is_decimal(kind):
        return chance.choice(
            [Decimal((0, (9,) * kind.precision, -kind.scale)), Decimal((1, (1,), -kind.scale))]
        )
    if pa.types.is_timestamp(kind):
        return chance.choice((dt.datetime(1970, 1, 1), dt.datetime(9999, 1, 1)))
    if pa.types.is_list(kind):
        return tuple(random_value(chance, kind.value_type) for _ in range(chance.randrange(3)))
    return chance.choice(_POOLS[str(kind)])


def frozen(value: Any) -> Any:
    return tuple(map(frozen, value)) if isinstance(value, list) else value
