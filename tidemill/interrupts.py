"""Ctrl-C while a statement waits for Spark, or while modules are imported.

A call that waits must not be torn: its connection to the JVM would be lost, Py4J would print a traceback,
and what the statement has begun would stay. So the first Ctrl-C raises nothing: it asks the work to end, from
another thread, and the call comes back with its failure. What is to be cleared away is, on the way out, and
only then KeyboardInterrupt is raised. A second one is raised at once.
"""

from __future__ import annotations

import logging
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

_TORN = "KeyboardInterrupt while sending command."
"""What Py4J says of a call that was torn, with a traceback, to the logger of everybody."""


def can_be_heard() -> bool:
    """Whether a signal comes to this thread, and nobody has a handler of their own for it: PySpark's, which
    cancels everybody's jobs, does not count."""
    if threading.current_thread() is not threading.main_thread():
        return False
    handler = signal.getsignal(signal.SIGINT)
    return handler is signal.default_int_handler or getattr(handler, "__module__", "").startswith("pyspark")


@contextmanager
def ended_by_interrupt(end: Callable[[], object]) -> Iterator[None]:
    """Ctrl-C calls ``end`` while the work within runs, which then fails, or comes to its end all the same;
    where it ``can_be_heard``."""
    asked = threading.Event()

    def heard(_number: int, _frame: FrameType | None) -> None:
        if asked.is_set():
            raise KeyboardInterrupt
        asked.set()
        threading.Thread(target=end, name="tidemill-interrupt", daemon=True).start()

    before = signal.signal(signal.SIGINT, heard)
    try:
        with no_torn_calls_shown():
            yield
    except Exception:
        if not asked.is_set():
            raise
    finally:
        signal.signal(signal.SIGINT, before)
    if asked.is_set():
        raise KeyboardInterrupt from None


@contextmanager
def put_off() -> Iterator[None]:
    """Ctrl-C within is heard at the end. An import torn by it would leave halves of modules, and the
    next import fails."""
    before = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(before):
        yield
        return
    heard: list[FrameType | None] = []
    signal.signal(signal.SIGINT, lambda _number, frame: heard.append(frame))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        if heard:
            before(signal.SIGINT, heard[0])


@contextmanager
def no_torn_calls_shown() -> Iterator[None]:
    """Py4J says nothing of calls that Ctrl-C has torn."""
    root = logging.getLogger()
    handlers = list(root.handlers)
    root.addFilter(_is_not_torn)
    try:
        yield
    finally:
        root.removeFilter(_is_not_torn)
        for added in [handler for handler in root.handlers if handler not in handlers]:
            root.removeHandler(added)  # which the one who speaks to the root without one adds


def _is_not_torn(record: logging.LogRecord) -> bool:
    return record.msg != _TORN
