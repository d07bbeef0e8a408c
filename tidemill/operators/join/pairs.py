"""The pairs of a join's sides, and the number of matches of each row.

Cost: the pairs; without a residual condition matches are counted by key, without pairs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tidemill.changelog.columns import Ints, Mask
from tidemill.operators.join.residual import Residual
from tidemill.operators.join.sides import Columns, Side


@dataclass(frozen=True, slots=True)
class Pairs:
    """The row indexes of pairs, per side."""

    left: Ints
    right: Ints

    def of(self, side: int) -> Ints:
        return self.right if side else self.left


def pairs_of(left: Side, right: Side, keys: int, every: bool, residual: Residual | None) -> Pairs:
    """The pairs of equal key that pass the residual; ``keys``: how many there are.

    ``every`` False: only pairs with a changed row, which is enough for the difference of an inner join.
    """
    everyone = np.arange(len(right.owners))
    if every or left.moved.all():
        pairs = _products(left, np.arange(len(left.owners)), right, everyone, keys)
    else:
        moved = left.moved
        parts = (
            _products(left, np.flatnonzero(moved), right, everyone, keys),
            _products(left, np.flatnonzero(~moved), right, np.flatnonzero(right.moved), keys),
        )
        pairs = Pairs(*(np.concatenate([p.of(side) for p in parts]) for side in (0, 1)))
    if residual is None or len(pairs.left) == 0:
        return pairs
    keep = residual.matches(Candidates((left, right), pairs))
    return Pairs(pairs.left[keep], pairs.right[keep])


@dataclass(slots=True)
class Candidates:
    """The pairs that a residual tests. A column is fetched on demand, once."""

    sides: tuple[Side, Side]
    pairs: Pairs
    taken: Columns = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.pairs.left)

    def column(self, name: str) -> pa.Array:
        if name not in self.taken:
            number = 0 if name in self.sides[0].columns else 1
            self.taken[name] = self.sides[number].take(name, self.pairs.of(number))
        return self.taken[name]


def _products(left: Side, left_rows: Ints, right: Side, right_rows: Ints, keys: int) -> Pairs:
    """All combinations of equal owner; both row lists ascend, so do their owners."""
    sizes = np.bincount(right.owners[right_rows], minlength=keys)
    starts = np.cumsum(sizes) - sizes
    owners = left.owners[left_rows]
    counts = sizes[owners]
    ends = np.cumsum(counts)
    total = int(ends[-1]) if len(ends) else 0
    if total == len(left_rows) and (counts == 1).all():
        return Pairs(left_rows, right_rows[starts[owners]])
    offsets = np.arange(total) - np.repeat(ends - counts - starts[owners], counts)
    return Pairs(np.repeat(left_rows, counts), right_rows[offsets])


@dataclass(frozen=True, slots=True)
class Link:
    """Some rows of two sides, and numbers below ``count`` that are equal where a row matches one of the other
    side. A pair of rows is in one link at most."""

    own_rows: Ints
    own_keys: Ints
    other_rows: Ints
    other_keys: Ints
    count: int


@dataclass(frozen=True, slots=True)
class Matches:
    """Per row of a side how many rows match it, before and after; ``renewed``: a match of it changed."""

    before: Ints
    after: Ints
    renewed: Mask

    @classmethod
    def by_key(cls, own: Side, other: Side, keys: int) -> Matches:
        return cls._of(own, other, lambda w: np.bincount(other.owners, w, keys)[own.owners])

    @classmethod
    def by_pair(cls, own: Side, other: Side, own_rows: Ints, other_rows: Ints) -> Matches:
        size = len(own.owners)
        return cls._of(own, other, lambda w: np.bincount(own_rows, w[other_rows], size))

    @classmethod
    def by_links(cls, own: Side, other: Side, links: Sequence[Link]) -> Matches:
        """A row's matches are those of all links."""

        def total(weights: Ints) -> npt.NDArray[Any]:
            totals = np.zeros(len(own.owners))
            for link in links:
                sums = np.bincount(link.other_keys, weights[link.other_rows], link.count)
                totals[link.own_rows] += sums[link.own_keys]
            return totals

        return cls._of(own, other, total)

    @classmethod
    def _of(cls, own: Side, other: Side, total: Callable[[Ints], npt.NDArray[Any]]) -> Matches:
        before, after = (total(w).astype(np.int64) for w in (other.before, other.after))
        renewed = total(other.moved.astype(np.int64)) > 0
        if own.matches is not None:
            # Expired rows of the other side still count: their results were not retracted.
            was = own.before > 0
            before, after = own.matches, np.where(was, own.matches + after - before, after)
        return cls(before, after, renewed)
