"""Numeric functions: rounding, logarithms, powers, trigonometry, random numbers.

Outside a function's domain the result is NaN or an infinity as in Java, where Spark would give NULL.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tidemill.errors import NotSupportedError
from tidemill.functions.api import Argument, Resolved, Resolver, ScalarFunction, SparkCall
from tidemill.functions.arithmetic import negated
from tidemill.functions.arrays import numeric
from tidemill.functions.arrays.api import Entry, by_value
from tidemill.functions.sharing import share
from tidemill.functions.signatures import (
    AS_BIGINT,
    AS_DOUBLE,
    AS_INT,
    NUMERIC,
    check_count,
    fixed,
    mismatch,
    not_null,
    overloaded,
    same_as,
    signature,
)
from tidemill.types import logical as t
from tidemill.types.physical import spark_type

_NAN = "CAST('NaN' AS DOUBLE)"
_NEGATIVE_INFINITY = "CAST('-Infinity' AS DOUBLE)"
_EXACT_DOUBLE = 2**53
_DIGITS = range(-20, 21)


def ieee_quotient(a: str, b: str) -> str:
    """DOUBLE division where a zero divisor gives an infinity or NaN."""
    return share(b, lambda d: f"IF({d} = 0, {a} * power({d}, -1), {a} / {d})")


def _logarithm(function: str, sql: str) -> str:
    return share(
        sql,
        lambda x: (
            f"CASE WHEN {x} > 0 THEN {function}({x}) WHEN {x} = 0 THEN {_NEGATIVE_INFINITY} "
            f"WHEN {x} < 0 THEN {_NAN} END"
        ),
    )


def _log(call: SparkCall) -> str:
    if len(call.args) == 1:
        return _logarithm("ln", call.args[0])
    base, value = (_logarithm("ln", a) for a in call.args)
    return ieee_quotient(value, base)


def _rounder(function: str) -> Callable[[SparkCall], str]:
    """FLOOR and CEIL: Spark's give BIGINT, which large floating numbers would not fit, nor -0.0."""

    def spark(call: SparkCall) -> str:
        sql, kind = call.args[0], call.arg_types[0]
        if isinstance(kind, t.INTEGER_TYPES):
            return sql
        if isinstance(kind, t.DecimalType):
            return f"CAST({function}({sql}) AS {spark_type(call.result)})"
        carrier = spark_type(kind)

        def rounded(x: str) -> str:
            number = f"CAST({function}({x}) AS {carrier})"
            if function == "ceil":
                number = f"IF({x} > -1 AND {x} < 0, CAST('-0.0' AS {carrier}), {number})"
            return f"IF(abs({x}) < {_EXACT_DOUBLE}L AND {x} <> 0, {number}, {x})"

        return share(sql, rounded)

    return spark


def whole_number_resolver(name: str) -> Resolver:
    """FLOOR and CEIL of a number: a decimal keeps its precision and loses its scale."""

    def result(types: tuple[t.LogicalType, ...]) -> t.LogicalType:
        kind = types[0]
        if isinstance(kind, t.DecimalType):
            return t.DecimalType(precision=kind.precision, scale=0, nullable=kind.nullable)
        return kind

    return signature(name, NUMERIC, result=result)


FLOOR_NUMBER = _rounder("floor")
CEIL_NUMBER = _rounder("ceil")


def _resolve_digits(name: str) -> Resolver:
    """ROUND and TRUNCATE: literal digits of a DECIMAL shape the result type."""

    def resolve(arguments: tuple[Argument, ...], _: Mapping[str, str]) -> Resolved:
        check_count(name, len(arguments), 1, 2)
        kinds = tuple(t.INT if isinstance(a.type, t.NullType) else a.type for a in arguments)
        valid = isinstance(kinds[0], t.NUMERIC_TYPES) and all(
            isinstance(k, t.INTEGER_TYPES) for k in kinds[1:]
        )
        if not valid:
            raise mismatch(name, arguments, f"{name}(<NUMERIC>, <INTEGER>)\n{name}(<NUMERIC>)")
        digits = arguments[1].literal if len(arguments) == 2 and arguments[1].is_literal else None
        if len(arguments) == 1:
            digits = 0
        result = _rounded_type(kinds[0], digits if isinstance(digits, int) else None)
        nullable = any(k.nullable for k in kinds)
        arg_types = (kinds[0], *(t.INT.with_nullable(k.nullable) for k in kinds[1:]))
        return Resolved(arg_types=arg_types, result=result.with_nullable(nullable))

    return resolve


def _rounded_type(kind: t.LogicalType, digits: int | None) -> t.LogicalType:
    if not isinstance(kind, t.DecimalType) or digits is None or digits >= kind.scale:
        return kind
    whole = kind.precision - kind.scale + 1
    if digits < 0:
        return t.DecimalType(precision=min(whole, t.MAX_DECIMAL_PRECISION), scale=0)
    return t.DecimalType(precision=whole + digits, scale=digits)


def _by_digits(step: Callable[[str, int], str]) -> Callable[[SparkCall], str]:
    """Spark wants constant digits: a column of digits becomes a choice among the possible ones."""

    def spark(call: SparkCall) -> str:
        carrier = spark_type(call.result)
        literal = call.literals[1] if len(call.args) == 2 else 0
        if isinstance(literal, int):
            return share(call.args[0], lambda x: f"CAST({step(x, literal)} AS {carrier})")

        def choose(x: str) -> str:
            whens = " ".join(f"WHEN {n} THEN CAST({step(x, n)} AS {carrier})" for n in _DIGITS)
            digits = f"greatest(least({call.args[1]}, {max(_DIGITS)}), {min(_DIGITS)})"
            return f"IF({call.args[1]} IS NULL, NULL, CASE {digits} {whens} END)"

        return share(call.args[0], choose)

    return spark


def _round(x: str, digits: int) -> str:
    return f"round({x}, {digits})"


def _truncate(call: SparkCall) -> str:
    kind = call.arg_types[0]
    if isinstance(kind, t.INTEGER_TYPES):
        return _by_digits(_truncate_integer)(call)
    return _by_digits(_truncate_decimal if isinstance(kind, t.DecimalType) else _truncate_double)(call)


def _truncate_integer(x: str, digits: int) -> str:
    return x if digits >= 0 else f"{x} div {10**-digits} * {10**-digits}" if digits >= -18 else f"{x} * 0"


def _truncate_decimal(x: str, digits: int) -> str:
    return f"IF({x} < 0, ceil({x}, {digits}), floor({x}, {digits}))"


def _truncate_double(x: str, digits: int) -> str:
    """Rounds half up in decimal, then takes one unit back where that went past the value."""
    rounded = f"round({x}, {digits})"
    unit = f"signum({x}) * CAST('1e{-digits}' AS DOUBLE)"
    return f"IF(abs({rounded}) > abs({x}), round({rounded} - {unit}, {digits}), {rounded})"


def _random(call: SparkCall) -> str:
    if not call.args:
        return "rand()"
    return f"rand({_seed(call)})"


def _random_integer(call: SparkCall) -> str:
    source = f"rand({_seed(call)})" if len(call.args) == 2 else "rand()"
    bound = call.args[-1]
    drawn = f"CAST(floor({source} * {bound}) AS INT)"
    if isinstance(call.literals[-1], int) and call.literals[-1] > 0:
        return drawn
    return f"IF({bound} > 0, {drawn}, raise_error('bound must be positive'))"


def _seed(call: SparkCall) -> str:
    if not isinstance(call.literals[0], int):
        raise NotSupportedError("RAND and RAND_INTEGER take only a constant seed")
    return str(call.literals[0])


def _apply(function: str) -> Callable[[SparkCall], str]:
    return lambda call: f"{function}({', '.join(call.args)})"


def _of_double(name: str, arity: int = 1, arrays: Entry | None = None) -> ScalarFunction:
    resolve = signature(name, *(AS_DOUBLE,) * arity, result=fixed(t.DOUBLE))
    return ScalarFunction(name=name, resolve=resolve, spark=_apply(name.lower()), arrays=arrays)


def _log_of(name: str, function: str) -> ScalarFunction:
    resolve = signature(name, AS_DOUBLE, result=fixed(t.DOUBLE))
    return ScalarFunction(name=name, resolve=resolve, spark=lambda call: _logarithm(function, call.args[0]))


def _constant(name: str) -> ScalarFunction:
    resolve = signature(name, result=not_null(fixed(t.DOUBLE)))
    return ScalarFunction(name=name, resolve=resolve, spark=_apply(name.lower()))


_ABSOLUTE = type(NUMERIC)("<NUMERIC>", (*t.NUMERIC_TYPES, *t.INTERVAL_TYPES), default=t.INT)


def _absolute(call: SparkCall) -> str:
    (value,), (kind,) = call.args, call.arg_types
    if not isinstance(kind, t.DecimalType):
        return f"abs({value})"
    return share(value, lambda x: f"IF({x} < 0, {negated(x, kind)}, {x})")


FUNCTIONS: tuple[ScalarFunction, ...] = (
    ScalarFunction(
        name="ABS",
        resolve=signature(
            "ABS", _ABSOLUTE, result=same_as(0), forms="ABS(<NUMERIC>)\nABS(<DATETIME_INTERVAL>)"
        ),
        spark=_absolute,
        arrays=numeric.absolute,
    ),
    ScalarFunction(
        name="SIGN",
        resolve=signature("SIGN", NUMERIC, result=same_as(0)),
        spark=lambda call: f"CAST(signum({call.args[0]}) AS {spark_type(call.result)})",
    ),
    ScalarFunction(
        name="ROUND",
        resolve=_resolve_digits("ROUND"),
        spark=_by_digits(_round),
        arrays=numeric.rounded,
    ),
    ScalarFunction(name="TRUNCATE", resolve=_resolve_digits("TRUNCATE"), spark=_truncate),
    _of_double("SQRT", arrays=by_value(numeric.root)),
    *map(_of_double, ("EXP", "SIN", "COS", "TAN", "COT", "ASIN", "ACOS", "ATAN")),
    *map(_of_double, ("SINH", "COSH", "TANH", "DEGREES", "RADIANS")),
    _of_double("ATAN2", arity=2),
    _of_double("POWER", arity=2),
    _log_of("LN", "ln"),
    _log_of("LOG10", "log10"),
    _log_of("LOG2", "log2"),
    ScalarFunction(
        name="LOG",
        resolve=overloaded(
            signature("LOG", AS_DOUBLE, AS_DOUBLE, result=fixed(t.DOUBLE)),
            signature("LOG", AS_DOUBLE, result=fixed(t.DOUBLE)),
        ),
        spark=_log,
    ),
    _constant("PI"),
    _constant("E"),
    ScalarFunction(
        name="BIN", resolve=signature("BIN", AS_BIGINT, result=fixed(t.STRING)), spark=_apply("bin")
    ),
    ScalarFunction(
        name="RAND",
        resolve=signature("RAND", AS_INT, optional=1, result=fixed(t.DOUBLE.with_nullable(False))),
        spark=_random,
        deterministic=False,
        draws=True,
    ),
    ScalarFunction(
        name="RAND_INTEGER",
        resolve=overloaded(
            signature("RAND_INTEGER", AS_INT, result=fixed(t.INT)),
            signature("RAND_INTEGER", AS_INT, AS_INT, result=fixed(t.INT)),
        ),
        spark=_random_integer,
        deterministic=False,
        draws=True,
    ),
    ScalarFunction(
        name="UUID",
        resolve=signature("UUID", result=fixed(t.CharType(length=36))),
        spark=_apply("uuid"),
        deterministic=False,
        draws=True,
    ),
)
