"""Decimals of as many digits as SQL has: Python's default context rounds what has more than 28."""

from __future__ import annotations

from decimal import ROUND_HALF_UP, Context, Decimal

WIDE = Context(prec=80, rounding=ROUND_HALF_UP)
"""Twice the digits of the widest type."""
_WIDEST = Context(prec=400, rounding=ROUND_HALF_UP)
"""Room for any DOUBLE with the digits of any scale."""


def rounded(value: Decimal, scale: int) -> Decimal:
    """``value`` with ``scale`` fraction digits, half up."""
    return value.quantize(Decimal(1).scaleb(-scale), context=_WIDEST)
