"""Rows that came too late to count: how many, and where they are wanted the rows themselves."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from tidemill.changelog.columns import Ints, Mask


@dataclass(slots=True)
class LateRows:
    """Of one operator's step; ``wanted``: the rows are kept, as they came."""

    wanted: bool = False
    count: int = 0
    rows: list[pa.Table] = field(default_factory=list)

    def add(self, table: pa.Table, late: Mask, sizes: Ints | None = None) -> None:
        """The ``late`` rows of ``table``; ``sizes``: how many rows each stands for, where it is not one."""
        if late.any():
            self.count += int(np.count_nonzero(late) if sizes is None else sizes[late].sum())
            if self.wanted:
                self.rows.append(table.filter(pa.array(late)))
