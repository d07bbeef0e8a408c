"""User functions as a user's module has them, for the tests."""

from __future__ import annotations

import datetime
import sys
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from tests.user_functions import sample_arithmetic
from tidemill import AggregateFunction, udaf, udf, udtf


@udf(result_type="BIGINT")
def count_char(text: Any, char: Any) -> Any:
    return None if text is None else text.count(char)


@udf(input_types=["STRING", "STRING"], result_type=pa.int64(), func_type="arrow")
def count_char_arrow(texts: pa.Array, chars: pa.Array) -> pa.Array:
    return pc.count_substring(texts, pattern=chars[0].as_py())


def plus(a: int, b: int) -> int:
    return sample_arithmetic.add(a, b)


def tomorrow(day: datetime.date) -> datetime.date:
    return day + datetime.timedelta(days=1)


@udf(result_type="DECIMAL(10, 2)")
def third(x: Any) -> Any:
    return Decimal(x) / 3


@udf(result_type="STRING")
def kind(x: Any) -> Any:
    return type(x).__name__


@udf(result_type="INT")
def seven() -> Any:
    return 7


@udf(result_type="BIGINT")
def fails(x: Any) -> Any:
    raise ValueError(f"no {x}")


@udf(result_type="BIGINT")
def leaves(x: Any) -> Any:
    sys.exit(x)


@udf(result_type="BIGINT")
def stops(x: Any) -> Any:
    return next(iter(()))


@udf(result_type="BIGINT")
def text_for_number(x: Any) -> Any:
    return "seven"


@udf(result_type="BIGINT", func_type="arrow")
def too_short(x: pa.Array) -> pa.Array:
    return x[1:]


@udf(result_type="NO_TYPE")
def untyped(x: Any) -> Any:
    return x


@udtf(result_types=["STRING", "INT"])
def split_words(text: Any) -> Iterator[Any]:
    for word in (text or "").split():
        yield word, len(word)


@udtf(result_types="ROW<word STRING>", func_type="arrow")
def words(texts: pa.Array) -> pa.Array:
    return pc.split_pattern(texts, " ")


@udtf(result_types=["INT", "INT"], func_type="arrow")
def pairs(numbers: pa.Array) -> pa.Array:
    """(n, 2 n) once, for n other than NULL."""
    kept = numbers.drop_null()
    values = pa.StructArray.from_arrays([kept, pc.multiply(kept, 2)], names=["a", "b"])
    ends = pc.cumulative_sum(pc.cast(numbers.is_valid(), pa.int32()))
    return pa.ListArray.from_arrays(pa.concat_arrays([pa.array([0], pa.int32()), ends]), values)


@udaf(result_type="DOUBLE", accumulator_type="ROW<total BIGINT, weight BIGINT>")
class WeightedAverage(AggregateFunction):
    """As in PyFlink's documentation."""

    def create_accumulator(self) -> Any:
        return [0, 0]

    def accumulate(self, held: Any, value: Any, weight: Any) -> None:
        if value is not None:
            held[0] += value * weight
            held[1] += weight

    def retract(self, held: Any, value: Any, weight: Any) -> None:
        if value is not None:
            held[0] -= value * weight
            held[1] -= weight

    def get_value(self, held: Any) -> Any:
        return held[0] / held[1] if held[1] else None


@udaf(
    input_types=["BIGINT"],
    result_type="BIGINT",
    accumulator_type=pa.struct([("total", pa.int64()), ("many", pa.int64())]),
    func_type="arrow",
)
class Total(AggregateFunction):
    """The sum of what is there, NULL for nothing: whole arrays at a time."""

    def create_accumulator(self) -> Any:
        return [0, 0]

    def accumulate(self, groups: pa.Array, values: pa.Array) -> pa.Array:
        table = pa.table({"g": groups, "v": values}).group_by("g", use_threads=False)
        found = table.aggregate([("v", "sum"), ("v", "count")])
        totals = found["v_sum"].combine_chunks().fill_null(0)
        return pa.StructArray.from_arrays([totals, found["v_count"].combine_chunks()], names=["t", "n"])

    def retract(self, groups: pa.Array, values: pa.Array) -> pa.Array:
        total, many = self.accumulate(groups, values).flatten()
        return pa.StructArray.from_arrays([pc.negate(total), pc.negate(many)], names=["t", "n"])

    def merge(self, left: pa.Array, right: pa.Array) -> pa.Array:
        parts = zip(left.flatten(), right.flatten(), strict=True)
        return pa.StructArray.from_arrays([pc.add(a, b) for a, b in parts], names=["t", "n"])

    def get_value(self, accumulators: pa.Array) -> pa.Array:
        total, many = accumulators.flatten()
        return pc.if_else(pc.greater(many, 0), total, None)


@udaf(result_type="STRING", accumulator_type="ARRAY<STRING>")
class Joined(AggregateFunction):
    """The values in the order in which they came; each row taken back takes its first."""

    def create_accumulator(self) -> Any:
        return []

    def accumulate(self, held: Any, value: Any) -> None:
        held.append(value)

    def retract(self, held: Any, value: Any) -> None:
        held.remove(value)

    def get_value(self, held: Any) -> Any:
        return "|".join("-" if v is None else v for v in held)


@udaf(result_type="BIGINT", accumulator_type="BIGINT")
class Largest(AggregateFunction):
    """Gives its accumulators back instead of changing them; takes no row back."""

    def create_accumulator(self) -> Any:
        return -1

    def accumulate(self, held: Any, value: Any) -> Any:
        return max(held, value)

    def get_value(self, held: Any) -> Any:
        return held
