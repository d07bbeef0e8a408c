"""The operators + - * / % and unary minus.

Integers wrap around and divide towards zero; a zero divisor of integers and decimals fails, floating
numbers give Infinity and NaN. Decimal results follow SQL Server's precision rules, which Spark shares,
as long as integers enter as decimals of their full width; what does not fit is NULL.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tidemill.functions.api import Argument, Resolved, ScalarFunction, SparkCall
from tidemill.functions.arrays import numeric
from tidemill.functions.arrays.api import by_value, passed_on
from tidemill.functions.coercion import as_decimal, common_type
from tidemill.functions.interval import resolve_interval, spark_interval
from tidemill.functions.sharing import share
from tidemill.functions.signatures import NUMERIC, check_count, mismatch, same_as, signature, with_aliases
from tidemill.types import logical as t
from tidemill.types.physical import spark_type

_MIN_SCALE = 6
_MAX = t.MAX_DECIMAL_PRECISION
DecimalRule = Callable[[t.DecimalType, t.DecimalType], t.DecimalType]
_TEMPORAL = (t.DateType, t.TimeType, *t.TIMESTAMP_TYPES, *t.INTERVAL_TYPES)


def _adjusted(precision: int, scale: int) -> t.DecimalType:
    """Past 38 digits the scale gives way, down to 6 digits."""
    if precision <= _MAX:
        return t.DecimalType(precision=precision, scale=scale)
    scale_kept = max(_MAX - (precision - scale), min(scale, _MIN_SCALE))
    return t.DecimalType(precision=_MAX, scale=scale_kept)


def decimal_sum(a: t.DecimalType, b: t.DecimalType) -> t.DecimalType:
    scale = max(a.scale, b.scale)
    return _adjusted(max(a.precision - a.scale, b.precision - b.scale) + scale + 1, scale)


def decimal_product(a: t.DecimalType, b: t.DecimalType) -> t.DecimalType:
    return _adjusted(a.precision + b.precision + 1, a.scale + b.scale)


def decimal_quotient(a: t.DecimalType, b: t.DecimalType) -> t.DecimalType:
    scale = max(_MIN_SCALE, a.scale + b.precision + 1)
    return _adjusted(a.precision - a.scale + b.scale + scale, scale)


def decimal_remainder(a: t.DecimalType, b: t.DecimalType) -> t.DecimalType:
    scale = max(a.scale, b.scale)
    return _adjusted(min(a.precision - a.scale, b.precision - b.scale) + scale, scale)


def _forms(name: str, arguments: tuple[Argument, ...]) -> str:
    return f"<NUMERIC> {name} <NUMERIC>"


def _numeric(name: str, rule: DecimalRule, arguments: tuple[Argument, ...]) -> Resolved:
    types = tuple(t.INT if isinstance(a.type, t.NullType) else a.type for a in arguments)
    if not all(isinstance(k, t.NUMERIC_TYPES) for k in types):
        raise mismatch(name, arguments, _forms(name, arguments))
    nullable = any(k.nullable for k in types)
    if any(isinstance(k, t.DecimalType) for k in types) and all(isinstance(k, t.EXACT_TYPES) for k in types):
        left, right = (as_decimal(k) for k in types)
        return Resolved(arg_types=(left, right), result=rule(left, right).with_nullable(nullable))
    wide = common_type(types)
    assert wide is not None
    inner = t.DOUBLE if any(isinstance(k, t.DoubleType | t.DecimalType) for k in types) else wide
    cast = tuple(inner.with_nullable(k.nullable) for k in types)
    return Resolved(arg_types=cast, result=wide.with_nullable(nullable))


def _resolver(name: str, rule: DecimalRule) -> Callable[[tuple[Argument, ...], Mapping[str, str]], Resolved]:
    def resolve(arguments: tuple[Argument, ...], _: Mapping[str, str]) -> Resolved:
        check_count(name, len(arguments), 2, 2)
        if any(isinstance(a.type, _TEMPORAL) for a in arguments):
            return resolve_interval(name, arguments)
        return _numeric(name, rule, arguments)

    return resolve


def _resolve_remainder(arguments: tuple[Argument, ...], _: Mapping[str, str]) -> Resolved:
    """Of integers the type of the divisor."""
    check_count("MOD", len(arguments), 2, 2)
    types = tuple(t.INT if isinstance(a.type, t.NullType) else a.type for a in arguments)
    if not all(isinstance(k, t.EXACT_TYPES) for k in types):
        raise mismatch("MOD", arguments, "MOD(<EXACT_NUMERIC>, <EXACT_NUMERIC>)")
    if any(isinstance(k, t.DecimalType) for k in types):
        return _numeric("MOD", decimal_remainder, arguments)
    return Resolved(arg_types=types, result=types[1].with_nullable(any(k.nullable for k in types)))


_ADDITIVE = ("+", "-")


class _Sum(str):
    """``(a + b)``: on the left of another + or - it goes without its parentheses, each of which would take
    Spark's parser deeper."""

    @property
    def inner(self) -> str:
        return self[1:-1]


def _plain(operator: str) -> Callable[[SparkCall], str]:
    def spark(call: SparkCall) -> str:
        if any(isinstance(k, _TEMPORAL) for k in call.arg_types):
            return spark_interval(operator, call)
        if operator not in _ADDITIVE:
            return _narrowed(f"({call.args[0]} {operator} {call.args[1]})", call)
        left = call.args[0]
        first = left.inner if isinstance(left, _Sum) else left
        return _narrowed(_Sum(f"({first} {operator} {call.args[1]})"), call)

    return spark


def _narrowed(text: str, call: SparkCall) -> str:
    """FLOAT op DOUBLE is computed as DOUBLE and is a FLOAT."""
    if isinstance(call.result, t.FloatType) and isinstance(call.arg_types[0], t.DoubleType):
        return f"CAST({text} AS FLOAT)"
    return text


def _divide(call: SparkCall) -> str:
    return _shared(call, _quotient)


def _remainder(call: SparkCall) -> str:
    return _shared(call, _modulus)


def _shared(call: SparkCall, spell: Callable[[SparkCall, str, str], str]) -> str:
    """Both operands are needed more than once: a chain of divisions must not double at each step."""
    return share(call.args[0], lambda a: share(call.args[1], lambda b: spell(call, a, b)))


def _quotient(call: SparkCall, a: str, b: str) -> str:
    if isinstance(call.result, t.APPROXIMATE_TYPES):
        # power(±0, -1) is ±Infinity where Spark's division by zero would be NULL.
        text = f"({a} / {b})" if _nonzero(call) else f"IF({b} = 0, {a} * power({b}, -1), {a} / {b})"
        return f"CAST({text} AS {spark_type(call.result)})"
    if isinstance(call.result, t.DecimalType):
        return _checked(call, a, b, f"({a} / {b})", "Division by zero")
    return _checked(call, a, b, f"CAST({a} div {b} AS {spark_type(call.result)})", "/ by zero")


def _modulus(call: SparkCall, a: str, b: str) -> str:
    if isinstance(call.result, t.DecimalType):
        return _checked(call, a, b, f"({a} % {b})", "Division by zero")
    return _checked(call, a, b, f"CAST({a} % {b} AS {spark_type(call.result)})", "/ by zero")


def _checked(call: SparkCall, a: str, b: str, text: str, message: str) -> str:
    if _nonzero(call):
        return text
    both = f"{b} = 0 AND {a} IS NOT NULL" if call.arg_types[0].nullable else f"{b} = 0"
    return f"CASE WHEN {both} THEN raise_error('{message}') ELSE {text} END"


def _nonzero(call: SparkCall) -> bool:
    return bool(call.literals[1])


def _negate(call: SparkCall) -> str:
    return negated(call.args[0], call.arg_types[0])


def negated(sql: str, kind: t.LogicalType) -> str:
    """``- sql``, also of decimals of more digits than Spark negates without rounding them."""
    if not isinstance(kind, t.DecimalType) or kind.precision <= _NEGATABLE_DIGITS:
        return f"(- {sql})"
    return share(
        sql,
        lambda x: (
            f"CAST(IF({x} < 0, substring(CAST({x} AS STRING), 2), concat('-', CAST({x} AS STRING)))"
            f" AS {spark_type(kind)})"
        ),
    )


_NEGATABLE_DIGITS = 34
_SIGNED = (t.YearMonthIntervalType, t.DayTimeIntervalType)
_NEGATABLE = type(NUMERIC)("<NUMERIC_OR_INTERVAL>", (*t.NUMERIC_TYPES, *_SIGNED), default=t.INT)

FUNCTIONS: tuple[ScalarFunction, ...] = (
    *(
        ScalarFunction(
            name=name,
            resolve=_resolver(name, rule),
            spark=_plain(name),
            arrays=numeric.arithmetic(name),
        )
        for name, rule in (("+", decimal_sum), ("-", decimal_sum), ("*", decimal_product))
    ),
    ScalarFunction(
        name="/", resolve=_resolver("/", decimal_quotient), spark=_divide, arrays=numeric.quotient
    ),
    *with_aliases(
        ScalarFunction(name="%", resolve=_resolve_remainder, spark=_remainder, arrays=numeric.remainder),
        "MOD",
    ),
    ScalarFunction(
        name="UNARY -",
        resolve=signature("-", _NEGATABLE, result=same_as(0)),
        spark=_negate,
        arrays=numeric.negated,
    ),
    ScalarFunction(
        name="UNARY +",
        resolve=signature("+", _NEGATABLE, result=same_as(0)),
        spark=lambda call: call.args[0],
        arrays=by_value(passed_on),
    ),
)
