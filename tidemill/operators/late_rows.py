"""Late rows of an operator: their number and, on request, the rows."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from tidemill.changelog.columns import Ints, Mask


@dataclass(slots=True)
class LateRows:
    """The late rows of one step. ``wanted``: whether the rows themselves are kept."""

    wanted: bool = False
    count: int = 0
    rows: list[pa.Table] = field(default_factory=list)

    def add(self, table: pa.Table, late: Mask, sizes: Ints | None = None) -> None:
        """Adds the ``late`` rows of ``table``. ``sizes``: the number of rows that each stands for; default
        1."""
        if late.any():
            self.count += int(np.count_nonzero(late) if sizes is None else sizes[late].sum())
            if self.wanted:
                self.rows.append(table.filter(pa.array(late)))
