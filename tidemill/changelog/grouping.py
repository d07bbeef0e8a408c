"""Groups equal keys: sorts by hash, verifies by value, splits collisions.

Cost: one sort of 64-bit hashes, one comparison per row; keys whose hashes collide cost one more
round of comparisons for each further distinct key of that hash.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from tidemill.changelog.columns import Hashes, Ints, Mask
from tidemill.changelog.values import rows_same

_FEW = 64
_SAMPLE = 1024
_PACKED_BITS = 22


@dataclass(frozen=True, slots=True)
class Groups:
    """``order``: row numbers, equal keys contiguous and in input order within a key, hashes ascending.

    ``starts[g]`` is the first index of group g in ``order``; ``heads[g]`` is its row number.
    """

    order: Ints
    starts: Ints

    @property
    def count(self) -> int:
        return len(self.starts)

    @property
    def heads(self) -> Ints:
        return self.order[self.starts]

    @property
    def sizes(self) -> Ints:
        return np.diff(self.starts, append=len(self.order))

    def ids(self) -> Ints:
        """The group of each index in ``order``."""
        return np.repeat(np.arange(self.count), self.sizes)


def group_rows(hashes: Hashes, keys: Sequence[pa.Array]) -> Groups:
    """Groups of equal keys. Equal keys must have equal ``hashes``."""
    order = sort_order(hashes)
    ordered = hashes[order]
    fresh = np.ones(len(order), np.bool_)
    np.not_equal(ordered[1:], ordered[:-1], out=fresh[1:])
    return group_ordered(order, fresh, keys)


def group_ordered(order: Ints, fresh: Mask, keys: Sequence[pa.Array]) -> Groups:
    """Groups of rows that are sorted so that equal keys are close; ``fresh``: the sort value is a new one."""
    starts = np.flatnonzero(fresh)
    if len(starts) == len(order) or not keys:
        return Groups(order, starts)
    followers = np.flatnonzero(~fresh)
    leader = starts[np.cumsum(fresh) - 1][followers]
    same = rows_same(keys, order[followers], keys, order[leader])
    if same.all():
        return Groups(order, starts)
    return _split(order, fresh, followers[~same], keys)


def sort_order(hashes: Hashes) -> Ints:
    """A stable sort order; linear when the input is a few sorted pieces or has few distinct values."""
    if len(hashes) > 4 * _SAMPLE and not _in_pieces(hashes):
        sample = hashes[:: len(hashes) // _SAMPLE]
        if len(np.unique(sample)) <= _FEW:
            distinct, codes = _encode(hashes)
            if len(distinct) <= np.iinfo(np.uint16).max:
                rank = np.empty(len(distinct), np.uint16)
                rank[np.argsort(distinct)] = np.arange(len(distinct), dtype=np.uint16)
                return np.argsort(rank[codes], kind="stable")
        packed = _packed_order(hashes)
        if packed is not None:
            return packed
    return np.argsort(hashes, kind="stable")


def _in_pieces(hashes: Hashes) -> bool:
    """Whether the rows look like a few sorted runs, which the stable sort merges in linear time."""
    head = hashes[:_SAMPLE]
    return bool((head[1:] >= head[:-1]).all())


def _packed_order(hashes: Hashes) -> Ints | None:
    """The order from one sort of (upper bits of the hash, row number) words, a third faster than an
    indirect sort; None if those bits do not tell all hashes apart."""
    bits = np.uint64(max(len(hashes) - 1, 1).bit_length())
    if bits > _PACKED_BITS:
        return None
    low = (np.uint64(1) << bits) - np.uint64(1)
    words = (hashes & ~low) | np.arange(len(hashes), dtype=np.uint64)
    words.sort()
    order: Ints = (words & low).view(np.int64)
    ordered = hashes[order]
    return order if (ordered[1:] >= ordered[:-1]).all() else None


def _encode(hashes: Hashes) -> tuple[Hashes, Ints]:
    encoded = pa.array(hashes).dictionary_encode()
    return encoded.dictionary.to_numpy(zero_copy_only=False), encoded.indices.to_numpy()


def _split(order: Ints, fresh: Mask, strangers: Ints, keys: Sequence[pa.Array]) -> Groups:
    """Gives every further key of a colliding hash its own group, by rounds of leader comparison."""
    segment = np.cumsum(fresh) - 1
    rank = np.zeros(len(order), np.int64)
    pending, round_ = strangers, 0
    while len(pending):
        round_ += 1
        first = np.ones(len(pending), np.bool_)
        np.not_equal(segment[pending[1:]], segment[pending[:-1]], out=first[1:])
        leader = pending[np.flatnonzero(first)[np.cumsum(first) - 1]]
        same = rows_same(keys, order[pending], keys, order[leader])
        rank[pending] = round_
        pending = pending[~same]
    mixed = np.zeros(segment[-1] + 1, np.bool_)
    mixed[segment[strangers]] = True
    positions = np.flatnonzero(mixed[segment])
    sorted_positions = positions[np.lexsort((rank[positions], segment[positions]))]
    order, rank = order.copy(), rank.copy()
    order[positions], rank[positions] = order[sorted_positions], rank[sorted_positions]
    fresh[1:] = (segment[1:] != segment[:-1]) | (rank[1:] != rank[:-1])
    return Groups(order, np.flatnonzero(fresh))
