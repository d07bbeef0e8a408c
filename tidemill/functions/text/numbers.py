"""Texts of floats and decimals as Java prints them: shortest digits, and an exponent from ten million on and
below 0.001. Examples: 1e10 is ``1.0E10``, 100 is ``100.0``, 0.0001 is ``1.0E-4``."""

from __future__ import annotations

import math
from decimal import Decimal, localcontext

import numpy as np

NO_EXPONENT = 6
"""The largest scale of decimals that Java, Python, Arrow and Spark all print without an exponent."""
_NAMES = {math.inf: "Infinity", -math.inf: "-Infinity"}


def java_double(value: float) -> str:
    """Double.toString of ``value``."""
    return _java(value, repr(float(value)))


def java_float(value: float) -> str:
    """Float.toString of the 32-bit float ``value``."""
    return _java(value, np.format_float_scientific(np.float32(value), unique=True, trim="0"))


def _java(value: float, shortest: str) -> str:
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return _NAMES[value]
    sign = "-" if math.copysign(1.0, value) < 0 else ""
    digits, power = _digits(shortest.lstrip("-"))
    if digits == "0":
        return sign + "0.0"
    if -3 <= power < 7:
        return sign + _plain(digits, power)
    return f"{sign}{digits[0]}.{digits[1:] or '0'}E{power}"


def _digits(text: str) -> tuple[str, int]:
    """The significant digits, and the power of ten of the first digit."""
    mantissa, _, exponent = text.lower().partition("e")
    whole, _, fraction = mantissa.partition(".")
    digits = whole + fraction
    stripped = digits.lstrip("0")
    power = len(whole) - 1 - (len(digits) - len(stripped)) + int(exponent or 0)
    return stripped.rstrip("0") or "0", power


def _plain(digits: str, power: int) -> str:
    if power < 0:
        return "0." + "0" * (-power - 1) + digits
    whole = digits[: power + 1].ljust(power + 1, "0")
    return f"{whole}.{digits[power + 1 :] or '0'}"


def java_decimal(value: Decimal) -> str:
    """BigDecimal.stripTrailingZeros().toString(): Python prints decimals by the same rule."""
    with localcontext(prec=60):
        return str(value.normalize())
