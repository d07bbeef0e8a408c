"""Scheduler pools: whose tasks begin first where there are fewer slots than work.

Spark gives a slot to the pool with the fewest tasks under way, and of several with as few (none, where there
are more of them than slots) to the first by name, always. With a name for as long as a job runs the last one
waits while others come and go. So a pool is one epoch's or one query's, and names go up in the order in which
these begin: what has waited longest is the first.

Spark never forgets a pool, and looks at all of them whenever a task may start: names are used again. Who has
one when they begin anew is passed by those that come then, but only once, as far as ``_MOST`` names allow.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from pyspark import SparkContext

POOL = "spark.scheduler.pool"
_ROUND, _MOST = 16, 64
"""After so many names they begin anew, if nobody was passed before; after so many they do in any case. More
where more are at work at a time."""


@dataclass(slots=True)
class Pools:
    """Numbers of pools; of those that are taken whether others have passed them."""

    _taken: dict[int, bool] = field(default_factory=dict)
    _last: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def take(self) -> int:
        with self._lock:
            at_work = len(self._taken)
            enough = max(_MOST, 4 * at_work) if any(self._taken.values()) else max(_ROUND, 2 * at_work)
            if self._last >= enough:
                self._last, self._taken = 0, dict.fromkeys(self._taken, True)
            self._last = next(n for n in count(self._last + 1) if n not in self._taken)
            self._taken[self._last] = False
            return self._last

    def give_back(self, number: int) -> None:
        with self._lock:
            del self._taken[number]


_POOLS = Pools()


@contextmanager
def in_turn(context: SparkContext) -> Iterator[None]:
    """What this thread runs within has a pool of its own, whose name stays set."""
    number = _POOLS.take()
    try:
        setter: Any = context.setLocalProperty
        setter(POOL, f"pool-{number:06}")
        yield
    finally:
        _POOLS.give_back(number)
