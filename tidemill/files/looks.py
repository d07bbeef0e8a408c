"""What a statement sees of files: each table as it was when it was first looked at, however often it is read.

A plan asks how large a table is, and then each of its scans what to read. Between two looks a writer may come
in: two scans of one table would see different rows, and every look is a call for each of its directories.

What is known from before may be believed until somebody has looked: another thread does while the statement
is planned. Where it was wrong, the statement begins again, and looks first.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar, cast

T = TypeVar("T")


class Outdated(Exception):
    """What a statement believed is not so."""


@dataclass(slots=True, kw_only=True)
class _Look:
    """``believes``: what is known may be taken for what is there; ``asked``: whether it was right."""

    believes: bool
    seen: dict[Hashable, Any] = field(default_factory=dict)
    asked: list[Future[bool]] = field(default_factory=list)
    _beside: ThreadPoolExecutor | None = None

    def ask(self, holds: Callable[[], bool]) -> None:
        self._beside = self._beside or ThreadPoolExecutor(1, "tidemill-looks")
        self.asked.append(self._beside.submit(holds))

    def end(self) -> None:
        if self._beside is not None:
            self._beside.shutdown(wait=False)


class _Memory(threading.local):
    look: _Look | None = None


_MEMORY = _Memory()
_UNSEEN = object()


@contextmanager
def one_look() -> Iterator[None]:
    """Within, this thread looks at a place once. What is written within is not seen by ``seen_once``."""
    with _looking(_Look(believes=False)):
        yield


def with_one_look(do: Callable[[], T]) -> T:
    """What ``do`` gives within ``one_look``, in which it may believe what is known. ``do`` begins anew where
    that was wrong: before ``check_believed`` it must do nothing that cannot be done twice."""
    try:
        with _looking(_Look(believes=True)):
            found = do()
            check_believed()
            return found
    except Outdated:
        if _MEMORY.look is not None:
            raise
    with one_look():
        return do()


@contextmanager
def _looking(look: _Look) -> Iterator[None]:
    if _MEMORY.look is not None:
        yield
        return
    _MEMORY.look = look
    try:
        yield
    except Exception:
        check_believed()  # what went wrong may have gone wrong for it
        raise
    finally:
        _MEMORY.look = None
        look.end()


def seen_once(look: Callable[[], T], place: Hashable) -> T:
    """What ``look`` found at ``place`` the first time; each time anew outside of ``one_look``. What it raises
    is not remembered."""
    if _MEMORY.look is None:
        return look()
    seen = _MEMORY.look.seen
    found = seen.get(place, _UNSEEN)
    if found is _UNSEEN:
        found = seen[place] = look()
    return cast(T, found)


def believed(holds: Callable[[], bool]) -> bool:
    """Whether to believe what is known: ``holds`` looks meanwhile, in another thread."""
    look = _MEMORY.look
    if look is None or not look.believes:
        return False
    look.ask(holds)
    return True


def is_in_doubt() -> bool:
    """Whether something is believed that nobody has checked yet."""
    return _MEMORY.look is not None and bool(_MEMORY.look.asked)


def check_believed() -> None:
    """Waits for those who look; Outdated where something that is believed does not hold."""
    look = _MEMORY.look
    if look is not None and not all(asked.result() for asked in look.asked):
        raise Outdated
    if look is not None:
        look.asked.clear()
