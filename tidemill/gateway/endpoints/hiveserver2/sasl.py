"""SASL PLAIN as Thrift's transport speaks it: a status byte, a length, a payload; then frames."""

from __future__ import annotations

import struct

from tidemill.gateway.api import GatewayError
from tidemill.gateway.endpoints.hiveserver2.stream import Stream
from tidemill.gateway.endpoints.hiveserver2.wire import WireError

START = 1
_OK, _BAD, _ERROR, _COMPLETE = 2, 3, 4, 5
_HEAD = struct.Struct("!BI")
_LONGEST = 64 << 10


def credentials(stream: Stream) -> tuple[str, str]:
    """The name and the password that the client sends; WireError."""
    status, mechanism = _message(stream)
    if status != START or mechanism != b"PLAIN":
        _send(stream, _BAD, b"The mechanism is PLAIN, or there is no SASL")
        raise WireError(f"SASL begins with status {status} and {mechanism[:40]!r}")
    status, said = _message(stream)
    parts = said.split(b"\0")
    if status not in (_OK, _COMPLETE) or len(parts) != 3:
        _send(stream, _ERROR, b"PLAIN has an identity, a name and a password")
        raise WireError(f"SASL goes on with status {status}")
    return parts[1].decode("utf-8", "replace"), parts[2].decode("utf-8", "replace")


def accept(stream: Stream) -> None:
    _send(stream, _COMPLETE, b"")


def refuse(stream: Stream, error: GatewayError) -> None:
    _send(stream, _BAD, str(error).encode())


def frame(stream: Stream) -> bytes:
    """The next frame; WireError where it is too long."""
    (size,) = struct.unpack("!i", stream.read(4))
    return stream.read(size)


def framed(data: bytes) -> bytes:
    return struct.pack("!i", len(data)) + data


def _message(stream: Stream) -> tuple[int, bytes]:
    status, size = _HEAD.unpack(stream.read(_HEAD.size))
    if size > _LONGEST:
        raise WireError(f"a step of SASL has {size} bytes")
    return status, stream.read(size)


def _send(stream: Stream, status: int, payload: bytes) -> None:
    stream.write(_HEAD.pack(status, len(payload)) + payload)
