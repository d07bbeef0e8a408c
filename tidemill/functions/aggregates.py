"""Aggregates that compute one number or pick one value: COUNT, SUM, AVG, MIN, MAX, variances, FIRST_VALUE ...

How each is computed, in batch here and in the streaming kernels alike (NULL arguments are skipped, no
argument left gives NULL unless said otherwise):

- COUNT: BIGINT NOT NULL; COUNT(a, b) counts the rows in which no argument is NULL.
- SUM: integers add in their own type and wrap; FLOAT adds as DOUBLE and is rounded once at the end;
  DECIMAL(p, s) adds exactly, a sum of more than 38 digits is NULL. $SUM0: the same, but 0 for no argument.
- AVG: integers add as BIGINT (wrapping) and divide truncating towards zero, the type stays; FLOAT and
  DOUBLE divide DOUBLE sums; DECIMAL(p, s) divides the DECIMAL(38, s) sum by the count, rounded half up
  to DECIMAL(38, max(6, s)).
- VAR_*, STDDEV_*: in DOUBLE, of integers exact. The result is cast to the argument's type (integers:
  truncated, and as Java casts doubles) or to DECIMAL(38, max(6, s)). *_SAMP of a single value is NULL.
- MIN, MAX: by the order of ``types.values``.
- FIRST_VALUE, LAST_VALUE: by arrival.
- SINGLE_VALUE: fails on a second row.

A result is NOT NULL if the argument is and the option ``GROUPED`` is set; a variance of a sample never.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tidemill.functions.api import (
    GROUPED,
    AggregateFunction,
    AggregateTranslation,
    Argument,
    Resolved,
    Resolver,
    SignatureError,
    SparkAggregateCall,
    spark_aggregate,
)
from tidemill.functions.decimal_sums import sum_sql
from tidemill.functions.sharing import share
from tidemill.functions.signatures import check_count, mismatch
from tidemill.functions.values import is_positive, marked
from tidemill.types import logical as t
from tidemill.types.physical import spark_type

ResultRule = Callable[[t.LogicalType], t.LogicalType]

_WIDE_SCALE = 6
_UNCOMPARABLE: dict[type[t.LogicalType], str] = {
    t.ArrayType: "ARRAY",
    t.MapType: "MAP",
    t.MultisetType: "MULTISET",
    t.RowType: "ROW",
    t.BinaryType: "BINARY",
    t.VarBinaryType: "VARBINARY",
    t.YearMonthIntervalType: "INTERVAL_YEAR_MONTH",
    t.DayTimeIntervalType: "INTERVAL_DAY_TIME",
}


def reject_null(arguments: tuple[Argument, ...]) -> None:
    """A bare NULL has no type, so no aggregate takes it."""
    if any(isinstance(a.type, t.NullType) for a in arguments):
        raise SignatureError("Illegal use of 'NULL'")


def grouped_nullability(
    kind: t.LogicalType, arguments: tuple[Argument, ...], options: Mapping[str, str]
) -> t.LogicalType:
    """``kind``, NOT NULL only where the first argument is and every result has an input row."""
    grouped = options.get(GROUPED) == "TRUE"
    return kind.with_nullable(arguments[0].type.nullable or not grouped)


def _same(kind: t.LogicalType) -> t.LogicalType:
    return kind


def _sum_type(kind: t.LogicalType) -> t.LogicalType:
    return t.DecimalType(precision=38, scale=kind.scale) if isinstance(kind, t.DecimalType) else kind


def _average_type(kind: t.LogicalType) -> t.LogicalType:
    if isinstance(kind, t.DecimalType):
        return t.DecimalType(precision=38, scale=max(_WIDE_SCALE, kind.scale))
    return kind


def _numeric(name: str, rule: ResultRule, nullable: bool | None = None) -> Resolver:
    """One numeric argument; ``nullable`` None: as ``grouped_nullability`` says."""

    def resolve(arguments: tuple[Argument, ...], options: Mapping[str, str]) -> Resolved:
        _check(name, arguments)
        kind = arguments[0].type
        if not isinstance(kind, t.NUMERIC_TYPES):
            raise mismatch(name, arguments, f"{name}(<NUMERIC>)")
        result = grouped_nullability(rule(kind), arguments, options)
        return Resolved(
            arg_types=(kind,), result=result if nullable is None else result.with_nullable(nullable)
        )

    return resolve


def _comparable(name: str, spoken: str) -> Resolver:
    """One argument of a type that Flink's MIN and MAX can compare."""

    def resolve(arguments: tuple[Argument, ...], options: Mapping[str, str]) -> Resolved:
        _check(name, arguments)
        kind = arguments[0].type
        refused = _UNCOMPARABLE.get(type(kind))
        if refused is not None:
            raise SignatureError(
                f"{spoken} aggregate function does not support type: ''{refused}''.\n"
                "Please re-check the data type."
            )
        return Resolved(arg_types=(kind,), result=grouped_nullability(kind, arguments, options))

    return resolve


def _any(name: str) -> Resolver:
    def resolve(arguments: tuple[Argument, ...], options: Mapping[str, str]) -> Resolved:
        _check(name, arguments)
        kind = arguments[0].type
        return Resolved(arg_types=(kind,), result=grouped_nullability(kind, arguments, options))

    return resolve


def _count(arguments: tuple[Argument, ...], _: Mapping[str, str]) -> Resolved:
    """No argument is COUNT(*)."""
    reject_null(arguments)
    return Resolved(arg_types=tuple(a.type for a in arguments), result=t.BigIntType(nullable=False))


def _approximate_count(arguments: tuple[Argument, ...], options: Mapping[str, str]) -> Resolved:
    _comparable("APPROX_COUNT_DISTINCT", "APPROX_COUNT_DISTINCT")(arguments, options)
    return Resolved(arg_types=(arguments[0].type,), result=t.BigIntType(nullable=False))


def _check(name: str, arguments: tuple[Argument, ...]) -> None:
    check_count(name, len(arguments), 1, 1)
    reject_null(arguments)


def _count_sql(call: SparkAggregateCall) -> str:
    """DISTINCT counts values that are not one, of which Spark knows two zeros too few."""
    values = tuple(map(marked, call.args, call.arg_types)) if call.distinct else call.args
    return spark_aggregate("count", call, *(values or ("1",)))


def _sum_sql(call: SparkAggregateCall) -> str:
    return f"CAST({sum_sql(call)} AS {spark_type(call.result)})"


def _sum0_sql(call: SparkAggregateCall) -> str:
    kind = spark_type(call.result)
    return f"coalesce({_sum_sql(call)}, CAST(0 AS {kind}))"


def _average_sql(call: SparkAggregateCall) -> str:
    total, count = sum_sql(call), _count_sql(call)
    kind = spark_type(call.result)
    if isinstance(call.result, t.INTEGER_TYPES):
        return f"CAST({total} div {count} AS {kind})"
    if isinstance(call.result, t.DecimalType):
        argument = call.arg_types[0]
        scale = argument.scale if isinstance(argument, t.DecimalType) else 0
        # DECIMAL(38, s) / DECIMAL(20, 0) is DECIMAL(38, max(6, s)) in Spark as in Flink.
        return f"CAST(CAST({total} AS DECIMAL(38,{scale})) / CAST({count} AS DECIMAL(20,0)) AS {kind})"
    return f"CAST({total} / {count} AS {kind})"


def _moment_sql(function: str) -> AggregateTranslation:
    """Spark's own goes from mean to mean. Of integers that is not enough: a whole number must not be cut to
    the one below for a rounding error."""

    def translate(call: SparkAggregateCall) -> str:
        kind, value = call.arg_types[0], f"CAST({call.args[0]} AS DOUBLE)"
        if not isinstance(kind, t.INTEGER_TYPES):
            return f"CAST({spark_aggregate(function, call, value)} AS {spark_type(call.result)})"
        root, _, which = function.partition("_")
        nudged = share(
            spark_aggregate(f"var_{which}", call, value), lambda v: f"({v} + least({v} * 1e-13D, 0.01D))"
        )
        moment = f"sqrt({nudged})" if root == "stddev" else nudged
        if not call.distinct:
            moment = f"coalesce({_of_sums(root == 'stddev', int(which == 'samp'), call)}, {moment})"
        return f"CAST({moment} AS {spark_type(call.result)})"

    return translate


_SQUARABLE = 2147483647
"""The variance of numbers up to it has 64 bits."""


def _of_sums(root: bool, less: int, call: SparkAggregateCall) -> str:
    """As in streaming (``operators.aggregates.variance``), exact: a sum of squares in two, of their upper and
    lower halves. NULL if numbers are too large for that."""
    value = f"CAST({call.args[0]} AS BIGINT)"
    square = f"({value} * {value})"
    total, number, high, low = (
        f"CAST({spark_aggregate(name, call, text)} AS DECIMAL(19,0))"
        for name, text in (
            ("sum", value),
            ("count", value),
            ("sum", f"shiftright({square}, 32)"),
            ("sum", f"({square} & 4294967295L)"),
        )
    )
    squares = f"({high} * CAST(4294967296 AS DECIMAL(10,0)) + {low})"
    exact = f"(({number} * {squares} - {total} * {total}) div nullif({number} * ({number} - {less}), 0))"
    if isinstance(call.arg_types[0], t.BigIntType):
        exact = f"IF({spark_aggregate('max', call, f'abs({value})')} <= {_SQUARABLE}L, {exact}, NULL)"
    return share(exact, _whole_root) if root else f"CAST({exact} AS DOUBLE)"


def _whole_root(value: str) -> str:
    """Of a whole number, cut: its double may be that of a square above it."""
    return share(
        f"CAST(sqrt(CAST({value} AS DOUBLE)) AS BIGINT)",
        lambda r: f"CAST({r} - CAST({r} * {r} > {value} AS INT) AS DOUBLE)",
    )


def _plain_sql(function: str) -> AggregateTranslation:
    return lambda call: spark_aggregate(function, call, *call.args)


def _extreme_sql(function: str) -> AggregateTranslation:
    """Of the zeros Spark takes any: where the extreme is one, the order of their signs decides."""

    def translate(call: SparkAggregateCall) -> str:
        (kind,), (value,) = call.arg_types, call.args
        plain = spark_aggregate(function, call, value)
        if not isinstance(kind, t.APPROXIMATE_TYPES):
            return plain
        signs = spark_aggregate(function, call, is_positive(value), condition=f"{value} = 0")
        # Not two literals: Spark takes 0.0 and -0.0 for one there, too, and drops the condition.
        zero = f"IF({signs}, abs({plain}), CAST('-0.0' AS {spark_type(kind)}))"
        return f"IF({plain} = 0, {zero}, {plain})"

    return translate


def _arrival_sql(by_sequence: str, any_order: str) -> AggregateTranslation:
    """DISTINCT does not change which value came first or last."""

    def translate(call: SparkAggregateCall) -> str:
        value = call.args[0]
        bag = call.of_all_rows
        if call.sequence:
            return spark_aggregate(by_sequence, bag, value, call.sequence, condition=f"{value} IS NOT NULL")
        return spark_aggregate(any_order, bag, value, "true")

    return translate


def _single_value_sql(call: SparkAggregateCall) -> str:
    rows, value = spark_aggregate("count", call.of_all_rows, "1"), spark_aggregate("first", call, *call.args)
    error = "raise_error('SingleValueAggFunction received more than one element.')"
    return f"CASE WHEN {rows} > 1 THEN {error} ELSE {value} END"


def _moment(name: str, function: str, aliases: tuple[str, ...] = ()) -> AggregateFunction:
    sample = None if name.endswith("_POP") else True
    return AggregateFunction(
        name=name, resolve=_numeric(name, _average_type, sample), spark=_moment_sql(function), aliases=aliases
    )


AGGREGATES: tuple[AggregateFunction, ...] = (
    AggregateFunction(name="COUNT", resolve=_count, spark=_count_sql),
    AggregateFunction(name="SUM", resolve=_numeric("SUM", _sum_type), spark=_sum_sql),
    AggregateFunction(
        name="$SUM0", resolve=_numeric("$SUM0", _sum_type, nullable=False), spark=_sum0_sql, aliases=("SUM0",)
    ),
    AggregateFunction(name="AVG", resolve=_numeric("AVG", _average_type), spark=_average_sql),
    AggregateFunction(name="MIN", resolve=_comparable("MIN", "Min"), spark=_extreme_sql("min")),
    AggregateFunction(name="MAX", resolve=_comparable("MAX", "Max"), spark=_extreme_sql("max")),
    _moment("STDDEV_POP", "stddev_pop"),
    _moment("STDDEV_SAMP", "stddev_samp", aliases=("STDDEV",)),
    _moment("VAR_POP", "var_pop"),
    _moment("VAR_SAMP", "var_samp", aliases=("VARIANCE",)),
    AggregateFunction(name="FIRST_VALUE", resolve=_any("FIRST_VALUE"), spark=_arrival_sql("min_by", "first")),
    AggregateFunction(name="LAST_VALUE", resolve=_any("LAST_VALUE"), spark=_arrival_sql("max_by", "last")),
    AggregateFunction(name="SINGLE_VALUE", resolve=_any("SINGLE_VALUE"), spark=_single_value_sql),
    AggregateFunction(
        name="APPROX_COUNT_DISTINCT", resolve=_approximate_count, spark=_plain_sql("approx_count_distinct")
    ),
)
