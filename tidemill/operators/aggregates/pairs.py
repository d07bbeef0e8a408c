"""Numbers of about 106 bits: a double and its rounding residue (Dekker; Knuth's two-sum)."""

from __future__ import annotations

import numpy as np

from tidemill.changelog.columns import Values

Pair = tuple[Values, Values]
"""Numbers and their rounding residues."""

_SPLITTER = 2.0**27 + 1
_LARGEST = 2.0**500
"""The square of a larger number, or its residue, would leave the range of doubles."""


def added(a: Pair, b: Pair) -> Pair:
    """The sum of two pairs. Beyond the range of doubles the residue is undefined."""
    with np.errstate(over="ignore", invalid="ignore"):
        high, error = _two_sum(a[0], b[0])
        low, lost = _two_sum(a[1], b[1])
        high, error = quick_two_sum(high, error + low)
        high, low = quick_two_sum(high, error + lost)
    return high, np.where(np.isfinite(low), low, 0.0)


def product(a: Values, b: Values) -> Pair:
    """Exact, as far as the range goes."""
    with np.errstate(over="ignore", invalid="ignore"):
        high = a * b
        (a_high, a_low), (b_high, b_low) = _halves(a), _halves(b)
        low = ((a_high * b_high - high) + a_high * b_low + a_low * b_high) + a_low * b_low
    fits = (np.abs(a) < _LARGEST) & (np.abs(b) < _LARGEST)
    return high, np.where(fits, low, 0.0)


def squared(a: Pair) -> Pair:
    with np.errstate(over="ignore", invalid="ignore"):
        high, low = product(a[0], a[0])
        return quick_two_sum(high, low + 2 * a[0] * a[1])


def divided(a: Pair, by: Values) -> Pair:
    with np.errstate(over="ignore", invalid="ignore"):
        quotient = a[0] / by
        high, low = product(quotient, by)
        return quick_two_sum(quotient, (a[0] - high - low + a[1]) / by)


def quick_two_sum(a: Values, b: Values) -> Pair:
    total = a + b
    return total, b - (total - a)


def _two_sum(a: Values, b: Values) -> Pair:
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


def _halves(values: Values) -> Pair:
    scaled = _SPLITTER * values
    high = scaled - (scaled - values)
    return high, values - high
