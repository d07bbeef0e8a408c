"""Room for statements that nest deeper than Python's ordinary stack.

Passes over trees recurse, as their trees do: a sum of 500 terms is 500 levels deep, and each level takes
several frames. ``with_room`` runs such a pass as any call; only where the stack is too small it is run
again from its start, on a thread with a stack of its own. So the call must be pure: what it had begun
when the stack ended is forgotten. Cost: nothing for ordinary statements; for deep ones a second run.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from contextvars import copy_context
from typing import TypeVar

from tidemill.errors import NotSupportedError

T = TypeVar("T")
FRAMES = 250_000
"""Frames of a deep call: some ten thousand levels of a tree."""
_STACK_BYTES = 1 << 29
"""Address space; memory is taken as the stack grows, about a kilobyte for a frame that passes through C."""
_room = threading.local()
_growth = threading.Lock()


def with_room(call: Callable[[], T]) -> T:
    """The result of ``call``, which must be pure; NotSupportedError where even the large stack ends."""
    try:
        return call()
    except RecursionError:
        # Left before the second run: the handler would hold the first one's frames.
        pass
    if getattr(_room, "large", False):
        raise NotSupportedError("The statement is nested too deeply", hint="Split it into several views.")
    return _on_large_stack(call)


def _on_large_stack(call: Callable[[], T]) -> T:
    results: list[T] = []
    failures: list[BaseException] = []

    def run() -> None:
        _room.large = True
        try:
            results.append(with_room(call))
        except BaseException as error:  # raised again where the call was asked for
            failures.append(error)

    # One at a time: the limit of frames and the size of new stacks belong to the whole process.
    with _growth:
        frames = sys.getrecursionlimit()
        stack = threading.stack_size(_STACK_BYTES)
        try:
            sys.setrecursionlimit(max(frames, FRAMES))
            context = copy_context()  # The call is still within what its caller is within.
            thread = threading.Thread(target=context.run, args=(run,), name="tidemill-deep-call", daemon=True)
            thread.start()
            threading.stack_size(stack)
            thread.join()
        finally:
            threading.stack_size(stack)
            sys.setrecursionlimit(frames)
    if failures:
        raise failures[0]
    return results[0]
