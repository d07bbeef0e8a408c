"""Threads for requests that may wait, beside the event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from tidemill.gateway.service.workers import Workers

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Threads:
    """As many as may wait for rows at a time; they end with the process, whatever they wait for."""

    workers: Workers

    def run(self, call: Callable[..., T], *given: Any) -> asyncio.Future[T]:
        """What ``call`` gives; in the event loop's thread alone."""
        loop = asyncio.get_running_loop()
        made: asyncio.Future[T] = loop.create_future()

        def work() -> None:
            try:
                found = call(*given)
            except BaseException as e:
                _tell(loop, _fail, made, e)
            else:
                _tell(loop, _give, made, found)

        self.workers.submit(work)
        return made


def _tell(loop: asyncio.AbstractEventLoop, what: Callable[..., None], *given: Any) -> None:
    """Nobody is told once the loop has ended."""
    if not loop.is_closed():
        loop.call_soon_threadsafe(what, *given)


def _give(waiting: asyncio.Future[T], found: T) -> None:
    if not waiting.done():
        waiting.set_result(found)


def _fail(waiting: asyncio.Future[T], error: BaseException) -> None:
    if not waiting.done():
        waiting.set_exception(error)
