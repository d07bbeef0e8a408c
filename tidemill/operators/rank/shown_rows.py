"""The rows that a Top-N shows: their ranks, and the changes from what was shown to what is shown.

``by_row`` and ``by_place`` return the places of ``before`` that go, those of ``after`` that come, and of
each whether it is half of an update.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tidemill.changelog.columns import Ints, Mask
from tidemill.operators.rows.row_difference import bag_difference, copy_number


@dataclass(frozen=True, slots=True)
class Shown:
    """Rows shown, in rank order within an owner: row number, its rank, its place among the shown."""

    rows: Ints
    owners: Ints
    ranks: Ints


def ranks_of(function: str, owners: Ints, order: list[Ints]) -> Ints:
    """1-based rank of each row; rows are sorted by owner, then by the order."""
    size = len(owners)
    place = np.arange(size)
    fresh = np.ones(size, np.bool_)
    np.not_equal(owners[1:], owners[:-1], out=fresh[1:])
    starts = np.maximum.accumulate(np.where(fresh, place, 0))
    if function == "ROW_NUMBER":
        return place - starts + 1
    step = fresh.copy()
    for code in order:
        step[1:] |= code[1:] != code[:-1]
    if function == "RANK":
        peers: Ints = np.maximum.accumulate(np.where(step, place, 0))
        return peers - starts + 1
    dense: Ints = np.cumsum(step)
    return dense - dense[starts] + 1


def by_row(before: Shown, after: Shown, content: Ints) -> tuple[Ints, Ints, Mask, Mask]:
    """Places of ``before`` that go and of ``after`` that come, counting copies of a row."""
    held, taken = content[before.rows], content[after.rows]
    old, new = bag_difference(held, taken, len(content))
    return old, new, np.zeros(len(old), np.bool_), np.zeros(len(new), np.bool_)


def by_place(before: Shown, after: Shown, content: Ints) -> tuple[Ints, Ints, Mask, Mask]:
    """Compares what stands at each (owner, rank, place among equal ranks)."""
    place = _places(before, after)
    split = len(before.rows)
    size = int(place.max()) + 1 if len(place) else 0
    held = np.full(size, -1, np.int64)
    taken = np.full(size, -1, np.int64)
    held[place[:split]] = content[before.rows]
    taken[place[split:]] = content[after.rows]
    differs = held != taken
    old = np.flatnonzero(differs[place[:split]])
    new = np.flatnonzero(differs[place[split:]])
    return old, new, taken[place[:split]][old] >= 0, held[place[split:]][new] >= 0


def _places(before: Shown, after: Shown) -> Ints:
    """A number for each row of both: the same for the same (owner, rank, place among equal ranks)."""
    ranks = np.concatenate([before.ranks, after.ranks])
    size = int(ranks.max()) + 1 if len(ranks) else 1
    slots = np.concatenate([before.owners, after.owners]) * size + ranks
    copies = np.concatenate([copy_number(part) for part in np.split(slots, [len(before.rows)])])
    _, numbers = np.unique(slots, return_inverse=True)
    if copies.any():
        _, numbers = np.unique(numbers * (int(copies.max()) + 1) + copies, return_inverse=True)
    return numbers
