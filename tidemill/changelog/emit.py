"""From results before and after to changelog rows: one net change per key."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tidemill.changelog.columns import Ints, Mask, Vec, single, to_arrow
from tidemill.changelog.rowkind import RowKind
from tidemill.changelog.values import rows_same

Kinds = npt.NDArray[np.int8]

_LAST_KIND = np.array([-1, RowKind.INSERT, RowKind.DELETE, RowKind.UPDATE_AFTER], np.int8)
"""The kind of a key's last row by whether it existed before (2) and exists after (1)."""


@dataclass(frozen=True, slots=True)
class Changes:
    """Row i has the result of key ``owners[i]``: after the epoch if ``after[i]``, otherwise before it."""

    owners: Ints
    after: Mask
    kinds: Kinds

    def kind_column(self) -> pa.Array:
        return to_arrow(Vec(self.kinds), pa.int8())

    def pick(self, before: pa.Array | None, after: pa.Array) -> pa.Array:
        """The output column; ``before`` may be None if no row needs it."""
        if before is None or self.after.all():
            return after.take(pa.array(self.owners))
        both = single(pa.chunked_array([before, after], after.type))
        return both.take(pa.array(np.where(self.after, self.owners + len(before), self.owners)))


def net_changes(existed: Mask, exists: Mask, same: Mask, update_before: bool) -> Changes:
    """+I for a new key, -D for a deleted key, (-U and) +U for a key with another result."""
    update = existed & exists & ~same
    changed = update | (existed != exists)
    counts = changed.astype(np.int64) + (update if update_before else 0)
    owners = np.repeat(np.arange(len(existed)), counts)
    final = np.zeros(len(owners), np.bool_)
    final[np.cumsum(counts)[changed] - 1] = True
    kinds = _LAST_KIND[2 * existed.view(np.int8) + exists.view(np.int8)][owners]
    kinds[~final] = RowKind.UPDATE_BEFORE
    return Changes(owners, final & exists[owners], kinds)


def unchanged(before: list[pa.Array], after: list[pa.Array], rows: int) -> Mask:
    """The mask of results that do not change, so nothing is emitted for them."""
    everyone = np.arange(rows)
    return rows_same(before, everyone, after, everyone)


def changed_bits(before: list[pa.Array], after: list[pa.Array], rows: int) -> Ints:
    """The changed columns of each result as bits: bit i is column i."""
    bits = np.zeros(rows, np.int64)
    for column, (a, b) in enumerate(zip(before, after, strict=True)):
        bits |= (~unchanged([a], [b], rows)).astype(np.int64) << column
    return bits
