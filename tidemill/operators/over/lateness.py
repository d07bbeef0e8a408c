"""What a key's rows had been given when another of its rows came."""

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


def latest_given(rows: Dues, keys: Ints, marks: Ints) -> Ints:
    """Per question the latest time among the key's rows that were due at or before the mark; NONE where there
    is none. Rows that are late themselves may be among ``rows``: a later time was given before. Cost: two
    sorts."""
    if len(rows.keys) == 0 or len(keys) == 0:
        return np.full(len(keys), NONE, np.int64)
    moments, places = np.unique(np.concatenate([rows.dues, marks]), return_inverse=True)
    codes = np.concatenate([rows.keys, keys]) * len(moments) + places.reshape(-1)
    order = np.argsort(codes[: len(rows.keys)], kind="stable")
    owners, times = rows.keys[order], rows.times[order]
    distinct, ranks = np.unique(times, return_inverse=True)
    # Keys ascend, so a later key's ranks are above all earlier ones.
    latest = np.maximum.accumulate(owners * len(distinct) + ranks.reshape(-1)) % len(distinct)
    found = np.searchsorted(codes[order], codes[len(rows.keys) :], "right") - 1
    known = (found >= 0) & (owners[np.maximum(found, 0)] == keys)
    return np.where(known, distinct[latest[np.maximum(found, 0)]], NONE)
