"""The HTTP transport: each call is the body of a POST, its answer the body of the response.

As much of HTTP/1.1 as clients of Thrift speak. Each request says who asks. A browser is no client: what a
page sends, with its origin, is refused.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from tidemill.gateway.endpoints.hiveserver2.stream import Stream
from tidemill.gateway.endpoints.hiveserver2.wire import WireError
from tidemill.gateway.security.access import AccessError

LETTERS = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZ")
_LINE, _HEADERS = 16 << 10, 100
_REASONS = {200: "OK", 400: "Bad Request", 401: "Unauthorized", 403: "Forbidden", 405: "Method Not Allowed",
            411: "Length Required", 413: "Content Too Large"}  # fmt: skip


@dataclass(slots=True)
class _Request:
    method: str
    version: str
    headers: dict[str, str] = field(default_factory=dict)

    @property
    def goes_on(self) -> bool:
        """Whether the connection serves for more requests."""
        said = self.headers.get("connection", "").lower()
        return "keep-alive" in said if self.version == "HTTP/1.0" else "close" not in said


class _Refusal(Exception):
    def __init__(self, code: int, reason: str) -> None:
        super().__init__(reason)
        self.code = code


def serve(stream: Stream, user: Callable[[str], str], answer: Callable[[str, bytes], bytes]) -> None:
    """``user``: from an Authorization header, AccessError; ``answer``: to a message of that user."""
    while True:
        stream.begin()
        try:
            request = _request(stream)
            name = _name(request, user)
            reply = answer(name, _body(stream, request))
        except _Refusal as e:
            _send(stream, e.code, str(e).encode(), kind="text/plain", goes_on=False)
            stream.drain()
            return
        except WireError as e:
            _send(stream, 400, str(e).encode(), kind="text/plain", goes_on=False)
            raise
        _send(stream, 200, reply, kind="application/x-thrift", goes_on=request.goes_on)
        if not request.goes_on:
            return


def _request(stream: Stream) -> _Request:
    method, _, rest = _line(stream).partition(" ")
    version = rest.rpartition(" ")[2]
    if version not in ("HTTP/1.0", "HTTP/1.1"):
        raise WireError("the first line is none of HTTP's")
    request = _Request(method, version)
    while line := _line(stream):
        name, colon, value = line.partition(":")
        if not colon or len(request.headers) >= _HEADERS:
            raise WireError("the headers are none of HTTP's, or too many")
        request.headers[name.strip().lower()] = value.strip()
    return request


def _line(stream: Stream) -> str:
    return stream.line(_LINE).rstrip(b"\r\n").decode("latin-1")


def _name(request: _Request, user: Callable[[str], str]) -> str:
    if request.method != "POST":
        raise _Refusal(405, "Send calls of HiveServer2's protocol by POST.")
    if "origin" in request.headers:
        raise _Refusal(403, "The request comes from a page of another site.")
    try:
        return user(request.headers.get("authorization", ""))
    except AccessError as e:
        raise _Refusal(401, str(e)) from e


def _body(stream: Stream, request: _Request) -> bytes:
    said = request.headers.get("content-length", "")
    if not (said.isascii() and said.isdigit()):
        raise _Refusal(411, "Say how long the body is: Content-Length.")
    if len(said) > 18 or int(said) > stream.left:
        raise _Refusal(413, f"A request has {stream.longest} bytes at most.")
    if request.headers.get("expect", "").lower() == "100-continue":
        stream.write(b"HTTP/1.1 100 Continue\r\n\r\n")
    return stream.read(int(said))


def _send(stream: Stream, code: int, body: bytes, *, kind: str, goes_on: bool) -> None:
    lines = [
        f"HTTP/1.1 {code} {_REASONS[code]}",
        f"Content-Type: {kind}",
        f"Content-Length: {len(body)}",
        f"Connection: {'keep-alive' if goes_on else 'close'}",
    ]
    if code == 401:
        lines.append('WWW-Authenticate: Basic realm="tidemill"')
    stream.write("\r\n".join([*lines, "", ""]).encode("latin-1") + body)
