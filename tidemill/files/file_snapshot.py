"""A statement's snapshot of file listings: each table as it was at the statement's first listing.

The planner needs the size of a table, and each of its scans the files. If a writer came between two listings,
two scans of one table would see different rows. Besides, each listing costs a call per directory.
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
    """Within the context, ``seen_once`` caches its results for this thread, so it does not see later
    writes."""
    if _MEMORY.seen is not None:
        yield
        return
    _MEMORY.seen = {}
    try:
        yield
    finally:
        _MEMORY.seen = None


def seen_once(look: Callable[[], T], place: Hashable) -> T:
    """The result of the first ``look()`` for the key ``place``. Outside of ``file_snapshot`` each call looks.
    Errors of ``look`` are not cached."""
    results = _MEMORY.seen
    if results is None:
        return look()
    result = results.get(place, _UNSEEN)
    if result is _UNSEEN:
        result = results[place] = look()
    return cast(T, result)
