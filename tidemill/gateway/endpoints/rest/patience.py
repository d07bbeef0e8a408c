"""Connections whose request does not come: they are closed, whatever trickles in.

uvicorn waits for the head of a request without an end, and takes one of any length. Here the time runs from
when the connection was made, or from the first byte of a later request, until the head is whole; so it does
for the rest of a request that has its answer already, as one that is too long has.

A connection that is closed while bytes lie there unread is reset, and its client, who still sends, never
sees the answer. So where a request is refused before its end, what follows is read and thrown away first:
until the client has sent all or has closed, and never for longer than that time.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

HEAD_BYTES = 64 << 10
"""Of a request's line and headers, as they may be at most; one that is not whole by what is read at once
more."""
_TLS_END_SECONDS = 2.0
"""How long a client may take to say that it has seen the end."""
_CONTINUE = b"HTTP/1.1 100"


class _Whole:
    """A transport that sends the head of an answer with the beginning of its content: each send is a system
    call, and wakes who waits for it."""

    __slots__ = ("_end", "_head", "_transport")

    def __init__(self, transport: Any, end: Callable[[], None]) -> None:
        self._transport = transport
        self._end = end
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
            self._head = b""
        self._end()

    def is_closing(self) -> bool:
        return bool(self._transport.is_closing())


def _bad(message: str) -> bytes:
    text = message.encode()
    return (
        b"HTTP/1.1 400 Bad Request\r\ncontent-type: text/plain; charset=utf-8\r\n"
        b"content-length: %d\r\nconnection: close\r\n\r\n%s" % (len(text), text)
    )


class _HeadError(ValueError):
    """The parser tells who feeds it: the answer is 400."""


def impatient(seconds: float) -> type[HttpToolsProtocol]:
    """uvicorn's protocol with limits for heads: of time, and of their length."""

    class Impatient(HttpToolsProtocol):  # type: ignore[misc]  # uvicorn is not looked at
        _waiting: asyncio.TimerHandle | None = None
        _in_head = False
        _in_body = False
        _ending = False
        _deaf = False
        _head = 0

        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            self._look()

        def data_received(self, data: bytes) -> None:
            if self._deaf:
                return
            unfinished = self._in_head
            super().data_received(data)
            # Of a header that is not whole nobody is told.
            if unfinished and self._in_head and not self._deaf:
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
                self.cycle.transport = _Whole(self.transport, self._end)

        def on_message_complete(self) -> None:
            self._in_body = False
            super().on_message_complete()
            if self._ending:
                self.transport.close()

        def send_400_response(self, msg: str) -> None:
            """To what is no request: nobody knows where it ends, so nothing more is read of it."""
            if self.cycle is not None:
                self.cycle.disconnected = True
                self.cycle.message_event.set()
            self.transport.write(_bad(msg))
            self._stop()
            self._look()
            self._deaf = True
            if self.pipeline:  # a request before this one has its answer still to come
                return
            if self.transport.can_write_eof():
                self.transport.write_eof()
            else:  # TLS has its own end, during which what comes is still read
                self.transport.close()
                self.loop.call_later(_TLS_END_SECONDS, self.transport.abort)

        def _end(self) -> None:
            """After an answer that is the connection's last."""
            self._ending = True
            if self._in_body:
                self._say_end()
            else:
                self.transport.close()

        def _say_end(self) -> None:
            if self.transport.can_write_eof():
                self.transport.write_eof()

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
            if self._deaf:
                return
            if self.cycle is not None and not (self.cycle.response_complete or self.cycle.disconnected):
                self._stop()
            elif self._waiting is None and not self.transport.is_closing():
                self._waiting = self.loop.call_later(seconds, self.transport.close)

        def _stop(self) -> None:
            if self._waiting is not None:
                self._waiting.cancel()
                self._waiting = None

    return Impatient
