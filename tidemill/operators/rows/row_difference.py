"""The difference of two bags of rows."""

from __future__ import annotations

import numpy as np

from tidemill.changelog.columns import Ints


def bag_difference(before: Ints, after: Ints, size: int) -> tuple[Ints, Ints]:
    """The indexes in ``before`` that go, and in ``after`` that come. Row numbers are below ``size``."""
    have, want = np.bincount(before, minlength=size), np.bincount(after, minlength=size)
    goes = np.flatnonzero(copy_number(before) >= want[before])
    comes = np.flatnonzero(copy_number(after) >= have[after])
    return goes, comes


def copy_number(rows: Ints) -> Ints:
    """0 for the first appearance of a row number, 1 for the second, ..."""
    order = np.argsort(rows, kind="stable")
    ordered = rows[order]
    fresh = np.ones(len(rows), np.bool_)
    np.not_equal(ordered[1:], ordered[:-1], out=fresh[1:])
    position = np.arange(len(rows))
    number = np.empty(len(rows), np.int64)
    number[order] = position - np.maximum.accumulate(np.where(fresh, position, 0))
    return number
