"""Sums of FLOAT and DOUBLE that depend neither on the order of rows nor on the cut of epochs.

A sum is stored as two doubles: its value and the rounding residue (about 106 bits). So a retraction restores
the sum before the value was added. NaNs and infinities are counted, so they can be retracted, too; over
append-only input their sum is one double. Within an epoch values are split into multiples of a unit, which
add without rounding (Rump, Ogita, Oishi: Accurate floating-point summation). Cost: a dozen passes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from tidemill.changelog.columns import Ints, Mask, Values, Vec
from tidemill.operators.aggregates.api import Cells, either_valid, no_nulls
from tidemill.operators.aggregates.count import count_weights
from tidemill.operators.aggregates.pairs import Pair, added, product
from tidemill.operators.rows.grouped import GroupedRows, WeightKey

_HUGE = 960
"""Values beyond 2^_HUGE are added as they are: splitting them would leave the range of doubles."""
_SPECIALS = ("NAN", "+INFINITY", "-INFINITY")


@dataclass(frozen=True, slots=True)
class FloatSumAccumulator:
    """``power`` 2 sums squares. The value is NULL until a value came; it never becomes NULL again.

    ``retracts``: infinities and NaNs are counted; otherwise only their sum is stored.
    """

    name: str
    arg: str
    weight_key: WeightKey
    retracts: bool
    power: int = 1

    @property
    def fields(self) -> tuple[pa.Field, ...]:
        names = [f"{self.name} {special}" for special in (_SPECIALS if self.retracts else ("SPECIAL",))]
        kind = pa.int64() if self.retracts else pa.float64()
        return (
            pa.field(self.name, pa.float64()),
            pa.field(f"{self.name} REST", pa.float64()),
            *(pa.field(name, kind) for name in names),
        )

    def delta(self, rows: GroupedRows) -> Cells:
        values, left = doubles(rows, self.arg), None
        weights = count_weights(rows, (self.arg,), self.weight_key)
        if self.power == 2:
            values, left = product(values, values)
        has_value = None
        if weights is not None:
            values = np.where(weights == 0, 0.0, values)
            has_value = rows.any(weights != 0)
        finite = np.isfinite(values)
        special = self._special(rows, values, finite, weights)
        # A sum of only -0.0 is 0.0.
        plain = np.where(finite, values, 0.0) + 0.0
        if weights is not None:
            plain = plain * weights
        total, residue = _summed(rows, plain)
        if left is not None:
            left = np.where(finite, left, 0.0) if weights is None else np.where(finite, left * weights, 0.0)
            total, residue = added((total, residue), _summed(rows, left))
        return Vec(total, has_value), Vec(residue), *special

    def fold(self, rows: GroupedRows) -> Cells:
        names = [f.name for f in self.fields]
        vec = rows.vec(names[0])
        has_value = None if vec.valid is None else rows.any(vec.valid)
        total = _summed(rows, no_nulls(vec).values)
        residue = _summed(rows, no_nulls(rows.vec(names[1])).values)
        high, low = added(total, residue)
        with np.errstate(invalid="ignore"):
            specials = (Vec(rows.reduce(np.add, no_nulls(rows.vec(name)).values)) for name in names[2:])
            return Vec(high, has_value), Vec(low), *specials

    def merge(self, old: Cells, new: Cells) -> Cells:
        a, b = ([no_nulls(cell).values for cell in cells] for cells in (old, new))
        high, low = added((a[0], a[1]), (b[0], b[1]))
        with np.errstate(invalid="ignore"):
            specials = (Vec(x + y) for x, y in zip(a[2:], b[2:], strict=True))
            return Vec(high, either_valid(old[0], new[0])), Vec(low), *specials

    def total(self, cells: Cells) -> Values:
        """The sums as doubles; undefined for groups without values."""
        high, specials = cells[0].values, [no_nulls(cell).values for cell in cells[2:]]
        if not self.retracts:
            with np.errstate(invalid="ignore"):
                total: Values = high + specials[0]
            return total
        missing, above, below = (count > 0 for count in specials)
        infinite = np.where(above, np.where(below, np.nan, np.inf), np.where(below, -np.inf, high))
        return np.where(missing, np.nan, infinite)

    def pair(self, cells: Cells) -> Pair:
        """As ``total``, with the rounding residue."""
        return self.total(cells), no_nulls(cells[1]).values

    def _special(
        self, rows: GroupedRows, values: Values, finite: Mask, weights: Ints | None
    ) -> tuple[Vec, ...]:
        kind = np.int64 if self.retracts else np.float64
        if finite.all():
            size = len(values) if rows.running else rows.groups.count
            return (Vec(np.zeros(size, kind)),) * (len(self.fields) - 2)
        if not self.retracts:
            with np.errstate(invalid="ignore"):
                return (Vec(rows.reduce(np.add, np.where(finite, 0.0, values))),)
        each = np.ones(len(values), np.int64) if weights is None else weights
        marks = (np.isnan(values), values == np.inf, values == -np.inf)
        return tuple(Vec(rows.reduce(np.add, np.where(mark, each, 0))) for mark in marks)


def doubles(rows: GroupedRows, arg: str) -> Values:
    """The argument's values as doubles."""
    values = rows.vec(arg).values
    if values.ndim == 1:
        return values.astype(np.float64, copy=False)
    low, high = values[:, 0].view(np.int64), values[:, 1].view(np.int64)
    small = high == low >> 63
    scale = rows.table.schema.field(arg).type.scale
    wide = high.astype(np.float64) * 2.0**64 + values[:, 0].astype(np.float64)
    unscaled: Values = np.where(small, low.astype(np.float64), wide) / 10.0**scale
    return unscaled


def _summed(rows: GroupedRows, values: Values) -> Pair:
    """The sums of finite values per group, or up to each row."""
    if rows.running:
        return _running(values, rows.groups.starts)
    sizes, starts = rows.groups.sizes, rows.groups.starts
    if len(starts) == len(values):
        return values, np.zeros(len(values))
    magnitude = np.maximum.reduceat(np.abs(values), starts)
    if magnitude.max(initial=0.0) > 2.0**_HUGE:
        with np.errstate(over="ignore"):
            return np.add.reduceat(values, starts), np.zeros(len(starts))
    # Sums of fewer than 2^bits multiples of the unit's last place are exact, in any order.
    bits = int(sizes.max() + 2).bit_length()
    unit = np.ldexp(1.0, np.frexp(magnitude)[1] + bits)
    upper, values = _split(values, np.repeat(unit, sizes), starts)
    middle, values = _split(values, np.repeat(np.ldexp(unit, bits - 53), sizes), starts)
    return added((upper, np.zeros(len(starts))), (middle, np.add.reduceat(values, starts)))


def _split(values: Values, unit: Values, starts: Ints) -> Pair:
    """The exact sums of the parts that are multiples of the units' last places, and the other parts."""
    parts = (unit + values) - unit
    return np.add.reduceat(parts, starts), values - parts


def _running(values: Values, starts: Ints) -> Pair:
    """The sums up to each row, by doubling as in ``segmented_accumulate``."""
    sizes = np.diff(starts, append=len(values))
    position = np.arange(len(values)) - np.repeat(starts, sizes)
    high, low = values.copy(), np.zeros(len(values))
    step, longest = 1, int(sizes.max(initial=0))
    while step < longest:
        inside = np.flatnonzero(position >= step)
        before = inside - step
        high[inside], low[inside] = added((high[before], low[before]), (high[inside], low[inside]))
        step *= 2
    return high, low
