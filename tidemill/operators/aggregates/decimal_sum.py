"""SUM and AVG of decimals in exact integer arithmetic on 64-bit limbs.

A running sum is stored as a DECIMAL(38, s) and a number of whole 10^38 units beyond it (``EXCESS``, 0 for
sums in range). The result is NULL only while the sum has more than 38 digits. So it depends neither on the
order of rows nor on the cut of epochs. Limbs are summed in 32-bit quarters, so an epoch of fewer than 2^31
rows cannot lose a carry.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal

import numpy as np
import pyarrow as pa

from tidemill.changelog.columns import Ints, Mask, Values, Vec, to_arrow
from tidemill.operators.aggregates.api import (
    Aggregate,
    AggregateSpec,
    Cells,
    Source,
    State,
    either_valid,
    no_nulls,
)
from tidemill.operators.aggregates.count import count_of, count_weights
from tidemill.operators.rows.grouped import GroupedRows, WeightKey
from tidemill.state.layout import DIGITS, EXCESS
from tidemill.types.decimals import WIDE, rounded

_LOW = np.uint64(0xFFFFFFFF)
_HALF = np.uint64(32)
_UNIT: int = 10**DIGITS
_LIMB = (1 << 64) - 1
_SAFE = _UNIT >> 64
"""A value whose upper limb lies strictly within +-_SAFE has at most 38 digits."""


@dataclass(frozen=True, slots=True)
class DecimalSumAccumulator:
    """Two columns: the sum (NULL while no value was seen) and its excess, both of the sum's sign."""

    name: str
    arg: str
    scale: int
    weight_key: WeightKey

    @property
    def fields(self) -> tuple[pa.Field, ...]:
        return (
            pa.field(self.name, pa.decimal128(38, self.scale)),
            pa.field(self.name + EXCESS, pa.int64()),
        )

    def delta(self, rows: GroupedRows) -> Cells:
        limbs = rows.vec(self.arg).values
        weights = count_weights(rows, (self.arg,), self.weight_key)
        if weights is None:
            return _totals(rows, limbs, None)
        return _totals(rows, _scaled(limbs, weights), rows.any(weights != 0))

    def fold(self, rows: GroupedRows) -> Cells:
        vec, excess = rows.vec(self.name), no_nulls(rows.vec(self.fields[1].name)).values
        has_value = None if vec.valid is None else rows.any(vec.valid)
        return _totals(rows, no_nulls(vec).values, has_value, rows.reduce(np.add, excess))

    def merge(self, old: Cells, new: Cells) -> Cells:
        a, b = no_nulls(old[0]).values, no_nulls(new[0]).values
        low = a[:, 0] + b[:, 0]
        high = a[:, 1] + b[:, 1] + (low < a[:, 0]).astype(np.uint64)
        excess = no_nulls(old[1]).values + no_nulls(new[1]).values
        # If the sum of two values of 38 digits wraps, its upper limb is large, too.
        suspects = ~_within(high) | (excess != 0)

        def exact(i: int) -> int:
            return _integer(a[i]) + _integer(b[i]) + int(excess[i]) * _UNIT

        return _cells(low, high, suspects, exact, either_valid(old[0], new[0]))


def _totals(rows: GroupedRows, limbs: Values, has_value: Mask | None, excess: Ints | None = None) -> Cells:
    """The sums of each group, from the sums of 32-bit quarters, and of ``excess`` units."""
    low, high = limbs[:, 0], limbs[:, 1]
    first = rows.reduce(np.add, low & _LOW)
    second = rows.reduce(np.add, low >> _HALF) + (first >> _HALF)
    third = rows.reduce(np.add, high & _LOW) + (second >> _HALF)
    fourth = rows.reduce(np.add, high.view(np.int64) >> 32) + (third >> _HALF).view(np.int64)
    total_low = (second << _HALF) | (first & _LOW)
    total_high = (fourth.view(np.uint64) << _HALF) | (third & _LOW)
    suspects = ~_within(total_high) | (fourth >> 31 != fourth >> 63)
    if excess is not None:
        suspects |= excess != 0

    def exact(i: int) -> int:
        units = 0 if excess is None else int(excess[i]) * _UNIT
        return (int(fourth[i]) << 96) + (int(third[i] & _LOW) << 64) + int(total_low[i]) + units

    return _cells(total_low, total_high, suspects, exact, has_value)


def _cells(
    low: Values, high: Values, suspects: Mask, exact: Callable[[int], int], has_value: Mask | None
) -> Cells:
    """The two columns. Sums that may be out of range are computed in Python's integers, row by row."""
    excess = np.zeros(len(low), np.int64)
    for i in np.flatnonzero(suspects).tolist():
        total = exact(i)
        units, remainder = divmod(abs(total), _UNIT)
        signed = remainder if total >= 0 else -remainder
        excess[i] = units if total >= 0 else -units
        low[i], high[i] = signed & _LIMB, (signed >> 64) & _LIMB
    return Vec(np.stack([low, high], axis=1), has_value), Vec(excess)


def _within(high: Values) -> Mask:
    """The values whose upper limb proves that they have at most 38 digits."""
    signed = high.view(np.int64)
    return (signed < _SAFE) & (signed >= -_SAFE)


def _integer(limbs: Values) -> int:
    return (int(limbs[1].view(np.int64)) << 64) | int(limbs[0])


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


def decimal_sum_of(spec: AggregateSpec) -> DecimalSumAccumulator:
    return DecimalSumAccumulator(
        spec.canonical("SUM"), spec.args[0], spec.arg_types[0].scale, spec.weight_key
    )


def decimal_sum(spec: AggregateSpec, source: Source, *, empty_is_zero: bool = False) -> Aggregate:
    total, number = decimal_sum_of(spec), count_of(spec)

    def result(state: State) -> pa.Array:
        vec, fits = _in_range(state[total.name])
        if empty_is_zero:
            return to_arrow(Vec(no_nulls(vec).values, fits), spec.result)
        some = state[number.name][0].values != 0 if source.retracts else vec.valid
        return to_arrow(Vec(vec.values, fits if some is None else fits & some), spec.result)

    return Aggregate(spec, (total, number) if source.retracts else (total,), result)


def _in_range(cells: Cells) -> tuple[Vec, Mask]:
    """The sum, and where it has at most 38 digits."""
    total, excess = cells
    return total, no_nulls(excess).values == 0


def decimal_average(spec: AggregateSpec) -> Aggregate:
    """Sum divided by count, rounded half up to the result's scale."""
    total, number = decimal_sum_of(spec), count_of(spec)

    def result(state: State) -> pa.Array:
        vec, fits = _in_range(state[total.name])
        sums = to_arrow(Vec(vec.values, fits & vec.mask()), pa.decimal128(38, total.scale))
        return divide(sums, state[number.name][0].values, spec.result)

    return Aggregate(spec, (total, number), result)


def divide(sums: pa.Array, counts: Ints, result: pa.Decimal128Type) -> pa.Array:
    """``sums / counts`` half up; NULL if the count is 0 or the quotient has too many digits.

    Distinct (sum, count) pairs are few compared to rows only by luck, yet Arrow's decimal division
    truncates, so the rounding is done here on 64-bit integers where everything fits, else exactly.
    """
    quick = _divide_small(sums, counts, result)
    if quick is not None:
        return quick
    limit = Decimal(10) ** (result.precision - result.scale)
    values: list[Decimal | None] = []
    for total, count in zip(sums.to_pylist(), counts.tolist(), strict=True):
        if total is None or count <= 0:
            values.append(None)
            continue
        value = rounded(WIDE.divide(total, Decimal(count)), result.scale)
        values.append(value if value.copy_abs() < limit else None)
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
    if not ((limbs[:, 1] == limbs[:, 0] >> 63) | ~valid).all() or (low > limit).any() or (low < -limit).any():
        return None
    scaled = np.abs(low) * 10**shift
    divisor = np.where(counts > 0, counts, 1)
    quotient, remainder = np.divmod(scaled, divisor)
    quotient += 2 * remainder >= divisor
    signed = np.where(low < 0, -quotient, quotient)
    wide = np.stack([signed.view(np.uint64), (signed >> 63).view(np.uint64)], axis=1)
    return to_arrow(Vec(wide, valid), result)
