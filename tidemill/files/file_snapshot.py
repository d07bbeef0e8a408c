"""A statement's snapshot of files: each table as it was when the statement first looked at it.

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
def file_snapshot() -> Iterator[None]:
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
    """The result of the first ``look`` at ``place``; outside of ``file_snapshot`` each call looks. Errors of
    ``look`` are not remembered."""
    seen = _MEMORY.seen
    if seen is None:
        return look()
    found = seen.get(place, _UNSEEN)
    if found is _UNSEEN:
        found = seen[place] = look()
    return cast(T, found)
