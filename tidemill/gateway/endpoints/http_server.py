"""uvicorn in a thread of its own, as all endpoints that speak HTTP use it.

uvicorn limits neither the time nor the length of a request's head. ``_Bounded`` adds both limits, which no
option of uvicorn and no ASGI middleware can: an application is called once the head is whole.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
import threading
import time
from dataclasses import dataclass, field
from typing import Any

import uvicorn
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.types import ASGIApp
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from tidemill.errors import SetupError

HEAD_BYTES = 64 << 10
"""The longest head of a request. The read that begins a head does not count."""
_START_SECONDS = 30.0
_POLL_SECONDS = 0.01
_STOP_SECONDS = 3
_BODY_SECONDS = 120
_IDLE_SECONDS = 60
"""How long a connection stays open between requests, for a client that thinks for a while."""


@dataclass(slots=True, kw_only=True)
class HttpServer:
    """``listening``: an open socket, which the server closes. ``head_seconds``: the time that the head of a
    request may take. ``connections``: their limit; further requests are answered with 503."""

    application: ASGIApp
    listening: socket.socket
    tls: ssl.SSLContext | None
    head_seconds: float
    connections: int
    name: str
    _server: uvicorn.Server = field(init=False)
    _thread: threading.Thread = field(init=False)

    def start(self) -> None:
        """SetupError if the server does not start."""
        # Connections inherit the option. Without it, the body of an answer waits until the client has
        # acknowledged the headers, which takes 40 ms.
        self.listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        settings = uvicorn.Config(
            self.application,
            interface="asgi3",
            proxy_headers=False,
            log_config=None,
            access_log=False,
            lifespan="off",
            http=type("Bounded", (_Bounded,), {"seconds": self.head_seconds}),
            ws="none",
            server_header=False,
            limit_concurrency=self.connections,
            timeout_keep_alive=_IDLE_SECONDS,
            timeout_graceful_shutdown=_STOP_SECONDS,
        )
        settings.load()
        settings.ssl = self.tls
        self._server = uvicorn.Server(settings)
        self._thread = threading.Thread(
            target=self._server.run, args=([self.listening],), name=self.name, daemon=True
        )
        self._thread.start()
        end = time.monotonic() + _START_SECONDS
        while not self._server.started:
            if time.monotonic() > end or not self._thread.is_alive():
                raise SetupError(f"The HTTP server '{self.name}' did not start.")
            time.sleep(_POLL_SECONDS)

    def stop(self) -> None:
        """Refuses new requests; running requests have ``_STOP_SECONDS`` to end."""
        self._server.should_exit = True
        self._thread.join(_STOP_SECONDS + 1)
        self.listening.close()


class _Bounded(HttpToolsProtocol):  # type: ignore[misc]  # uvicorn is not looked at
    """The time runs while the server waits for a part of a request: its head, or the rest of a body whose
    answer is already sent. It does not run while a request is answered, nor between requests."""

    seconds: float
    _timer: asyncio.TimerHandle | None = None
    _in_head = False
    _is_refused = False
    _received = 0

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._start()

    def connection_lost(self, error: Exception | None) -> None:
        self._stop()
        super().connection_lost(error)

    def data_received(self, data: bytes) -> None:
        if self._is_refused:
            return
        self._received += len(data)
        super().data_received(data)
        if self._in_head:
            if self.cycle is None or self.cycle.response_complete:
                self._start()
            if self._received > HEAD_BYTES:
                self.send_400_response("The request's head is too long.")

    def send_400_response(self, msg: str) -> None:
        """Ends the server's half of the connection, and drops all that the client still sends: if the server
        closed the connection, the client would see a reset instead of the answer."""
        if self._is_refused:
            return
        self._is_refused = True
        self.transport.write(
            b"HTTP/1.1 400 Bad Request\r\ncontent-type: text/plain; charset=utf-8\r\n"
            b"content-length: %d\r\nconnection: close\r\n\r\n%s" % (len(msg), msg.encode())
        )
        if self.transport.can_write_eof():
            self.transport.write_eof()
        else:  # TLS
            self.transport.close()
        self._start()

    def on_message_begin(self) -> None:
        self._in_head, self._received = True, 0
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        self._in_head = False
        self._stop()
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        self._stop()
        super().on_message_complete()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self.cycle.more_body or self._in_head:
            self._start()

    def _start(self) -> None:
        if self._timer is None:
            self._timer = self.loop.call_later(self.seconds, self.transport.abort)

    def _stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


async def body_of(request: Request, longest: int, key: str) -> bytes:
    """The body, of at most ``longest`` bytes, the value of the option ``key``. HTTPException 413 if it is
    longer, 408 if it does not come, 400 if the client leaves.

    A client whose connection ends with the request may send all of it before it reads the answer. If the
    server closed first, this client would see a reset instead of 413. So the server reads the rest and drops
    it, unless the client waits for permission to send the body."""
    headers = request.headers
    said = headers.get("content-length", "")
    is_long = said.isascii() and said.isdigit() and int(said[:20]) > longest
    reads_all = headers.get("connection", "").lower() == "close" and not (is_long and "expect" in headers)
    body = bytearray()
    try:
        async with asyncio.timeout(_BODY_SECONDS):
            while not is_long or reads_all:
                part = await request.receive()
                if part["type"] == "http.disconnect":
                    raise HTTPException(400, "The client went away in the middle of its request.")
                body += part["body"]
                is_long |= len(body) > longest
                if is_long:
                    body.clear()
                if not part["more_body"]:
                    break
    except TimeoutError:
        raise HTTPException(408, f"The request did not end within {_BODY_SECONDS} seconds.") from None
    if is_long:
        raise HTTPException(413, f"The request is longer than {longest} bytes ('{key}').")
    return bytes(body)
