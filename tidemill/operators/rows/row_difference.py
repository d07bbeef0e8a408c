"""From a bag of rows to another: which copies go and which come."""

from __future__ import annotations

import numpy as np

from tidemill.changelog.columns import Ints


def bag_difference(held: Ints, wanted: Ints, size: int) -> tuple[Ints, Ints]:
    """Places in ``held`` that go and in ``wanted`` that come; both hold row numbers below ``size``."""
    have, want = np.bincount(held, minlength=size), np.bincount(wanted, minlength=size)
    goes = np.flatnonzero(copy_number(held) >= want[held])
    comes = np.flatnonzero(copy_number(wanted) >= have[wanted])
    return goes, comes


def copy_number(rows: Ints) -> Ints:
    """0 for the first appearance of a row number, 1 for the second, ..."""
    order = np.argsort(rows, kind="stable")
    ordered = rows[order]
    fresh = np.ones(len(rows), np.bool_)
    np.not_equal(ordered[1:], ordered[:-1], out=fresh[1:])
    place = np.arange(len(rows))
    number = np.empty(len(rows), np.int64)
    number[order] = place - np.maximum.accumulate(np.where(fresh, place, 0))
    return number
