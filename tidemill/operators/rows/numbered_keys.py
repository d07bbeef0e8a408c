"""The distinct keys of an epoch's rows, numbered."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from tidemill.changelog.columns import Hashes, Ints
from tidemill.changelog.grouping import group_rows


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
