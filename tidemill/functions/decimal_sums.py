"""SUM in Spark SQL, exact where Spark's own would leave its 38 digits on the way.

Spark's sum of DECIMAL(p, s) has p + 10 digits, at most 38, and is NULL for good once a partial sum has more.
Two ways for wider arguments:

- ``quick``: Spark's own sum, and an error (``RAN_OVER``) where it is NULL of values, for a job that can run
  again. In practice none does.
- otherwise arguments are told apart by their values: those of few digits are added as they are, the others in
  two parts, multiples of a unit and what is left of it; a division costs more than the sum. The parts are put
  together once per group. Only sums of more than 38 digits are NULL then, whatever the order of the rows.
  Cost: about three sums for one.
"""

from __future__ import annotations

from tidemill.functions.api import SparkAggregateCall, spark_aggregate
from tidemill.functions.literals import string_literal
from tidemill.types import logical as t

_SUMMABLE = 28
"""So many digits leave ten for the number of rows."""
_FEW = _SUMMABLE - 1
"""So many leave one more, for the sum of two such sums."""
_LOWER_DIGITS = 20
_LARGEST_SCALE = 18
RAN_OVER = "a sum of decimals had more than 38 digits on its way"


def needs_kernel(kind: t.LogicalType, distinct: bool) -> bool:
    """Whether a sum over ``kind`` is one that Spark SQL cannot say."""
    if not isinstance(kind, t.DecimalType) or kind.precision <= _SUMMABLE:
        return False
    return distinct or kind.scale > _LARGEST_SCALE


def sum_sql(call: SparkAggregateCall) -> str:
    """The sum, in a type that holds it."""
    (kind,), (value,) = call.arg_types, call.args
    if not isinstance(kind, t.DecimalType) or kind.precision <= _SUMMABLE:
        return spark_aggregate("sum", call, value)
    return _quick(call, value) if call.quick else _in_parts(call, kind, value)


def _quick(call: SparkAggregateCall, value: str) -> str:
    """The sum stands there once: Spark computes what stands twice in a window twice."""
    total, count = (spark_aggregate(function, call, value) for function in ("sum", "count"))
    return f"coalesce({total}, IF({count} > 0, raise_error({string_literal(RAN_OVER)}), NULL))"


def _in_parts(call: SparkAggregateCall, kind: t.DecimalType, value: str) -> str:
    digits = _LOWER_DIGITS - kind.scale
    unit = f"CAST('1E{digits}' AS DECIMAL({digits + 1},0))"
    # NULL where the value has more digits.
    small = f"CAST({value} AS DECIMAL({_FEW},{kind.scale}))"
    large = f"IF({small} IS NULL, {value}, NULL)"
    few = spark_aggregate("sum", call, small)
    upper = spark_aggregate("sum", call, f"CAST({large} div {unit} AS DECIMAL(20,0))")
    lower = spark_aggregate("sum", call, f"{large} % {unit}")
    return _put_together(few, upper, lower, unit, kind.scale)


def _put_together(few: str, upper: str, lower: str, unit: str, scale: int) -> str:
    """``upper * unit + lower + few`` as DECIMAL(38, scale), NULL if all are. Spark's own addition would
    cut digits of the scale, so the multiples and the rest, brought to one sign and the rest below a unit,
    meet as text."""
    zero = "CAST(0 AS DECIMAL(1,0))"
    multiples = f"IF({few} IS NULL AND {upper} IS NULL, NULL, coalesce({upper}, {zero}))"
    remainder = f"coalesce({lower}, {zero}) + coalesce({few}, {zero})"
    sums = f"array(named_struct('h', {multiples}, 'l', {remainder}))"
    carried = f"named_struct('h', x.h + x.l div {unit}, 'l', x.l % {unit})"
    one_sign = (
        f"CASE WHEN x.h > 0 AND x.l < 0 THEN named_struct('h', x.h - 1, 'l', x.l + {unit}) "
        f"WHEN x.h < 0 AND x.l > 0 THEN named_struct('h', x.h + 1, 'l', x.l - {unit}) "
        "ELSE named_struct('h', x.h + 0, 'l', x.l + 0) END"
    )
    fraction = ""
    if scale:
        power = f"CAST('1E{scale}' AS DECIMAL({scale + 1},0))"
        digits = f"CAST((abs(x.l) % CAST(1 AS DECIMAL(1,0))) * {power} AS DECIMAL({scale},0))"
        fraction = f", '.', lpad(CAST({digits} AS STRING), {scale}, '0')"
    whole = f"lpad(CAST(floor(abs(x.l)) AS STRING), {_LOWER_DIGITS - scale}, '0')"
    text = f"concat(IF(x.h < 0 OR x.l < 0, '-', ''), CAST(abs(x.h) AS STRING), {whole}{fraction})"
    total = f"CAST({text} AS DECIMAL(38,{scale}))"
    return f"transform(transform(transform({sums}, x -> {carried}), x -> {one_sign}), x -> {total})[0]"
