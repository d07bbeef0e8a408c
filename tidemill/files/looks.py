"""What a statement sees of files: each table as it was when it was first looked at, however often it is read.

A plan asks how large a table is, and then each of its scans what to read. Between two looks a writer may come
in: two scans of one table would see different rows, and every look is a call for each of its directories.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar, cast

T = TypeVar("T")


class _Memory(threading.local):
    seen: dict[Hashable, Any] | None = None


_MEMORY = _Memory()
_UNSEEN = object()


@contextmanager
def one_look() -> Iterator[None]:
    """Within, this thread looks at a place once. What is written within is not seen by ``seen_once``."""
    if _MEMORY.seen is not None:
        yield
        return
    _MEMORY.seen = {}
    try:
        yield
    finally:
        _MEMORY.seen = None


def seen_once(look: Callable[[], T], place: Hashable) -> T:
    """What ``look`` found at ``place`` the first time; each time anew outside of ``one_look``. What it raises
    is not remembered."""
    seen = _MEMORY.seen
    if seen is None:
        return look()
    found = seen.get(place, _UNSEEN)
    if found is _UNSEEN:
        found = seen[place] = look()
    return cast(T, found)
