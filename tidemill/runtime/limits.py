"""Ends a job whose LIMITs are full, whatever its sources still hold.

    SELECT * FROM t LIMIT 3      ends with the epoch that brings the third row

An append-only LIMIT (``operators.api.Limited``) is full once its state holds its rows. Nodes that only
read full operators never change again. So if this holds for all outputs, the job ends with the epoch
that filled the LIMITs. Such a job also begins with small epochs that grow: LIMIT 3 does not read a
whole first epoch.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from tidemill.connectors.api import ReadLimit
from tidemill.operators.api import Limited
from tidemill.runtime import graph as g

FIRST_BYTES = 1 << 20
GROWTH = 8


@dataclass(slots=True)
class Limits:
    """The LIMITs below a job's outputs. It learns the sizes of their states epoch by epoch."""

    outputs: Sequence[g.ExecNode]
    _wanted: dict[str, int] = field(init=False)
    _full: set[str] = field(default_factory=set)
    _epochs: int = 0

    def __post_init__(self) -> None:
        self._wanted = {
            node.operator: limit
            for output in self.outputs
            for node in output.walk()
            if isinstance(node, g.Keyed) and (limit := _limit(node)) is not None
        }

    def hear(self, report: Mapping[str, Mapping[str, Any]]) -> None:
        """Takes the report of an epoch. A LIMIT is one partition, so one task knows its whole state."""
        self._epochs += 1
        for task in report.values():
            if task["state_rows"] >= self._wanted.get(task["operator"], task["state_rows"] + 1):
                self._full.add(task["operator"])

    @property
    def reached(self) -> bool:
        """Whether no output can change any more."""
        return all(_stands_on(output, self._full) for output in self.outputs)

    def cut(self, limit: ReadLimit) -> ReadLimit:
        """How much the next epoch may take, if the job may end before its sources do."""
        if not all(_stands_on(output, self._wanted) for output in self.outputs):
            return limit
        small = FIRST_BYTES * GROWTH**self._epochs
        return replace(limit, bytes=small if limit.bytes is None else min(small, limit.bytes))


def _limit(node: g.Keyed) -> int | None:
    spec: object = node.spec
    return spec.limit if isinstance(spec, Limited) else None


def _stands_on(node: g.ExecNode, operators: set[str] | Mapping[str, int]) -> bool:
    """Whether every row of ``node`` comes through one of ``operators``."""
    seen: set[int] = set()
    waiting = [node]
    while waiting:
        below = waiting.pop()
        if id(below) in seen or (isinstance(below, g.Keyed) and below.operator in operators):
            continue
        if not below.inputs:
            return False
        seen.add(id(below))
        waiting += below.inputs
    return True
