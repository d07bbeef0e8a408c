"""Timers: when operators need an epoch even without rows. Each operator has one next timer per partition.

An operator that did not run keeps its timer. A timer is due in the first epoch whose processing time
has reached it. Then all partitions of its operator run, with or without rows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tidemill.operators.api import TIMER

Timers = dict[str, dict[str, int]]
"""Processing times in ms by operator and partition."""


def updated(timers: Timers, report: Mapping[str, Mapping[str, Any]]) -> Timers:
    """``timers`` after an epoch with these reports of its tasks."""
    made = {operator: dict(parts) for operator, parts in timers.items()}
    for task in report.values():
        parts = made.setdefault(task["operator"], {})
        parts.pop(str(task["partition"]), None)
        if task.get(TIMER) is not None:
            parts[str(task["partition"])] = task[TIMER]
    return {operator: parts for operator, parts in made.items() if parts}


def due(timers: Timers, time: int) -> frozenset[str]:
    """The operators whose timers are due at ``time``."""
    return frozenset(operator for operator, parts in timers.items() if min(parts.values()) <= time)


def earliest(timers: Timers) -> int | None:
    return min((min(parts.values()) for parts in timers.values()), default=None)


def spread(timers: Timers, partitions: Callable[[str], int]) -> Timers:
    """The timers for an operator that now has another number of ``partitions``."""
    return {
        operator: {str(place): min(parts.values()) for place in range(partitions(operator))}
        for operator, parts in timers.items()
    }
