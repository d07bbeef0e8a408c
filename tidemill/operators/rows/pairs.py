"""The distinct (key, value) pairs of an epoch, for DISTINCT, retractable MIN/MAX and multisets."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from tidemill.changelog.columns import Hashes, Ints, Mask, Vec, to_arrow
from tidemill.changelog.grouping import Groups, group_rows
from tidemill.changelog.hashing import hash_columns, pair_code
from tidemill.operators.rows.grouped import GroupedRows


@dataclass(frozen=True, slots=True)
class Pairs:
    """Distinct pairs in ascending code order.

    ``places``: the places (in group order) of the rows taken in; ``groups`` is over them. ``owners``: the key
    group of each pair. ``identity``: key columns, then value columns, one row per pair.
    """

    places: Ints
    groups: Groups
    codes: Hashes
    owners: Ints
    identity: list[pa.Array]

    @property
    def heads(self) -> Ints:
        """Each pair's first place in group order."""
        return self.places[self.groups.heads]

    def sums(self, weights: Ints | None) -> Ints:
        """Total weight per pair; ``weights`` in group order, None: all +1."""
        if weights is None:
            return self.groups.sizes
        total: Ints = np.add.reduceat(weights[self.places][self.groups.order], self.groups.starts)
        return total

    def take(self, chosen: Ints) -> tuple[Hashes, list[pa.Array]]:
        """Codes and identity of some pairs."""
        rows = pa.array(chosen)
        return self.codes[chosen], [column.take(rows) for column in self.identity]


def pair_rows(rows: GroupedRows, args: tuple[str, ...], keep: Mask | None) -> Pairs:
    """The distinct pairs of (key, ``args``) among the rows where ``keep`` holds."""
    owner = rows.groups.ids()
    columns = [rows.array(arg) for arg in args]
    if keep is None or keep.all():
        positions = np.arange(len(owner))
    else:
        positions = np.flatnonzero(keep)
        owner = owner[positions]
        columns = [column.take(pa.array(positions)) for column in columns]
    codes = pair_code(rows.hashes[owner], hash_columns(columns, len(owner)))
    groups = group_rows(codes, [to_arrow(Vec(owner), pa.int64()), *columns])
    heads = groups.heads
    owners, picks = owner[heads], pa.array(heads)
    keys = [key.take(pa.array(owners)) for key in rows.keys]
    return Pairs(
        positions, groups, codes[heads], owners, [*keys, *(column.take(picks) for column in columns)]
    )
