"""The distinct keys of an epoch, and the values stored by key with their counts, which retractions take back.

The state is a multiset of (key, values). Equal rows are interchangeable.
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


@dataclass(frozen=True, kw_only=True)
class Keys:
    """Distinct keys of an epoch, in the order of their hashes."""

    columns: list[pa.Array]
    hashes: Hashes

    @staticmethod
    def of(columns: list[pa.Array], hashes: Hashes) -> tuple[Keys, Ints]:
        """The keys of rows, and the number of each row's."""
        groups = group_rows(hashes, columns)
        numbers = np.empty(len(hashes), np.int64)
        numbers[groups.order] = groups.ids()
        heads = groups.heads
        return Keys(columns=[c.take(pa.array(heads)) for c in columns], hashes=hashes[heads]), numbers

    def take(self, numbers: Ints) -> list[pa.Array]:
        return [column.take(pa.array(numbers)) for column in self.columns]


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyedValues:
    """The distinct keys of an epoch, in the order of their hashes."""

    hashes: Hashes
    keys: list[pa.Array]

    def held(self, table: StateTable, key_numbers: Ints) -> tuple[Ints, pa.Table]:
        """The stored values of the keys ``key_numbers``: the key number of each, and a table of values."""
        picks = pa.array(key_numbers)
        owners, rows = table.gather(self.hashes[key_numbers], [k.take(picks) for k in self.keys])
        copies = np.repeat(np.arange(len(owners)), vector(rows.column(WEIGHT)).values)
        return key_numbers[owners[copies]], rows.take(pa.array(copies))

    def change(self, table: StateTable, owners: Ints, values: list[pa.Array], weights: Ints) -> None:
        """Adds ``weights`` of rows; equal ones are one entry."""
        picks = pa.array(owners)
        identity = [*(k.take(picks) for k in self.keys), *values]
        groups = group_rows(hash_columns(identity, len(owners)), identity)
        if groups.count == 0:
            return
        net = np.add.reduceat(weights[groups.order], groups.starts)
        heads = groups.heads[net != 0]
        identity = [column.take(pa.array(heads)) for column in identity]
        columns = {f.name: c for f, c in zip(table.layout.identity, identity, strict=True)}
        columns[WEIGHT] = to_arrow(Vec(net[net != 0]), pa.int64())
        table.put(table.layout.codes(self.hashes[owners[heads]], identity[len(self.keys) :]), columns)


def oldest_waiting(waiting: Ints, asking: Ints) -> Ints:
    """For each owner in ``asking`` the index of its longest waiting row in ``waiting``. Each waiting row is
    given once; -1 if none remains."""
    order = np.argsort(waiting, kind="stable")
    queue = waiting[order]
    first = np.searchsorted(queue, asking, "left")
    askers_in_order = np.argsort(asking, kind="stable")
    turn = np.empty(len(asking), np.int64)
    turn[askers_in_order] = np.arange(len(asking)) - np.searchsorted(
        asking[askers_in_order], asking[askers_in_order], "left"
    )
    queue_position = first + turn
    served = queue_position < np.searchsorted(queue, asking, "right")
    return np.where(served, order[np.where(served, queue_position, 0)] if len(order) else -1, -1)
