"""What was used last, within bounds: by number, and by a weight of each."""

from __future__ import annotations

import sys
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

V = TypeVar("V")


@dataclass(slots=True, kw_only=True)
class LastUsed(Generic[V]):
    """For any number of threads. ``most``: how many are kept; ``heaviest``: what they may weigh together. The
    one that was used last is kept whatever it weighs."""

    most: int
    heaviest: int = sys.maxsize
    weight: Callable[[V], int] = lambda value: 1
    _found: OrderedDict[Hashable, V] = field(default_factory=OrderedDict)
    _weighs: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def get(self, key: Hashable) -> V | None:
        """Using it."""
        with self._lock:
            found = self._found.get(key)
            if found is not None:
                self._found.move_to_end(key)
            return found

    def keep(self, key: Hashable, value: V) -> None:
        with self._lock:
            self._drop(key)
            self._found[key] = value
            self._weighs += self.weight(value)
            while len(self._found) > 1 and (len(self._found) > self.most or self._weighs > self.heaviest):
                self._drop(next(iter(self._found)))

    def _drop(self, key: Hashable) -> None:
        gone = self._found.pop(key, None)
        if gone is not None:
            self._weighs -= self.weight(gone)
