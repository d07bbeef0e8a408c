"""Threads for requests that may wait, beside the event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, TypeVar

from tidemill.gateway.service.workers import POOL_THREAD

T = TypeVar("T")
_MOST = 256


@dataclass(frozen=True, slots=True)
class Threads:
    """At most ``_MOST`` requests wait for rows at a time."""

    pool: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(_MOST, POOL_THREAD))

    def run(self, call: Callable[..., T], *arguments: Any) -> asyncio.Future[T]:
        """The result of ``call``. Call it in the event loop's thread."""
        return asyncio.get_running_loop().run_in_executor(self.pool, call, *arguments)

    def close(self) -> None:
        """Refuses new calls; running calls end."""
        self.pool.shutdown(wait=False, cancel_futures=True)
