"""Driving an operator that works by event time: epochs with watermarks, state reopened at each."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import pyarrow as pa

from tests.operators.epochs import TINY
from tidemill.changelog.watermarks import NONE
from tidemill.operators.api import TIMER, EpochContext, OperatorSpec
from tidemill.state.store import StateStore


@dataclass
class TimedEpochs:
    root: str
    spec: OperatorSpec
    manifest: str | None = None
    number: int = 0
    mark: int = NONE
    late: int = 0
    timer: int | None = None

    def step(self, *inputs: pa.Table, mark: int, reached: int = NONE, time: int = 0) -> pa.Table:
        """The output of an epoch at processing time ``time`` after which time has come to ``mark``;
        ``reached``: but for the end."""
        store = StateStore.open(self.root, "op", 0, self.manifest, self.number, options=TINY)
        context = EpochContext(
            epoch=self.number, time=time, partition=0, watermark=mark, before=self.mark, reached=reached
        )
        output = self.spec.step(inputs, store, context)
        assert output.schema.equals(self.spec.output_schema())
        self.manifest, self.mark = store.flush(), mark
        self.number += 1
        self.late += context.late.count
        self.timer = context.notes.get(TIMER)
        return output


def pieces(size: int, cuts: list[int]) -> list[tuple[int, int]]:
    """``size`` rows cut at ``cuts``, those that there are: (first, one behind the last)."""
    return list(pairwise([0, *sorted(c for c in cuts if c <= size), size]))
