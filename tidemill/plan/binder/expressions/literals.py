"""Literals: the types that Flink gives constants.

'abc' is CHAR(3), 1 is INT, 3000000000 BIGINT, 2.5 DECIMAL(2, 1), 1e0 DOUBLE; all NOT NULL.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from math import isinf
from typing import Any

from tidemill.errors import Position, ValidationError
from tidemill.plan.expressions import Call, Cast, Expr, Literal
from tidemill.types import logical as t
from tidemill.types.decimals import rounded

INT_LIMIT = 2**31
BIGINT_LIMIT = 2**63

_FUNCTIONS: dict[str, Callable[..., int]] = {
    "+": lambda left, right: left + right,
    "-": lambda left, right: left - right,
    "*": lambda left, right: left * right,
    "UNARY -": lambda operand: -operand,
    "ABS": abs,
}
"""Of whole numbers."""


def string(text: str) -> Literal:
    """A character literal; CHAR(0) for the empty string."""
    return Literal(type=t.CharType(length=len(text), nullable=False), value=text)


def boolean(value: bool) -> Literal:
    return Literal(type=t.BooleanType(nullable=False), value=value)


def integer(value: int) -> Literal:
    return Literal(type=t.IntType(nullable=False), value=value)


def bigint(value: int) -> Literal:
    return Literal(type=t.BigIntType(nullable=False), value=value)


def null(kind: t.LogicalType | None = None) -> Literal:
    return Literal(type=(kind or t.NullType()).with_nullable(True), value=None)


def binary(digits: str, position: Position | None) -> Literal:
    """x'0aff'; an odd number of digits is an error."""
    if len(digits) % 2:
        raise ValidationError(
            "Binary literal string must contain an even number of hexits", position=position
        )
    value = bytes.fromhex(digits)
    return Literal(type=t.BinaryType(length=len(value), nullable=False), value=value)


def number(text: str, position: Position | None, negative: bool = False) -> Literal:
    """A numeric literal; its sign decides whether the number fits its type.

    As in Flink, the digits of a DECIMAL without point and leading zeros must fit BIGINT.
    """
    signed = f"-{text}" if negative else text
    if "e" in text.lower():
        return _approximate(signed, position)
    whole, _, fraction = text.partition(".")
    digits = (whole + fraction).lstrip("0") or "0"
    # The count is checked first: Python refuses to parse a number with thousands of digits.
    if (
        len(digits) > len(str(BIGINT_LIMIT))
        or not -BIGINT_LIMIT <= _unscaled(digits, negative) < BIGINT_LIMIT
    ):
        raise _out_of_range(signed if fraction else signed.rstrip("."), position)
    if not fraction:
        return _whole(_unscaled(digits, negative))
    if len(fraction) > t.MAX_DECIMAL_PRECISION:
        raise _out_of_range(signed, position)
    precision = min(len(whole) + len(fraction), t.MAX_DECIMAL_PRECISION)
    kind = t.DecimalType(precision=precision, scale=len(fraction), nullable=False)
    return Literal(type=kind, value=Decimal(signed))


def _unscaled(digits: str, negative: bool) -> int:
    return -int(digits) if negative else int(digits)


def _whole(value: int) -> Literal:
    return integer(value) if -INT_LIMIT <= value < INT_LIMIT else bigint(value)


def _approximate(text: str, position: Position | None) -> Literal:
    value = float(text)
    if isinf(value):
        raise _out_of_range(text.upper().replace("+", ""), position)
    return Literal(type=t.DoubleType(nullable=False), value=value)


def _out_of_range(text: str, position: Position | None) -> ValidationError:
    return ValidationError(f"Numeric literal '{text}' out of range", position=position)


def widened(literal: Literal, kind: t.LogicalType) -> Literal | None:
    """``literal`` as a constant of the wider ``kind``; None if only a cast at run time can decide."""
    if literal.value is None:
        return null(kind)
    typed = kind.with_nullable(False)
    for source, target, convert in _WIDENINGS:
        if isinstance(literal.type, source) and isinstance(kind, target):
            value = convert(literal.value, kind)
            return None if value is None else replace(literal, type=typed, value=value)
    return None


Types = tuple[type[t.LogicalType], ...]
Convert = Callable[[object, t.LogicalType], object]


def _same(value: object, _: t.LogicalType) -> object:
    return value


def _decimal(value: object, kind: t.LogicalType) -> object:
    assert isinstance(kind, t.DecimalType)
    assert isinstance(value, int | Decimal)
    unrounded = Decimal(value)
    digits = len(unrounded.as_tuple().digits) + int(unrounded.as_tuple().exponent)
    if digits > kind.precision - kind.scale:
        return None
    exact = rounded(unrounded, kind.scale)
    return exact if exact == unrounded else None


def _float(value: Any, kind: t.LogicalType) -> object:
    return float(value)


def _text(value: object, kind: t.LogicalType) -> object:
    assert isinstance(kind, t.LengthType)
    return value if isinstance(value, str | bytes) and len(value) <= kind.length else None


_WIDENINGS: tuple[tuple[Types, Types, Convert], ...] = (
    ((t.TinyIntType, t.SmallIntType, t.IntType), (t.IntType, t.BigIntType), _same),
    ((t.BigIntType,), (t.BigIntType,), _same),
    (t.EXACT_TYPES, (t.DecimalType,), _decimal),
    ((t.TinyIntType, t.SmallIntType, t.IntType), (t.DoubleType,), _float),
    (t.CHARACTER_TYPES, (t.VarCharType,), _text),
    (t.BINARY_TYPES, (t.VarBinaryType,), _text),
)


def whole_number(expr: Expr) -> int | None:
    """The value of a constant expression that the plan needs as a number, such as the bound of a frame: the
    number, or the milliseconds or months of an interval; None for any other expression.

        ROWS BETWEEN 1 + 1 PRECEDING    -> 2

    Only whole numbers and arithmetic between them have a value here, as in Flink's own frames. Texts,
    fractions and other functions have none, because Spark would have to compute them.
    """
    if isinstance(expr, Literal):
        plain = isinstance(expr.value, int) and not isinstance(expr.value, bool)
        return expr.value if plain and isinstance(expr.value, int) else None
    if isinstance(expr, Cast):
        return whole_number(expr.operand) if isinstance(expr.type, t.INTEGER_TYPES) else None
    if isinstance(expr, Call) and expr.function in _FUNCTIONS:
        operands = [whole_number(arg) for arg in expr.args]
        return None if None in operands else _FUNCTIONS[expr.function](*operands)
    return None
