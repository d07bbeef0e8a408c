"""SUM, $SUM0 and AVG over integers and, by ``float_sum`` and ``decimal_sum``, over other numbers.

Integers add up in 64 bits and wrap when the result is cut to its type, which is what adding in the
type itself gives. Over retracting input a count says whether any value is left; over append-only
input the sum's own NULL does.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from tidemill.changelog.columns import Mask, Values, Vec, to_arrow
from tidemill.operators.aggregates.api import (
    Aggregate,
    AggregateSpec,
    Cells,
    Source,
    State,
    either_valid,
    no_nulls,
)
from tidemill.operators.aggregates.count import CountAccumulator, count_of, count_weights
from tidemill.operators.aggregates.decimal_sum import decimal_average, decimal_sum
from tidemill.operators.aggregates.declaration import AggregateDeclaration, Direction, FlinkPhases, Merging
from tidemill.operators.aggregates.float_sum import FloatSumAccumulator
from tidemill.operators.rows.grouped import GroupedRows, WeightKey


@dataclass(frozen=True, slots=True)
class SumAccumulator:
    """NULL until a value came; it never becomes NULL again."""

    name: str
    arg: str
    weight_key: WeightKey

    @property
    def fields(self) -> tuple[pa.Field, ...]:
        return (pa.field(self.name, pa.int64()),)

    def delta(self, rows: GroupedRows) -> Cells:
        values = rows.vec(self.arg).values.astype(np.int64, copy=False)
        weights = count_weights(rows, (self.arg,), self.weight_key)
        if weights is None:
            return (Vec(rows.reduce(np.add, values)),)
        return (Vec(rows.reduce(np.add, values * weights), rows.any(weights != 0)),)

    def fold(self, rows: GroupedRows) -> Cells:
        vec = rows.vec(self.name)
        sums = rows.reduce(np.add, no_nulls(vec).values)
        has_value = None if vec.valid is None else rows.any(vec.valid)
        return (Vec(sums, has_value),)

    def merge(self, old: Cells, new: Cells) -> Cells:
        return (Vec(no_nulls(old[0]).values + no_nulls(new[0]).values, either_valid(old[0], new[0])),)


def sum_of(spec: AggregateSpec, source: Source) -> SumAccumulator | FloatSumAccumulator:
    """Integers add up in 64 bits, floats in pairs of doubles: SUM and AVG share it."""
    name, key = spec.canonical("SUM"), spec.weight_key
    if pa.types.is_floating(spec.arg_types[0]):
        return FloatSumAccumulator(name, spec.args[0], key, source.retracts)
    return SumAccumulator(name, spec.args[0], key)


def sum_(spec: AggregateSpec, source: Source) -> Aggregate:
    if pa.types.is_decimal(spec.arg_types[0]):
        return decimal_sum(spec, source)
    total = sum_of(spec, source)
    needed = (total, count_of(spec)) if source.retracts else (total,)

    def result(state: State) -> pa.Array:
        cells = state[total.name]
        return _as_result(_totals(total, cells), _present(state, spec, source, cells[0]), spec.result)

    return Aggregate(spec, needed, result)


def sum0(spec: AggregateSpec, source: Source) -> Aggregate:
    if pa.types.is_decimal(spec.arg_types[0]):
        return decimal_sum(spec, source, empty_is_zero=True)
    total = sum_of(spec, source)

    def result(state: State) -> pa.Array:
        cells = state[total.name]
        sums = no_nulls(Vec(_totals(total, cells), cells[0].valid)).values
        return _as_result(sums, None, spec.result)

    return Aggregate(spec, (total,), result)


def average(spec: AggregateSpec, source: Source) -> Aggregate:
    """Integers truncate toward zero; the sum is not cut to the argument's type first."""
    if pa.types.is_decimal(spec.arg_types[0]):
        return decimal_average(spec)
    total, number = sum_of(spec, source), count_of(spec)

    def result(state: State) -> pa.Array:
        sums, counts = _totals(total, state[total.name]), state[number.name][0].values
        present = counts > 0
        divisor = np.where(present, counts, 1)
        if sums.dtype.kind == "f":
            return _as_result(sums / divisor, present, spec.result)
        quotient = sums // divisor
        quotient += (sums < 0) & (quotient * divisor != sums)
        return to_arrow(Vec(quotient, present), spec.result)

    return Aggregate(spec, (total, number), result)


def _totals(total: SumAccumulator | FloatSumAccumulator, cells: Cells) -> Values:
    """The sums; undefined for groups without values."""
    if isinstance(total, FloatSumAccumulator):
        return total.total(cells)
    sums: Values = cells[0].values
    return sums


def _as_result(values: Values, present: Mask | None, kind: pa.DataType) -> pa.Array:
    """Cut to the result's type: integers wrap, a FLOAT is rounded once."""
    with np.errstate(over="ignore"):
        return to_arrow(Vec(values, present), kind)


def _present(state: State, spec: AggregateSpec, source: Source, vec: Vec) -> Mask | None:
    if not source.retracts:
        return vec.valid
    number: CountAccumulator = count_of(spec)
    present: Mask = state[number.name][0].values != 0
    return present


DECLARATIONS: tuple[AggregateDeclaration, ...] = (
    AggregateDeclaration(
        name="SUM",
        build=sum_,
        ordered=False,
        merging=Merging.IF_EXACT,
        parts=(),
        merged_by="SUM",
        over_no_rows=None,
        ignores_distinct=False,
        counts_null=False,
        gives_row_value=False,
        gives_only_argument=True,
        direction=Direction.UP_IF_POSITIVE,
        widens=True,
        phases=FlinkPhases(
            two_phase=True,
            split=True,
            bucketed=False,
            fixed_width=True,
            buffers=("sum",),
            retract_buffers=("sum", "count"),
        ),
    ),
    AggregateDeclaration(
        name="$SUM0",
        build=sum0,
        ordered=False,
        merging=Merging.IF_EXACT,
        parts=(),
        merged_by="$SUM0",
        over_no_rows=0,
        ignores_distinct=False,
        counts_null=False,
        gives_row_value=False,
        gives_only_argument=False,
        direction=Direction.ANY,
        widens=True,
        phases=FlinkPhases(
            two_phase=True,
            split=True,
            bucketed=False,
            fixed_width=True,
            buffers=("sum",),
            retract_buffers=("sum",),
        ),
    ),
    AggregateDeclaration(
        name="AVG",
        build=average,
        ordered=False,
        merging=Merging.IF_EXACT,
        parts=("$SUM0", "COUNT"),
        merged_by="AVG",
        over_no_rows=None,
        ignores_distinct=False,
        counts_null=False,
        gives_row_value=False,
        gives_only_argument=False,
        direction=Direction.ANY,
        widens=True,
        phases=FlinkPhases(
            two_phase=True,
            split=True,
            bucketed=False,
            fixed_width=True,
            buffers=("sum", "count"),
            retract_buffers=("sum", "count"),
        ),
    ),
)
