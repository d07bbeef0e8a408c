"""The two sides of a join for one epoch: weighted rows by key, their pairs, and who is matched.

Keys of both sides' changes get one numbering (``KeyNumbers``); a ``Side`` is its rows sorted by key
number with their weights before and after. Rows from state have a kind of -1: they did not move.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from tidemill.changelog.columns import Hashes, Ints, Mask, single
from tidemill.changelog.grouping import group_rows
from tidemill.changelog.hashing import hash_columns
from tidemill.operators.ordering import stable_order
from tidemill.operators.residual import Residual

Changed = tuple[pa.Table, Hashes, tuple[str, ...]]
"""A side's changed rows, their key hashes, the names of the key columns."""

UNMOVED = -1


@dataclass(frozen=True, slots=True)
class KeyNumbers:
    """``of``: per side the key number of each changed row; ``touched``: per side, whether the side has
    changes of the key; ``hashes``/``keys``: the keys themselves, hashes ascending."""

    of: tuple[Ints, Ints]
    touched: tuple[Mask, Mask]
    hashes: Hashes
    keys: list[pa.Array]

    @property
    def count(self) -> int:
        return len(self.hashes)

    def gathering(self, wanted: Mask) -> tuple[Ints, Hashes, list[pa.Array]]:
        """Numbers, hashes and values of the ``wanted`` keys."""
        numbers = np.flatnonzero(wanted)
        picks = pa.array(numbers)
        return numbers, self.hashes[numbers], [k.take(picks) for k in self.keys]


def matched_keys(left: Changed, right: Changed) -> KeyNumbers:
    """Numbers the distinct keys of both sides' changes."""
    hashes = np.concatenate([left[1], right[1]])
    columns = [
        single(pa.chunked_array([single(left[0].column(a)), single(right[0].column(b))]))
        for a, b in zip(left[2], right[2], strict=True)
    ]
    groups = group_rows(hashes, columns)
    numbers = np.empty(len(hashes), np.int64)
    numbers[groups.order] = groups.ids()
    split = len(left[1])
    of = (numbers[:split], numbers[split:])
    touched = tuple(np.bincount(n, minlength=groups.count).astype(np.bool_) for n in of)
    heads = groups.heads
    picks = pa.array(heads)
    return KeyNumbers(of, (touched[0], touched[1]), hashes[heads], [c.take(picks) for c in columns])


@dataclass(frozen=True, slots=True)
class Side:
    """Rows sorted by ``owners`` (key numbers). A row that is in state and changed stands once."""

    table: pa.Table
    owners: Ints
    before: Ints
    after: Ints
    kinds: Ints

    @classmethod
    def of(
        cls,
        *,
        names: list[str],
        old: tuple[Ints, list[pa.Array], Ints],
        new: tuple[Ints, list[pa.Array], Ints, Ints],
    ) -> Side:
        """``old``: owners, columns, weights of the state's rows; ``new``: the same and kinds of changes."""
        owners = np.concatenate([old[0], new[0]])
        before = np.concatenate([old[2], np.zeros(len(new[2]), np.int64)])
        after = np.concatenate([old[2], new[2]])
        kinds = np.concatenate([np.full(len(old[2]), UNMOVED, np.int64), new[3]])
        columns = [single(pa.chunked_array([a, b.cast(a.type)])) for a, b in zip(old[1], new[1], strict=True)]
        order = stable_order(owners)
        if len(old[2]) and (new[2] < 0).any():
            groups = group_rows(hash_columns(columns, len(owners)), columns)
            before, after = (np.add.reduceat(w[groups.order], groups.starts) for w in (before, after))
            kinds = np.maximum.reduceat(kinds[groups.order], groups.starts)
            heads = groups.heads
            owners = owners[heads]
            by_owner = stable_order(owners)
            before, after, kinds = before[by_owner], after[by_owner], kinds[by_owner]
            owners, order = owners[by_owner], heads[by_owner]
        else:
            before, after, kinds, owners = before[order], after[order], kinds[order], owners[order]
        picks = pa.array(order)
        table = pa.table([c.take(picks) for c in columns], names=names) if names else pa.table({})
        return cls(table, owners, before, after, kinds)

    def column(self, name: str) -> pa.Array:
        return single(self.table.column(name))

    def matches_by_key(self, other: Side, keys: int) -> tuple[Mask, Mask]:
        """Whether any row of ``other`` has the row's key, before and after."""
        before = np.bincount(other.owners, other.before, keys) > 0
        after = np.bincount(other.owners, other.after, keys) > 0
        return before[self.owners], after[self.owners]

    def matches_by_pair(self, other: Side, own_rows: Ints, other_rows: Ints) -> tuple[Mask, Mask]:
        """Whether any row of ``other`` that the pairs name is there, before and after."""
        size = len(self.owners)
        before = np.bincount(own_rows, other.before[other_rows], size) > 0
        after = np.bincount(own_rows, other.after[other_rows], size) > 0
        return before, after


def pairs_of(left: Side, right: Side, every: bool, residual: Residual | None) -> tuple[Ints, Ints]:
    """Row numbers of the pairs of equal key that pass the residual.

    ``every`` False: only pairs in which a row moved, which is all that an inner difference needs.
    """
    if every:
        parts = [_products(left, np.arange(len(left.owners)), right, np.arange(len(right.owners)))]
    else:
        moved, still = np.flatnonzero(left.kinds != UNMOVED), np.flatnonzero(left.kinds == UNMOVED)
        parts = [
            _products(left, moved, right, np.arange(len(right.owners))),
            _products(left, still, right, np.flatnonzero(right.kinds != UNMOVED)),
        ]
    i = np.concatenate([p[0] for p in parts])
    j = np.concatenate([p[1] for p in parts])
    if residual is None or len(i) == 0:
        return i, j
    columns = {n: left.column(n).take(pa.array(i)) for n in left.table.schema.names}
    columns |= {n: right.column(n).take(pa.array(j)) for n in right.table.schema.names}
    keep = residual.matches(pa.table(columns))
    return i[keep], j[keep]


def _products(left: Side, left_rows: Ints, right: Side, right_rows: Ints) -> tuple[Ints, Ints]:
    """All combinations of equal owner; both row lists ascend, so do their owners."""
    others = right.owners[right_rows]
    owners = left.owners[left_rows]
    first = np.searchsorted(others, owners, side="left")
    counts = np.searchsorted(others, owners, side="right") - first
    ends = np.cumsum(counts)
    total = int(ends[-1]) if len(ends) else 0
    i = np.repeat(left_rows, counts)
    offsets = np.arange(total) - np.repeat(ends - counts - first, counts)
    return i, right_rows[offsets]
