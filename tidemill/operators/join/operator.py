"""Regular joins of two changelogs: inner, left, right, full, semi and anti, with a residual condition.

State: the rows of each side by join key (``join_state``). Within an epoch each side is a set of weighted
rows with a weight before and after; the output is the difference of the join of the two "after" sides
and the join of the two "before" sides, computed on touched keys only:

- a key that only the left side touched needs the right side's rows of that key, but of the left only
  the changed rows (their contribution is linear), and the other way round;
- an outer, semi or anti side is shown with NULLs (or not at all) while nothing matches it, so where
  the other side changed its rows of the key are gathered too, and whether a row is matched is asked
  before and after.

Cost per epoch: the touched keys' rows of the sides that are needed, and the pairs they form. NULL in a
key that is not null-safe matches nothing; such rows are not kept in state.
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
