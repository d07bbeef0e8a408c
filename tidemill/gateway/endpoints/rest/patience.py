"""Connections whose request does not come: they are closed, whatever trickles in.

uvicorn waits for the head of a request without an end, and takes one of any length. Here the time runs from
when the connection was made, or from the first byte of a later request, until the head is whole; so it does
for the rest of a request that has its answer already, as one that is too long has.
"""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

WHOLE_BODY = "tidemill.body"
"""In the scope of a request that has come as a whole before it is answered: its body."""
_SMALL_BODY = 64 << 10
HEAD_BYTES = 64 << 10
"""Of a request's line and headers, as they may be at most; one that is not whole by what is read at once
more."""


_CONTINUE = b"HTTP/1.1 100"


class _Whole:
    """A transport that sends the head of an answer with the beginning of its content: each send is a system
    call, and wakes who waits for it."""

    __slots__ = ("_head", "_transport")

    def __init__(self, transport: Any) -> None:
        self._transport = transport
        self._head: bytes | None = None

    def write(self, data: bytes) -> None:
        if self._head is None and not data.startswith(_CONTINUE):
            self._head = data
        elif self._head:
            self._transport.write(self._head + data)
            self._head = b""
        else:
            self._transport.write(data)

    def close(self) -> None:
        if self._head:
            self._transport.write(self._head)
        self._transport.close()

    def is_closing(self) -> bool:
        return bool(self._transport.is_closing())


class _HeadError(ValueError):
    """The parser tells who feeds it: the answer is 400."""


def impatient(seconds: float) -> type[HttpToolsProtocol]:
    """uvicorn's protocol with limits for heads: of time, and of their length."""

    class Impatient(HttpToolsProtocol):  # type: ignore[misc]  # uvicorn is not looked at
        _waiting: asyncio.TimerHandle | None = None
        _in_head = False
        _in_body = False
        _head = 0

        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            self._look()

        def data_received(self, data: bytes) -> None:
            unfinished = self._in_head
            super().data_received(data)
            if unfinished and self._in_head:  # of a header that is not whole nobody is told
                self._head += len(data)
                if self._head > HEAD_BYTES:
                    self.send_400_response("The request's head is too long.")
            self._look()

        def connection_lost(self, error: Exception | None) -> None:
            self._stop()
            super().connection_lost(error)

        def on_message_begin(self) -> None:
            self._in_head, self._head = True, 0
            super().on_message_begin()

        def on_url(self, url: bytes) -> None:
            self._count(len(url))
            super().on_url(url)

        def on_header(self, name: bytes, value: bytes) -> None:
            self._count(len(name) + len(value))
            super().on_header(name, value)

        def on_headers_complete(self) -> None:
            self._in_head, self._in_body = False, True
            super().on_headers_complete()
            if self.scope["method"] != "HEAD":  # whose answer has a head alone
                self.cycle.transport = _Whole(self.transport)

        def on_message_complete(self) -> None:
            self._in_body = False
            if len(self.cycle.body) <= _SMALL_BODY:
                self.scope[WHOLE_BODY] = bytes(self.cycle.body)
            super().on_message_complete()

        def on_response_complete(self) -> None:
            super().on_response_complete()
            if self._in_head or self._in_body:
                self._look()

        def _count(self, size: int) -> None:
            self._head += size
            if self._head > HEAD_BYTES:
                raise _HeadError("the head is too long")

        def _look(self) -> None:
            """While a request is answered the time does not run."""
            if self.cycle is not None and not self.cycle.response_complete:
                self._stop()
            elif self._waiting is None and not self.transport.is_closing():
                self._waiting = self.loop.call_later(seconds, self.transport.close)

        def _stop(self) -> None:
            if self._waiting is not None:
                self._waiting.cancel()
                self._waiting = None

    return Impatient
