"""Regular joins of two changelogs: inner, left, right, full, semi and anti, with a residual condition.

State: the rows of each side by join key (``join.state``). In an epoch each side is a set of rows with a
weight before and a weight after. The output is the difference between the join of the "after" sides and the
join of the "before" sides, computed only for touched keys:

- If only the left side touched a key, the join needs the right side's rows of the key, but only the changed
  rows of the left side, because their contribution is linear; and vice versa.
- A row of an outer, semi or anti side depends on whether anything matches it. So if the other side changed,
  all rows of the key are read, and their matches are counted before and after.

Cost per epoch: the needed rows of the touched keys, and their pairs. A NULL in a key that is not null-safe
matches nothing; such rows are not stored.
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from tidemill.operators.api import EpochContext
from tidemill.operators.join.shape import JoinShape
from tidemill.operators.join.step import JoinStep
from tidemill.state.store import StateStore


@dataclass(frozen=True, kw_only=True)
class JoinSpec(JoinShape):
    """The kernel of a regular join."""

    def step(self, inputs: tuple[pa.Table, ...], state: StateStore, epoch: EpochContext) -> pa.Table:
        """The net change of the join."""
        state.now = epoch.time
        return JoinStep(self, state, epoch).run(*inputs)

    def take_in(self, port: int, rows: pa.Table, state: StateStore, epoch: EpochContext) -> None:
        """See ``operators.api.TakesRows``."""
        state.now = epoch.time
        nothing = pa.schema(self.sides[1 - port].columns).empty_table()
        left, right = (rows, nothing) if port == 0 else (nothing, rows)
        JoinStep(self, state, epoch, shows=False).run(left, right)
