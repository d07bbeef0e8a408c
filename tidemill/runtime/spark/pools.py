"""Scheduler pools: whose tasks begin first if there are fewer slots than work.

Spark gives a slot to the pool with the fewest tasks under way. If several pools have as few (none, if there
are more pools than slots), the first one by name gets it. With a name for as long as a job runs, the last one
would wait while others come and go. So a pool is one epoch's or one query's, and names go up in the order in
which these begin: what has waited longest is the first. A name is never used again.

Spark keeps a pool for ever, and looks at all of them whenever a task may start. So pools are removed when
their work is done.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from pyspark import SparkContext

from tidemill.spark_internals.errors import JavaError
from tidemill.spark_internals.scheduler import remove_idle_pool

POOL = "spark.scheduler.pool"
_LOOKS = 3
"""How many pools of earlier work are looked at, whenever a piece of work is done."""


@dataclass(slots=True)
class Pools:
    _numbers: Iterator[int] = field(default_factory=lambda: count(1))
    _done: deque[str] = field(default_factory=deque)
    """Pools whose work is done. A task of it may still be under way: that of a query that was given up."""
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def take(self) -> str:
        with self._lock:
            return f"pool-{next(self._numbers):012}"

    def give_back(self, context: SparkContext, name: str) -> None:
        with self._lock:
            self._done.append(name)
            looked_at = [self._done.popleft() for _ in range(min(_LOOKS, len(self._done)))]
        kept = [done for done in looked_at if not remove_idle_pool(context, done)]
        with self._lock:
            self._done.extend(kept)


_POOLS = Pools()


@contextmanager
def in_turn(context: SparkContext) -> Iterator[None]:
    """What this thread runs within has a pool of its own."""
    name = _POOLS.take()
    setter: Any = context.setLocalProperty
    try:
        setter(POOL, name)
        yield
    finally:
        with suppress(JavaError, OSError):  # Spark itself has ended
            setter(POOL, None)
            _POOLS.give_back(context, name)
