"""A statement's snapshot of file listings: each table as it was at the statement's first listing.

The planner needs the size of a table, and each of its scans the files. If a writer came between two listings,
two scans of one table would see different rows. Besides, each listing costs a call per directory.

There is one snapshot per batch statement: a snapshot within another one is the outer one. Only a statement
set in batch mode has one per INSERT. Its INSERTs run one after another, and an INSERT reads what the former
ones have written. A streaming job has none: it lists its files for each epoch.

``connectors.filesystem.listing`` keeps listings beyond a statement. It validates a kept listing when a
snapshot first asks for it, so it is no second snapshot.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar, cast

T = TypeVar("T")


_SEEN: ContextVar[dict[Hashable, Any] | None] = ContextVar("file_snapshot", default=None)
_UNSEEN = object()


@contextmanager
def file_snapshot() -> Iterator[None]:
    """Within the context, ``seen_once`` caches its results for this thread and its ``deep_calls``, so it does
    not see later writes."""
    if _SEEN.get() is not None:
        yield
        return
    token = _SEEN.set({})
    try:
        yield
    finally:
        _SEEN.reset(token)


def seen_once(look: Callable[[], T], place: Hashable) -> T:
    """The result of the first ``look()`` for the key ``place``. Outside of ``file_snapshot`` each call looks.
    Errors of ``look`` are not cached."""
    results = _SEEN.get()
    if results is None:
        return look()
    result = results.get(place, _UNSEEN)
    if result is _UNSEEN:
        result = results[place] = look()
    return cast(T, result)
