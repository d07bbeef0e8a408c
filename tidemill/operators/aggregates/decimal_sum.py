"""SUM and AVG of decimals in exact 128-bit arithmetic on 64-bit limbs.

A running sum is kept as DECIMAL(38, s); once it leaves 38 digits it is NULL for good (Flink's overflow).
Limbs are summed in 32-bit halves, so no epoch of fewer than 2^31 rows can lose a carry.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Context, Decimal

import numpy as np
import pyarrow as pa

from tidemill.changelog.columns import Ints, Mask, Values, Vec, to_arrow
from tidemill.operators.aggregates.api import Aggregate, AggregateSpec, Cells, Source, State, either, no_nulls
from tidemill.operators.aggregates.count import count_of, counted
from tidemill.operators.rows.grouped import GroupedRows, WeightKey

_LOW = np.uint64(0xFFFFFFFF)
_HALF = np.uint64(32)
_TOP = 10**38 - 1
_WIDE = Context(prec=80, rounding=ROUND_HALF_UP)
_LIMIT = 1.6e38


@dataclass(frozen=True, slots=True)
class DecimalSumAccumulator:
    """Two columns: the sum (NULL: none yet or overflown) and whether it has overflown."""

    name: str
    arg: str
    scale: int
    weight_key: WeightKey

    @property
    def fields(self) -> tuple[pa.Field, ...]:
        return (
            pa.field(self.name, pa.decimal128(38, self.scale)),
            pa.field(f"{self.name} OVERFLOW", pa.bool_()),
        )

    def delta(self, rows: GroupedRows) -> Cells:
        limbs = rows.vec(self.arg).values
        weights = counted(rows, (self.arg,), self.weight_key)
        if weights is None:
            return self._total(rows, limbs, None)
        limbs = _scaled(limbs, weights)
        return self._total(rows, limbs, rows.any(weights != 0))

    def fold(self, rows: GroupedRows) -> Cells:
        vec = rows.vec(self.name)
        seen = None if vec.valid is None else rows.any(vec.valid)
        total, over = self._total(rows, no_nulls(vec).values, seen)
        before = rows.vec(self.fields[1].name)
        return total, Vec(over.values | rows.any(before.values & before.mask()))

    def merge(self, old: Cells, new: Cells) -> Cells:
        a, b = no_nulls(old[0]).values, no_nulls(new[0]).values
        low = a[:, 0] + b[:, 0]
        high = a[:, 1] + b[:, 1] + (low < a[:, 0]).astype(np.uint64)
        over = out_of_range(low, high, approximate(a) + approximate(b))
        over |= (old[1].values & old[1].mask()) | new[1].values
        return _cells(low, high, over, either(old[0], new[0]))

    def _total(self, rows: GroupedRows, limbs: Values, seen: Mask | None) -> Cells:
        low, high = _segment_sum(rows, limbs)
        rough = rows.reduce(np.add, approximate(limbs))
        return _cells(low, high, out_of_range(low, high, rough), seen)


def _cells(low: Values, high: Values, over: Mask, seen: Mask | None) -> Cells:
    values = np.stack([low, high], axis=1)
    valid = seen
    if over.any():
        values[over] = 0
        valid = ~over if seen is None else seen & ~over
    return Vec(values, valid), Vec(over)


def _scaled(limbs: Values, weights: Ints) -> Values:
    """Each 128-bit value times its weight, which is -1, 0 or 1."""
    low, high = limbs[:, 0], limbs[:, 1]
    negative = weights < 0
    low_negated = ~low + np.uint64(1)
    high_negated = ~high + (low == 0).astype(np.uint64)
    low = np.where(negative, low_negated, low)
    high = np.where(negative, high_negated, high)
    nothing = weights == 0
    return np.stack([np.where(nothing, 0, low), np.where(nothing, 0, high)], axis=1)


def _segment_sum(rows: GroupedRows, limbs: Values) -> tuple[Values, Values]:
    low, high = limbs[:, 0], limbs[:, 1]
    halves = rows.reduce(np.add, low & _LOW)
    uppers = rows.reduce(np.add, low >> _HALF) + (halves >> _HALF)
    total_low = (uppers << _HALF) | (halves & _LOW)
    return total_low, rows.reduce(np.add, high) + (uppers >> _HALF)


def approximate(limbs: Values) -> Values:
    """The values as doubles."""
    return limbs[:, 1].view(np.int64).astype(np.float64) * 2.0**64 + limbs[:, 0].astype(np.float64)


def out_of_range(low: Values, high: Values, rough: Values) -> Mask:
    """Beyond 38 digits: exactly by the 128-bit value, by ``rough`` where that may have wrapped."""
    big = np.abs(rough) > 9.9e37
    over: Mask = np.abs(rough) > _LIMIT
    for i in np.flatnonzero(big & ~over):
        value = (int(high[i].view(np.int64)) << 64) | int(low[i])
        over[i] = abs(value) > _TOP
    return over


def decimal_sum_of(spec: AggregateSpec) -> DecimalSumAccumulator:
    return DecimalSumAccumulator(
        spec.canonical("SUM"), spec.args[0], spec.arg_types[0].scale, spec.weight_key
    )


def decimal_sum(spec: AggregateSpec, source: Source, *, empty_is_zero: bool = False) -> Aggregate:
    total, number = decimal_sum_of(spec), count_of(spec)

    def result(state: State) -> pa.Array:
        vec, over = state[total.name]
        valid = vec.valid
        if source.retracts and not empty_is_zero:
            some = state[number.name][0].values != 0
            valid = some if valid is None else valid & some
        if empty_is_zero:
            vec, valid = no_nulls(vec), ~over.values
        return to_arrow(Vec(vec.values, valid), spec.result)

    return Aggregate(spec, (total, number) if source.retracts else (total,), result)


def decimal_average(spec: AggregateSpec) -> Aggregate:
    """Sum divided by count, rounded half up to the result's scale."""
    total, number = decimal_sum_of(spec), count_of(spec)

    def result(state: State) -> pa.Array:
        sums = to_arrow(state[total.name][0], pa.decimal128(38, total.scale))
        return divide(sums, state[number.name][0].values, spec.result)

    return Aggregate(spec, (total, number), result)


def divide(sums: pa.Array, counts: Ints, result: pa.Decimal128Type) -> pa.Array:
    """``sums / counts`` half up; NULL where the count is 0 or the quotient has too many digits.

    Distinct (sum, count) pairs are few compared to rows only by luck, yet Arrow's decimal division
    truncates, so the rounding is done here on 64-bit integers where everything fits, else exactly.
    """
    quick = _divide_small(sums, counts, result)
    if quick is not None:
        return quick
    quantum = Decimal(1).scaleb(-result.scale)
    limit = Decimal(10) ** (result.precision - result.scale)
    values: list[Decimal | None] = []
    for total, count in zip(sums.to_pylist(), counts.tolist(), strict=True):
        if total is None or count <= 0:
            values.append(None)
            continue
        value = _WIDE.quantize(_WIDE.divide(total, Decimal(count)), quantum)
        values.append(value if abs(value) < limit else None)
    return pa.array(values, result)


def _divide_small(sums: pa.Array, counts: Ints, result: pa.Decimal128Type) -> pa.Array | None:
    """By 64-bit integers; None when a scaled sum does not fit."""
    shift = result.scale - sums.type.scale
    if shift < 0 or shift > 17:
        return None
    limit = (2**62) // 10**shift
    valid = np.asarray(sums.is_valid()) & (counts > 0)
    limbs = np.frombuffer(sums.buffers()[1], np.int64).reshape(-1, 2)[sums.offset : sums.offset + len(sums)]
    low = np.where(valid, limbs[:, 0], 0)
    if not ((limbs[:, 1] == limbs[:, 0] >> 63) | ~valid).all() or (np.abs(low) > limit).any():
        return None
    scaled = np.abs(low) * 10**shift
    divisor = np.where(counts > 0, counts, 1)
    quotient, rest = np.divmod(scaled, divisor)
    quotient += 2 * rest >= divisor
    signed = np.where(low < 0, -quotient, quotient)
    wide = np.stack([signed.view(np.uint64), (signed >> 63).view(np.uint64)], axis=1)
    return to_arrow(Vec(wide, valid), result)
