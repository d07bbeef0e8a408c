"""VAR_POP, VAR_SAMP, STDDEV_POP, STDDEV_SAMP (VARIANCE and STDDEV are the SAMP forms).

From (count, sum, sum of squares), the sums of some 106 bits: their difference is small where the mean is
large. Of whole numbers the result is exact and cut toward zero; decimals round half up to the result's scale.

With OVER Flink computes in whole numbers all the way: the square of the sum is divided by the count and cut
before it is taken from the sum of squares, so that 1 and 2 have a VAR_SAMP of 1, where GROUP BY says 0. The
option ``IN_STEPS`` asks for that. Numbers that leave the type on their way, of which Flink makes negative
variances, do not here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from decimal import Decimal
from math import isqrt
from typing import Any

import numpy as np
import pyarrow as pa

from tidemill.changelog.columns import Ints, Mask, Values, Vec, dtype_of, to_arrow
from tidemill.operators.aggregates.api import Aggregate, AggregateSpec, Source, State
from tidemill.operators.aggregates.count import count_of
from tidemill.operators.aggregates.declaration import AggregateDeclaration, Direction, FlinkPhases, Merging
from tidemill.operators.aggregates.float_sum import FloatSumAccumulator
from tidemill.operators.aggregates.pairs import Pair, added, divided, squared
from tidemill.types.decimals import rounded

VARIANCES = ("VAR_POP", "VAR_SAMP", "STDDEV_POP", "STDDEV_SAMP")
IN_STEPS = ("IN_STEPS", "TRUE")
_NOISE = 2.0**-100
"""The rounding error relative to the sum of squares; smaller differences count as zero."""


def _variance(sample: bool, root: bool) -> Callable[[AggregateSpec, Source], Aggregate]:
    def build(spec: AggregateSpec, source: Source) -> Aggregate:
        key, arg = spec.weight_key, spec.args[0]
        total = FloatSumAccumulator(spec.canonical("SUM_DOUBLE"), arg, key, source.retracts)
        squares = FloatSumAccumulator(spec.canonical("SUM_SQUARES"), arg, key, source.retracts, power=2)
        number = count_of(spec)

        def result(state: State) -> pa.Array:
            counts = state[number.name][0].values
            sums, of_squares = (a.pair(state[a.name]) for a in (total, squares))
            present = counts > int(sample)
            if pa.types.is_integer(spec.result):
                cut = IN_STEPS in spec.options
                variances = _of_integers(counts, sums, of_squares, present, sample, cut)
                return _integers(
                    [isqrt(v) for v in variances] if root else list(variances), present, spec.result
                )
            values = _spread(counts, sums, of_squares, sample)
            return as_result(np.sqrt(values) if root else values, present, spec.result)

        return Aggregate(spec, (total, squares, number), result)

    return build


def _spread(counts: Ints, sums: Pair, squares: Pair, sample: bool) -> Values:
    """The variance; a rounding error is zero."""
    n = np.where(counts > 0, counts, 1).astype(np.float64)
    divisor = np.maximum(n - 1, 1) if sample else n
    high, low = divided(squared(sums), n)
    with np.errstate(invalid="ignore", over="ignore"):
        deviations, _ = added(squares, (-high, -low))
        plain = squares[0] - sums[0] * sums[0] / n
        deviations = np.where(np.isfinite(plain), deviations, plain)
        variances: Values = np.where(deviations <= _NOISE * squares[0], 0.0, deviations) / divisor
        return variances


def _of_integers(
    counts: Ints, sums: Pair, squares: Pair, present: Mask, sample: bool, in_steps: bool
) -> Iterator[int]:
    """The variance, cut; 0 if there is none."""
    for there, n, *parts in zip(present.tolist(), counts.tolist(), *_lists(sums, squares), strict=True):
        if not there:
            yield 0
            continue
        total, square = int(parts[0]) + int(parts[1]), int(parts[2]) + int(parts[3])
        if in_steps:
            variance = (square - total * total // n) // (n - sample)
        else:
            variance = (n * square - total * total) // (n * (n - sample))
        yield max(variance, 0)


def _lists(*pairs: Pair) -> Iterator[list[float]]:
    return (part.tolist() for pair in pairs for part in pair)


def _integers(values: list[int], present: Mask, kind: pa.DataType) -> pa.Array:
    """As Java casts doubles: held at the ends of INT or BIGINT, of which smaller types are the last bytes."""
    ends: Any = np.iinfo(np.int64 if pa.types.is_int64(kind) else np.int32)
    clamped = np.array([min(v, ends.max) for v in values], np.int64)
    return to_arrow(Vec(clamped.astype(dtype_of(kind)), present), kind)


def as_result(values: Values, present: Mask, kind: pa.DataType) -> pa.Array:
    if pa.types.is_floating(kind):
        return to_arrow(Vec(values, present), kind)
    return pa.array([_decimal(v, kind) for v in np.where(present, values, np.nan).tolist()], kind)


def _decimal(value: float, kind: Any) -> Decimal | None:
    if not np.isfinite(value):
        return None
    decimal = rounded(Decimal(repr(value)), kind.scale)
    return decimal if len(decimal.as_tuple().digits) <= kind.precision else None


def _declaration(name: str, *, sample: bool, root: bool) -> AggregateDeclaration:
    return AggregateDeclaration(
        name=name,
        build=_variance(sample=sample, root=root),
        ordered=False,
        merging=Merging.NEVER,
        parts=(),
        merged_by=name,
        over_no_rows=None,
        ignores_distinct=False,
        counts_null=False,
        gives_row_value=False,
        gives_only_argument=False,
        direction=Direction.ANY,
        widens=True,
        phases=FlinkPhases(
            two_phase=True,
            split=False,
            bucketed=False,
            fixed_width=False,
            buffers=(name.lower(),),
            retract_buffers=(name.lower(),),
        ),
    )


DECLARATIONS: tuple[AggregateDeclaration, ...] = (
    _declaration("VAR_POP", sample=False, root=False),
    _declaration("VAR_SAMP", sample=True, root=False),
    _declaration("STDDEV_POP", sample=False, root=True),
    _declaration("STDDEV_SAMP", sample=True, root=True),
)
