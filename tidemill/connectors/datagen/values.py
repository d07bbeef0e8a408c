"""Generators of column values: plain frozen values that make one Arrow array per block of rows.

``make(rng, rows, first, time)``: ``rows`` values, the first of which belongs to row ``first``;
``time`` is the wall-clock time of the range in milliseconds.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import pyarrow as pa

from tidemill.connectors import generated

_DAY = 86_400_000


class Values(Protocol):
    def make(self, rng: np.random.Generator, rows: int, first: int, time: int) -> pa.Array: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Integers:
    """Evenly from ``low`` to ``high``, both included."""

    kind: pa.DataType
    low: int
    high: int

    def make(self, rng: np.random.Generator, rows: int, first: int, time: int) -> pa.Array:
        return pa.array(rng.integers(self.low, self.high, rows, endpoint=True)).cast(self.kind)


@dataclass(frozen=True, slots=True, kw_only=True)
class Floats:
    """Evenly from ``low`` to ``high``."""

    kind: pa.DataType
    low: float
    high: float

    def make(self, rng: np.random.Generator, rows: int, first: int, time: int) -> pa.Array:
        draw = rng.random(rows)
        return pa.array(self.low * (1 - draw) + self.high * draw).cast(self.kind)


@dataclass(frozen=True, slots=True, kw_only=True)
class Decimals:
    """Evenly from ``low`` to ``high``, both in units of the last digit and below 10**18."""

    kind: pa.Decimal128Type
    low: int
    high: int

    def make(self, rng: np.random.Generator, rows: int, first: int, time: int) -> pa.Array:
        units = pa.array(rng.integers(self.low, self.high, rows, endpoint=True))
        wide = pa.decimal128(38, 0)
        scaled = units.cast(wide).view(pa.decimal128(38, self.kind.scale))
        return scaled.cast(self.kind)


@dataclass(frozen=True, slots=True, kw_only=True)
class Booleans:
    def make(self, rng: np.random.Generator, rows: int, first: int, time: int) -> pa.Array:
        return pa.array(rng.integers(0, 2, rows).astype(bool))


@dataclass(frozen=True, slots=True, kw_only=True)
class Texts:
    """Hexadecimal digits; ``varied``: from 1 to ``length`` of them."""

    length: int
    varied: bool

    def make(self, rng: np.random.Generator, rows: int, first: int, time: int) -> pa.Array:
        return generated.hexadecimal(rng, _lengths(rng, rows, self.length, self.varied))


@dataclass(frozen=True, slots=True, kw_only=True)
class Bytes:
    length: int
    varied: bool

    def make(self, rng: np.random.Generator, rows: int, first: int, time: int) -> pa.Array:
        return generated.binary(rng, _lengths(rng, rows, self.length, self.varied))


def _lengths(rng: np.random.Generator, rows: int, length: int, varied: bool) -> generated.Lengths:
    if varied and length > 1:
        return rng.integers(1, length, rows, endpoint=True)
    return np.full(rows, length, dtype=np.int64)


@dataclass(frozen=True, slots=True, kw_only=True)
class Moments:
    """The range's time less a random part of ``past`` milliseconds, as ``shape`` has it."""

    kind: pa.DataType
    past: int
    shape: Callable[[np.ndarray, pa.DataType], pa.Array]

    def make(self, rng: np.random.Generator, rows: int, first: int, time: int) -> pa.Array:
        back = rng.integers(0, self.past, rows, endpoint=True) if self.past else np.zeros(rows, np.int64)
        return self.shape(time - back, self.kind)


def as_timestamp(millis: np.ndarray, kind: pa.DataType) -> pa.Array:
    return pa.array(millis * 1000).cast(pa.timestamp("us")).cast(kind)


def as_date(millis: np.ndarray, kind: pa.DataType) -> pa.Array:
    return pa.array((millis // _DAY).astype(np.int32)).cast(kind)


def as_time(millis: np.ndarray, kind: pa.DataType) -> pa.Array:
    return pa.array(millis % _DAY // 1000 * 1000).cast(kind)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sequence:
    """``start``, ``start`` + 1, ... by row number; ``end`` for the rows after the last."""

    kind: pa.DataType
    start: int
    end: int

    def make(self, rng: np.random.Generator, rows: int, first: int, time: int) -> pa.Array:
        counted = np.minimum(np.arange(rows, dtype=np.int64) + (self.start + first), self.end)
        if pa.types.is_decimal(self.kind):
            return pa.array(counted).cast(pa.decimal128(38, self.kind.scale)).cast(self.kind)
        return pa.array(counted).cast(self.kind)


@dataclass(frozen=True, slots=True, kw_only=True)
class Lists:
    """``length`` elements each; with ``entries`` the elements are (key, value) pairs."""

    elements: Values
    length: int

    def make(self, rng: np.random.Generator, rows: int, first: int, time: int) -> pa.Array:
        elements = self.elements.make(rng, rows * self.length, first * self.length, time)
        offsets = np.arange(rows + 1, dtype=np.int32) * self.length
        return pa.ListArray.from_arrays(pa.array(offsets), elements)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    names: tuple[str, ...]
    children: tuple[Values, ...]

    def make(self, rng: np.random.Generator, rows: int, first: int, time: int) -> pa.Array:
        made = [child.make(rng, rows, first, time) for child in self.children]
        return pa.StructArray.from_arrays(made, names=list(self.names))


@dataclass(frozen=True, slots=True, kw_only=True)
class WithNulls:
    """NULL in ``rate`` of the rows."""

    values: Values
    rate: float

    def make(self, rng: np.random.Generator, rows: int, first: int, time: int) -> pa.Array:
        made = self.values.make(rng, rows, first, time)
        nulls = rng.random(rows) < self.rate
        return made.take(pa.array(np.arange(rows), mask=nulls))
