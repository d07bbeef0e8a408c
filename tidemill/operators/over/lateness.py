"""The latest time that a key had emitted when another row of the key came."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tidemill.changelog.columns import Ints
from tidemill.changelog.watermarks import NONE


@dataclass(frozen=True, slots=True, kw_only=True)
class Dues:
    """Rows of keys (small numbers): their times, and the watermarks that they are due at."""

    keys: Ints
    times: Ints
    dues: Ints

    def then(self, other: Dues) -> Dues:
        return Dues(
            keys=np.concatenate([self.keys, other.keys]),
            times=np.concatenate([self.times, other.times]),
            dues=np.concatenate([self.dues, other.dues]),
        )


def latest_emitted(rows: Dues, keys: Ints, marks: Ints) -> Ints:
    """For each key and mark the latest time among the key's rows that were due at or before the mark; NONE if
    there is none. ``rows`` may contain late rows, because a later time was emitted before them. Cost: two
    sorts."""
    if len(rows.keys) == 0 or len(keys) == 0:
        return np.full(len(keys), NONE, np.int64)
    moments, moment_numbers = np.unique(np.concatenate([rows.dues, marks]), return_inverse=True)
    codes = np.concatenate([rows.keys, keys]) * len(moments) + moment_numbers.reshape(-1)
    order = np.argsort(codes[: len(rows.keys)], kind="stable")
    owners, times = rows.keys[order], rows.times[order]
    distinct, ranks = np.unique(times, return_inverse=True)
    # Keys ascend, so a later key's ranks are above all earlier ones.
    latest = np.maximum.accumulate(owners * len(distinct) + ranks.reshape(-1)) % len(distinct)
    position = np.searchsorted(codes[order], codes[len(rows.keys) :], "right") - 1
    has_given = (position >= 0) & (owners[np.maximum(position, 0)] == keys)
    return np.where(has_given, distinct[latest[np.maximum(position, 0)]], NONE)
