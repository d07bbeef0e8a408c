"""Values that are kept by key, each as often as it came: what rows that go take back.

The state is a multiset of (key, values); any of equal rows may go for any other.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from tidemill.changelog.columns import Hashes, Ints, Vec, to_arrow, vector
from tidemill.changelog.grouping import group_rows
from tidemill.changelog.hashing import hash_columns
from tidemill.state.run import WEIGHT
from tidemill.state.table import StateTable


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyedValues:
    """The distinct keys of an epoch, in the order of their hashes."""

    hashes: Hashes
    keys: list[pa.Array]

    def held(self, kept: StateTable, wanted: Ints) -> tuple[Ints, pa.Table]:
        """What state holds of the ``wanted`` ones: whose it is, and a row of values for each."""
        picks = pa.array(wanted)
        owners, rows = kept.gather(self.hashes[wanted], [k.take(picks) for k in self.keys])
        copies = np.repeat(np.arange(len(owners)), vector(rows.column(WEIGHT)).values)
        return wanted[owners[copies]], rows.take(pa.array(copies))

    def change(self, kept: StateTable, owners: Ints, values: list[pa.Array], weights: Ints) -> None:
        """Adds ``weights`` of rows; equal ones are one entry."""
        picks = pa.array(owners)
        identity = [*(k.take(picks) for k in self.keys), *values]
        groups = group_rows(hash_columns(identity, len(owners)), identity)
        if groups.count == 0:
            return
        net = np.add.reduceat(weights[groups.order], groups.starts)
        heads = groups.heads[net != 0]
        identity = [column.take(pa.array(heads)) for column in identity]
        columns = {f.name: c for f, c in zip(kept.layout.identity, identity, strict=True)}
        columns[WEIGHT] = to_arrow(Vec(net[net != 0]), pa.int64())
        kept.put(kept.layout.codes(self.hashes[owners[heads]], identity[len(self.keys) :]), columns)


def first_come(waiting: Ints, asking: Ints) -> Ints:
    """Per row that asks (by whom it is of) the place of the row of the same that has waited longest, each
    given once; -1 where there is none left."""
    order = np.argsort(waiting, kind="stable")
    queue = waiting[order]
    first = np.searchsorted(queue, asking, "left")
    asked = np.argsort(asking, kind="stable")
    turn = np.empty(len(asking), np.int64)
    turn[asked] = np.arange(len(asking)) - np.searchsorted(asking[asked], asking[asked], "left")
    place = first + turn
    served = place < np.searchsorted(queue, asking, "right")
    return np.where(served, order[np.where(served, place, 0)] if len(order) else -1, -1)
