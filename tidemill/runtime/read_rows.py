"""How many rows of its sources an epoch has read, by the reports of its tasks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

READ = "read"
"""Only the report of a task that reads a source has this: the number of rows."""


def rows_read(report: Mapping[str, Mapping[str, Any]]) -> int | None:
    """Rows of all sources; None where none of them is read by tasks of ours."""
    counts = read_of(list(report.values()))
    return sum(counts.values()) if counts else None


def read_of(tasks: Iterable[Mapping[str, Any]]) -> dict[str, int]:
    """By source, of those that tasks of ours read."""
    counts: dict[str, dict[str, int]] = {}
    for task in tasks:
        if READ in task:
            readings = counts.setdefault(task["operator"], {})
            readings[task["reading"]] = readings.get(task["reading"], 0) + task[READ]
    return {source: max(readings.values()) for source, readings in counts.items()}


def is_reading(task: Mapping[str, Any]) -> bool:
    """Whether a task's report is one of reading, which touches no state."""
    return READ in task
