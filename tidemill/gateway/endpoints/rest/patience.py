"""Connections whose request does not come: they are closed, whatever trickles in.

uvicorn waits for the headers of a request without an end. Here the time runs from when the connection was
made, or from the first byte of a later request, until the headers are whole.
"""

from __future__ import annotations

import asyncio
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol


def impatient(seconds: float) -> type[H11Protocol]:
    """uvicorn's protocol with a time limit for headers."""

    class Impatient(H11Protocol):  # type: ignore[misc]  # uvicorn is not looked at
        _waiting: asyncio.TimerHandle | None = None

        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            self._look()

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            self._look()

        def connection_lost(self, error: Exception | None) -> None:
            self._stop()
            super().connection_lost(error)

        def _look(self) -> None:
            if self.conn.their_state is not h11.IDLE:
                self._stop()
            elif self._waiting is None:
                self._waiting = self.loop.call_later(seconds, self.transport.close)

        def _stop(self) -> None:
            if self._waiting is not None:
                self._waiting.cancel()
                self._waiting = None

    return Impatient
