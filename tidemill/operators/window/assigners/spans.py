"""Spans of a key that may belong to one window, if rows determine the windows.

A row's span goes from its time to a gap behind it; an open window's span goes from its first row to its
end. Spans that touch, directly or through other spans, are a *cluster*. Windows lie within clusters. In most
clusters all spans are one window, because only time separates windows. If a row came behind the watermark,
and something near it may already have been gone, the order of rows matters. Such clusters are ``mixed``, and
processed one by one.

Cost: two sorts.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from tidemill.changelog.columns import Ints, Mask
from tidemill.changelog.watermarks import NONE

LATE = -1
"""The window of a span that is in none."""


class Open(Protocol):
    """Windows that are open: numbers of their keys, and bounds."""

    @property
    def keys(self) -> Ints: ...
    @property
    def starts(self) -> Ints: ...
    @property
    def ends(self) -> Ints: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Spans:
    """Open sessions (``stored`` of them), then rows in the order they came.

    ``keys``: small numbers; ``starts`` and ``ends`` (exclusive) in ms; ``marks``: the last time that had come
    before the row (of sessions: any time before their last).
    """

    keys: Ints
    starts: Ints
    ends: Ints
    marks: Ints
    stored: int

    @staticmethod
    def behind(open_: Open, keys: Ints, starts: Ints, ends: Ints, marks: Ints) -> Spans:
        """Those of ``open_`` windows, then these."""
        return Spans(
            keys=np.concatenate([open_.keys, keys]),
            starts=np.concatenate([open_.starts, starts]),
            ends=np.concatenate([open_.ends, ends]),
            marks=np.concatenate([np.full(len(open_.keys), NONE, np.int64), marks]),
            stored=len(open_.keys),
        )

    def __len__(self) -> int:
        return len(self.keys)

    @property
    def late(self) -> Mask:
        """Rows that came when their own span had come to its end: late if they meet no open window."""
        late: Mask = self.ends - 1 <= self.marks
        late[: self.stored] = False
        return late


@dataclass(frozen=True, slots=True, kw_only=True)
class Clusters:
    """``numbers``: the cluster of each span, ``late``: whether it is late by itself. Per cluster whether any
    of its spans is not (``alive``), and whether the order of its rows matters (``mixed``)."""

    numbers: Ints
    late: Mask
    alive: Mask
    mixed: Mask

    @staticmethod
    def of(spans: Spans) -> Clusters:
        numbers, late = clusters_of(spans), spans.late
        alive, mixed = (np.zeros(int(numbers.max(initial=-1)) + 1, np.bool_) for _ in range(2))
        alive[numbers[~late]] = True
        mixed[numbers[late]] = True
        mixed[numbers[may_meet_the_gone(spans, late)]] = True
        return Clusters(numbers=numbers, late=late, alive=alive, mixed=mixed)

    def __len__(self) -> int:
        return len(self.alive)

    def labels(self) -> Ints:
        """The window of each span if every cluster is one: its number, or LATE."""
        return np.where(self.alive[self.numbers], self.numbers, LATE)

    def members(self, chosen: Mask) -> list[Ints]:
        """The spans of each ``chosen`` cluster that is alive, in their order."""
        spans = np.flatnonzero((chosen & self.alive)[self.numbers])
        if len(spans) == 0:
            return []
        spans = spans[np.argsort(self.numbers[spans], kind="stable")]
        return np.split(spans, np.flatnonzero(np.diff(self.numbers[spans])) + 1)


def clusters_of(spans: Spans) -> Ints:
    """Spans of a key that touch, or are linked by others that do."""
    n = len(spans)
    order = np.lexsort((spans.starts, spans.keys))
    keys, starts, ends = spans.keys[order], spans.starts[order], spans.ends[order]
    distinct, ranks = np.unique(ends, return_inverse=True)
    # The furthest end so far of each key: keys ascend, so a later key's ranks are above all earlier ones.
    furthest = np.maximum.accumulate(keys * (n + 1) + ranks.reshape(-1)) - keys * (n + 1)
    apart = np.ones(n, np.bool_)
    apart[1:] = (keys[1:] != keys[:-1]) | (starts[1:] > distinct[furthest[:-1]])
    clusters = np.empty(n, np.int64)
    clusters[order] = np.cumsum(apart) - 1
    return clusters


def may_meet_the_gone(spans: Spans, late: Mask) -> Ints:
    """Rows that are not late by themselves, but touch a span of their key that had ended. Without such a span
    no session that they touch is gone. (The span's end lies between the row's time and the watermark.)"""
    behind = np.flatnonzero(~late & (spans.starts - 1 <= spans.marks))
    behind = behind[behind >= spans.stored]
    if len(behind) == 0:
        return behind
    distinct, ranks = np.unique(spans.ends, return_inverse=True)
    width = len(distinct) + 1
    codes = np.sort(spans.keys * width + ranks.reshape(-1))
    base = spans.keys[behind] * width
    first = base + np.searchsorted(distinct, spans.starts[behind], side="left")
    last = base + np.searchsorted(distinct - 1, spans.marks[behind], side="right")
    found = np.searchsorted(codes, last, side="left") > np.searchsorted(codes, first, side="left")
    return behind[found]


def lowest_from_here(marks: Ints) -> Ints:
    """From each row on the least: what had ended by then no later row meets. Rows of several sources come
    behind several watermarks, and what is gone for one row may be open for the next."""
    return np.minimum.accumulate(marks[::-1])[::-1]
