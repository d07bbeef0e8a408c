"""Spark's work under a name, so that another thread can give it up, in a scheduler pool of its own.

Spark never forgets a pool, and looks at all of them whenever a task may start: pools are numbered and used
again, so that there are as many as there were groups at work at a time.
"""

from __future__ import annotations

import heapq
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from pyspark import SparkContext

_GROUP = ("spark.jobGroup.id", "spark.job.description", "spark.job.interruptOnCancel")
_POOL = "spark.scheduler.pool"


@dataclass(slots=True)
class _Pools:
    """The smallest number that is free."""

    _free: list[int] = field(default_factory=list)
    _made: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def take(self) -> int:
        with self._lock:
            if self._free:
                return heapq.heappop(self._free)
            self._made += 1
            return self._made

    def give_back(self, number: int) -> None:
        with self._lock:
            heapq.heappush(self._free, number)


_POOLS = _Pools()


@contextmanager
def grouped(context: SparkContext, group: str, name: str) -> Iterator[None]:
    """What this thread runs within belongs to ``group``; '' is no group, and no pool."""
    if not group:
        yield
        return
    pool = _POOLS.take()
    context.setJobGroup(group, name, interruptOnCancel=True)
    _set(context, _POOL, f"pool-{pool}")
    try:
        yield
    finally:
        for key in (*_GROUP, _POOL):
            _set(context, key, None)
        _POOLS.give_back(pool)


def give_up(context: SparkContext, group: str) -> None:
    """Ends the group's Spark jobs, those that are about to start among them; returns at once. A group that
    was given up runs nothing any more."""
    java: Any = context._jsc
    java.sc().cancelJobGroupAndFutureJobs(group, "it was cancelled")


def give_up_here(group: str) -> None:
    """As ``give_up``, in this process's Spark; nothing where none runs."""
    context = SparkContext._active_spark_context
    if context is not None:
        give_up(context, group)


def _set(context: SparkContext, key: str, value: str | None) -> None:
    setter: Any = context.setLocalProperty
    setter(key, value)
