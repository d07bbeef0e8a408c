"""SUM, $SUM0 and AVG over integers and floats (decimals: ``decimal_sum``).

Integers add up in 64 bits and wrap when the result is cut to its type, which is what adding in the
type itself gives. Over retracting input a count says whether any value is left; over append-only
input the sum's own NULL does.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from tidemill.changelog.columns import Mask, Values, Vec, dtype_of, to_arrow
from tidemill.operators.aggregates.api import Aggregate, AggregateSpec, Cells, Source, State, either, no_nulls
from tidemill.operators.aggregates.count import CountAccumulator, count_of, counted
from tidemill.operators.aggregates.decimal_sum import approximate, decimal_average, decimal_sum
from tidemill.operators.rows.grouped import GroupedRows, WeightKey


@dataclass(frozen=True, slots=True)
class SumAccumulator:
    """``power`` 2 sums squares (in doubles). NULL while no value was seen (never goes back)."""

    name: str
    arg: str
    kind: pa.DataType
    weight_key: WeightKey
    power: int = 1

    @property
    def fields(self) -> tuple[pa.Field, ...]:
        return (pa.field(self.name, self.kind),)

    def delta(self, rows: GroupedRows) -> Cells:
        values = _numbers(rows, self.arg).astype(dtype_of(self.kind), copy=False)
        weights = counted(rows, (self.arg,), self.weight_key)
        if self.power == 2:
            values = values * values
        if weights is None:
            return (Vec(rows.reduce(np.add, values)),)
        counts = weights != 0
        # A masked product instead of a plain one: 0 * NaN is not 0.
        scaled = np.multiply(values, weights.astype(values.dtype), out=np.zeros_like(values), where=counts)
        return (Vec(rows.reduce(np.add, scaled), rows.any(counts)),)

    def fold(self, rows: GroupedRows) -> Cells:
        vec = rows.vec(self.name)
        sums = rows.reduce(np.add, no_nulls(vec).values)
        seen = None if vec.valid is None else rows.any(vec.valid)
        return (Vec(sums, seen),)

    def merge(self, old: Cells, new: Cells) -> Cells:
        return (Vec(no_nulls(old[0]).values + no_nulls(new[0]).values, either(old[0], new[0])),)


def _numbers(rows: GroupedRows, arg: str) -> Values:
    """The argument's values; decimals as doubles."""
    values = rows.vec(arg).values
    if values.ndim == 1:
        return values
    low, high = values[:, 0].view(np.int64), values[:, 1].view(np.int64)
    small = high == low >> 63
    scale = rows.table.schema.field(arg).type.scale
    doubles: Values = np.where(small, low.astype(np.float64), approximate(values)) / 10.0**scale
    return doubles


def sum_kind(arg: pa.DataType) -> pa.DataType:
    """The type in which values of ``arg`` add up."""
    return arg if pa.types.is_floating(arg) else pa.int64()


def sum_of(spec: AggregateSpec) -> SumAccumulator:
    return SumAccumulator(spec.canonical("SUM"), spec.args[0], sum_kind(spec.arg_types[0]), spec.weight_key)


def sum_(spec: AggregateSpec, source: Source) -> Aggregate:
    if pa.types.is_decimal(spec.arg_types[0]):
        return decimal_sum(spec, source)
    total = sum_of(spec)
    needed = (total, count_of(spec)) if source.retracts else (total,)

    def result(state: State) -> pa.Array:
        vec = state[total.name][0]
        return to_arrow(Vec(vec.values, _present(state, spec, source, vec)), spec.result)

    return Aggregate(spec, needed, result)


def sum0(spec: AggregateSpec, source: Source) -> Aggregate:
    if pa.types.is_decimal(spec.arg_types[0]):
        return decimal_sum(spec, source, empty_is_zero=True)
    total = sum_of(spec)
    return Aggregate(spec, (total,), lambda state: to_arrow(no_nulls(state[total.name][0]), spec.result))


def average(spec: AggregateSpec, source: Source) -> Aggregate:
    """Integers truncate toward zero; the sum is not cut to the argument's type first."""
    if pa.types.is_decimal(spec.arg_types[0]):
        return decimal_average(spec)
    total, number = _double_sum(spec), count_of(spec)

    def result(state: State) -> pa.Array:
        sums, counts = state[total.name][0].values, state[number.name][0].values
        present = counts > 0
        divisor = np.where(present, counts, 1)
        if sums.dtype.kind == "f":
            return to_arrow(Vec(sums / divisor, present), spec.result)
        quotient = np.abs(sums) // divisor
        return to_arrow(Vec(np.where(sums < 0, -quotient, quotient), present), spec.result)

    return Aggregate(spec, (total, number), result)


def _double_sum(spec: AggregateSpec) -> SumAccumulator:
    """AVG adds floats in doubles, integers in 64 bits, as Flink does."""
    kind = pa.float64() if pa.types.is_floating(spec.arg_types[0]) else pa.int64()
    name = "SUM" if kind == sum_kind(spec.arg_types[0]) else "SUM_DOUBLE"
    return SumAccumulator(spec.canonical(name), spec.args[0], kind, spec.weight_key)


def _present(state: State, spec: AggregateSpec, source: Source, vec: Vec) -> Mask | None:
    if not source.retracts:
        return vec.valid
    number: CountAccumulator = count_of(spec)
    present: Mask = state[number.name][0].values != 0
    return present
