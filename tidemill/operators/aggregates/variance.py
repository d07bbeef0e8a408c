"""VAR_POP, VAR_SAMP, STDDEV_POP, STDDEV_SAMP (VARIANCE and STDDEV are the SAMP forms).

From (count, sum, sum of squares) in doubles, as Flink's expansion does; integer results are cut toward
zero and held at the type's bounds, decimals round half up to the result's scale.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa

from tidemill.changelog.columns import Ints, Mask, Values, Vec, dtype_of, to_arrow
from tidemill.operators.aggregates.api import Aggregate, AggregateSpec, Source, State
from tidemill.operators.aggregates.count import count_of
from tidemill.operators.aggregates.float_sum import FloatSumAccumulator
from tidemill.types.decimals import rounded


def _variance(sample: bool, root: bool) -> Callable[[AggregateSpec, Source], Aggregate]:
    def build(spec: AggregateSpec, source: Source) -> Aggregate:
        key, arg = spec.weight_key, spec.args[0]
        total = FloatSumAccumulator(spec.canonical("SUM_DOUBLE"), arg, key, source.retracts)
        squares = FloatSumAccumulator(spec.canonical("SUM_SQUARES"), arg, key, source.retracts, power=2)
        number = count_of(spec)

        def result(state: State) -> pa.Array:
            counts = state[number.name][0].values
            sums, of_squares = (a.total(state[a.name]) for a in (total, squares))
            values = _spread(counts, sums, of_squares, sample)
            return as_result(np.sqrt(values) if root else values, counts > int(sample), spec.result)

        return Aggregate(spec, (total, squares, number), result)

    return build


def _spread(counts: Ints, sums: Values, squares: Values, sample: bool) -> Values:
    """The variance; a rounding error below zero is zero."""
    n = np.where(counts > 0, counts, 1)
    divisor = np.maximum(n - 1, 1) if sample else n
    with np.errstate(invalid="ignore", over="ignore"):
        deviations: Values = squares - sums * sums / n
        return np.where(deviations < 0, 0.0, deviations) / divisor


def as_result(values: Values, present: Mask, kind: pa.DataType) -> pa.Array:
    """Doubles as ``kind``: NaN to an integer is 0 and out of range the bound, as Java casts."""
    if pa.types.is_floating(kind):
        return to_arrow(Vec(values, present), kind)
    if pa.types.is_decimal(kind):
        return pa.array([_decimal(v, kind) for v in np.where(present, values, np.nan).tolist()], kind)
    dtype = dtype_of(kind)
    bounds: Any = np.iinfo(dtype)
    finite = np.where(np.isnan(values), 0.0, values)
    low, high = finite <= float(bounds.min), finite >= float(bounds.max)
    cut = np.where(low | high, 0, finite).astype(np.int64)
    clamped = np.where(low, bounds.min, np.where(high, bounds.max, cut))
    return to_arrow(Vec(clamped, present), kind)


def _decimal(value: float, kind: Any) -> Decimal | None:
    if not np.isfinite(value):
        return None
    found = rounded(Decimal(repr(value)), kind.scale)
    return found if len(found.as_tuple().digits) <= kind.precision else None


var_pop = _variance(sample=False, root=False)
var_samp = _variance(sample=True, root=False)
stddev_pop = _variance(sample=False, root=True)
stddev_samp = _variance(sample=True, root=True)
