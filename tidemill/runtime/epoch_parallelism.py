"""How many partitions the operators of an epoch have: one if the epoch is small, otherwise all.

A task takes some milliseconds beside the work on its rows, so one task is done with a few thousand rows
sooner than a task for each partition. Between two epochs the state is sliced anew, as it is when a job starts
with another parallelism: no row is rewritten.

An operator that works by time may let go of all of its state in an epoch that reads little, so this state
counts, too.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from math import inf
from typing import Any

from tidemill.runtime import graph as g
from tidemill.runtime.spark.epoch.reads import Reads
from tidemill.state.slices import Slices, resliced

CALM_EPOCHS = 8
"""So many small epochs follow a large one before operators have one partition again."""
STATE_PER_READ = 16
"""An epoch reads and writes rows of state so many times as fast as it decodes and aggregates rows."""


@dataclass(slots=True, kw_only=True)
class EpochParallelism:
    """``most``: the job's parallelism. ``small_bytes``: the most bytes that a small epoch reads; 0: no epoch
    is small. ``timed``: the operators that work by time. ``single``: those that have one partition in every
    epoch. ``now``: the partitions of the current epoch."""

    most: int
    small_bytes: int
    timed: frozenset[str]
    single: frozenset[str] = frozenset()
    now: int = field(init=False)
    _state: dict[str, float] = field(default_factory=dict)
    """Bytes of the state of operators that work by time."""
    _is_small: bool = False
    _left: int = 0
    """Epochs that have all partitions, whatever they read."""

    def __post_init__(self) -> None:
        self.now = self.most

    @classmethod
    def of_nodes(cls, nodes: Iterable[g.ExecNode], most: int, small_bytes: int) -> EpochParallelism:
        keyed = [node for node in nodes if isinstance(node, g.Keyed)]
        timed = frozenset(node.operator for node in keyed if node.works_by_time or node.clocked)
        single = frozenset(node.operator for node in keyed if node.single)
        return cls(most=most, small_bytes=small_bytes, timed=timed, single=single)

    def of_operator(self, operator: str) -> int:
        return 1 if operator in self.single else self.now

    def resliced(self, state: Slices) -> Slices:
        """The state by the partitions of now. Another number of partitions may have written it."""
        return {op: resliced(parts, self.of_operator(op)) for op, parts in state.items()}

    def resume(self) -> None:
        """The job has state, and nobody has said how much."""
        self._state = dict.fromkeys(self.timed, inf)

    def of_epoch(self, reads: Reads) -> int:
        """The partitions of an epoch that ``reads`` this."""
        if not self.small_bytes:
            return self.most
        held = sum(self._state.values()) / STATE_PER_READ
        self._is_small = reads.size is not None and reads.size + held <= self.small_bytes
        return 1 if self.is_small else self.most

    @property
    def is_small(self) -> bool:
        """Whether that epoch is run as a small one."""
        return self._is_small and not self._left

    def hear(self, report: Mapping[str, Mapping[str, Any]]) -> None:
        """Takes the report of the tasks of that epoch."""
        self._left = max(0, self._left - 1) if self._is_small else CALM_EPOCHS
        found: dict[str, float] = {}
        for task in report.values():
            if task["operator"] in self.timed:
                found[task["operator"]] = found.get(task["operator"], 0) + task["state_bytes"]
        self._state |= found
