"""The HTTP transport: each call is the body of a POST, its answer the body of the response.

httptools parses. Each request has its own credentials. A connection serves one request at a time. Requests of
a web page, which have its origin, are refused.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from http import HTTPStatus

import httptools

from tidemill.gateway.endpoints.hiveserver2.stream import Stream
from tidemill.gateway.endpoints.hiveserver2.wire import WireError
from tidemill.gateway.security.access import AccessError

LETTERS = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZ")
_HEAD_BYTES = 64 << 10


@dataclass(slots=True)
class _Request:
    """httptools calls the methods ``on_...``."""

    headers: dict[bytes, bytes] = field(default_factory=dict)
    body: bytearray = field(default_factory=bytearray)
    has_head: bool = False
    is_whole: bool = False

    def on_message_begin(self) -> None:
        if self.has_head:
            raise WireError("a request follows before the answer")

    def on_header(self, name: bytes, value: bytes) -> None:
        self.headers[name.lower()] = value

    def on_headers_complete(self) -> None:
        self.has_head = True

    def on_body(self, part: bytes) -> None:
        self.body += part

    def on_message_complete(self) -> None:
        self.is_whole = True

    def header(self, name: bytes) -> str:
        return self.headers.get(name, b"").decode("latin-1")


class _Refusal(Exception):
    def __init__(self, status: HTTPStatus, reason: str) -> None:
        super().__init__(reason)
        self.status = status


def serve(stream: Stream, user: Callable[[str], str], answer: Callable[[str, bytes], bytes]) -> None:
    """``user``: the user of an Authorization header, or AccessError; ``answer``: the answer to a message of
    that user."""
    while True:
        stream.begin()
        request = _Request()
        parser = httptools.HttpRequestParser(request)
        try:
            _read_head(stream, request, parser)
            name = _name(request, parser.get_method(), user)
            _read_body(stream, request, parser)
        except _Refusal as e:
            _send(stream, e.status, str(e).encode(), kind="text/plain", goes_on=False)
            stream.drain()
            return
        except (WireError, httptools.HttpParserError, httptools.HttpParserUpgrade) as e:
            _send(stream, HTTPStatus.BAD_REQUEST, str(e).encode(), kind="text/plain", goes_on=False)
            raise WireError(f"no request of HTTP: {e}") from e
        goes_on = parser.should_keep_alive()
        reply = answer(name, bytes(request.body))
        _send(stream, HTTPStatus.OK, reply, kind="application/x-thrift", goes_on=goes_on)
        if not goes_on:
            return


def _read_head(stream: Stream, request: _Request, parser: httptools.HttpRequestParser) -> None:
    while not request.has_head:
        if stream.longest - stream.left > _HEAD_BYTES:
            raise WireError("the request's head is too long")
        parser.feed_data(stream.some())


def _name(request: _Request, method: bytes, user: Callable[[str], str]) -> str:
    if method != b"POST":
        raise _Refusal(HTTPStatus.METHOD_NOT_ALLOWED, "Send calls of HiveServer2's protocol by POST.")
    if b"origin" in request.headers:
        raise _Refusal(HTTPStatus.FORBIDDEN, "The request comes from a page of another site.")
    try:
        return user(request.header(b"authorization"))
    except AccessError as e:
        raise _Refusal(HTTPStatus.UNAUTHORIZED, str(e)) from e


def _read_body(stream: Stream, request: _Request, parser: httptools.HttpRequestParser) -> None:
    length = request.header(b"content-length")
    if length and int(length) > stream.longest:  # httptools refuses other texts than digits
        raise _Refusal(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"A request has {stream.longest} bytes at most.")
    if not request.is_whole and request.header(b"expect").lower() == "100-continue":
        stream.write(b"HTTP/1.1 100 Continue\r\n\r\n")
    while not request.is_whole:
        parser.feed_data(stream.some())


def _send(stream: Stream, status: HTTPStatus, body: bytes, *, kind: str, goes_on: bool) -> None:
    lines = [
        f"HTTP/1.1 {status} {status.phrase}",
        f"Content-Type: {kind}",
        f"Content-Length: {len(body)}",
        f"Connection: {'keep-alive' if goes_on else 'close'}",
    ]
    if status is HTTPStatus.UNAUTHORIZED:
        lines.append('WWW-Authenticate: Basic realm="tidemill"')
    stream.write("\r\n".join([*lines, "", ""]).encode("latin-1") + body)
