"""The emitted rows of a Top-N: their ranks, and the changes from the rows before to the rows after an epoch.

``changes_by_row`` and ``changes_by_rank`` return the indexes of ``before`` that are retracted, the indexes of
``after`` that are inserted, and for each whether it is half of an update.
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
    position = np.arange(size)
    fresh = np.ones(size, np.bool_)
    np.not_equal(owners[1:], owners[:-1], out=fresh[1:])
    starts = np.maximum.accumulate(np.where(fresh, position, 0))
    if function == "ROW_NUMBER":
        return position - starts + 1
    step = fresh.copy()
    for code in order:
        step[1:] |= code[1:] != code[:-1]
    if function == "RANK":
        peers: Ints = np.maximum.accumulate(np.where(step, position, 0))
        return peers - starts + 1
    dense: Ints = np.cumsum(step)
    return dense - dense[starts] + 1


def changes_by_row(before: Shown, after: Shown, content: Ints) -> tuple[Ints, Ints, Mask, Mask]:
    """Compares the rows as bags, so copies of a row count."""
    before_content, after_content = content[before.rows], content[after.rows]
    old, new = bag_difference(before_content, after_content, len(content))
    return old, new, np.zeros(len(old), np.bool_), np.zeros(len(new), np.bool_)


def changes_by_rank(before: Shown, after: Shown, content: Ints) -> tuple[Ints, Ints, Mask, Mask]:
    """Compares the rows at each slot: (owner, rank, index among equal ranks)."""
    slots = _slots(before, after)
    split = len(before.rows)
    size = int(slots.max()) + 1 if len(slots) else 0
    before_content = np.full(size, -1, np.int64)
    after_content = np.full(size, -1, np.int64)
    before_content[slots[:split]] = content[before.rows]
    after_content[slots[split:]] = content[after.rows]
    differs = before_content != after_content
    old = np.flatnonzero(differs[slots[:split]])
    new = np.flatnonzero(differs[slots[split:]])
    return old, new, after_content[slots[:split]][old] >= 0, before_content[slots[split:]][new] >= 0


def _slots(before: Shown, after: Shown) -> Ints:
    """The slot number of each row of both: equal for equal (owner, rank, index among equal ranks)."""
    ranks = np.concatenate([before.ranks, after.ranks])
    size = int(ranks.max()) + 1 if len(ranks) else 1
    slots = np.concatenate([before.owners, after.owners]) * size + ranks
    copies = np.concatenate([copy_number(part) for part in np.split(slots, [len(before.rows)])])
    _, numbers = np.unique(slots, return_inverse=True)
    if copies.any():
        _, numbers = np.unique(numbers * (int(copies.max()) + 1) + copies, return_inverse=True)
    return numbers
