"""The bytes of one connection: read exactly, up to a limit a message, and never for longer than allowed."""

from __future__ import annotations

import contextlib
import select
import socket
import ssl
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from tidemill.gateway.endpoints.hiveserver2.wire import WireError

_CHUNK = 1 << 16
_SLOWEST = 4 << 10
"""Bytes a second at which a long message may come."""


class ClosedError(Exception):
    """The client has closed the connection, or takes too long to say what it began to say."""


@dataclass(slots=True, eq=False)
class Stream:
    """``longest``: bytes that a message may have. ``patience``: seconds until a client that has begun a
    message must go on, and for the whole message, of which a long one has more. Between messages it may be
    silent for as long as it likes. ``clock``: in seconds."""

    connection: socket.socket
    longest: int
    patience: float
    clock: Callable[[], float] = time.monotonic
    left: int = 0
    _held: bytearray = field(default_factory=bytearray)
    _begun: float = 0.0

    def secure(self, context: ssl.SSLContext, within: float) -> None:
        """Speaks TLS from here on; ClosedError."""
        try:
            self.connection.settimeout(within)
            self.connection = context.wrap_socket(self.connection, server_side=True)
        except OSError as e:
            raise ClosedError from e

    @property
    def address(self) -> str:
        """The client's; '' where it has gone."""
        try:
            return str(self.connection.getpeername()[0])
        except OSError:
            return ""

    def begin(self, *, within: float | None = None) -> int:
        """The first byte of a message, unread, within so many seconds; ClosedError."""
        self.left = self.longest
        if not self._held:
            self._receive(within)
        self._begun = self.clock()
        return self._held[0]

    def read(self, size: int) -> bytes:
        """Exactly so many bytes; WireError where the message would get too long, ClosedError."""
        if not 0 <= size <= self.left:
            raise WireError(f"a message has {self.longest} bytes at most")
        while len(self._held) < size:
            self._go_on()
        self.left -= size
        found = bytes(self._held[:size])
        del self._held[:size]
        return found

    def line(self, longest: int) -> bytes:
        """Up to a line feed, which is the last byte; WireError."""
        while (end := self._held.find(b"\n", 0, longest)) < 0:
            if len(self._held) >= longest:
                raise WireError(f"a line has {longest} bytes at most")
            self._go_on()
        return self.read(end + 1)

    def write(self, data: bytes) -> None:
        try:
            self.connection.settimeout(self.patience)
            self.connection.sendall(data)
        except OSError as e:
            raise ClosedError from e

    def is_open(self) -> bool:
        """Whether the client has not gone, as far as one can tell without waiting."""
        try:
            while len(self._held) < self.longest and select.select([self.connection], [], [], 0)[0]:
                self._receive(self.patience)
        except (OSError, ValueError, ClosedError):
            return False
        return True

    def drain(self) -> None:
        """Before a refusal is the last word: a connection that is closed while bytes lie there unread is
        reset, and a client who still sends never sees it."""
        end = time.monotonic() + self.patience
        try:
            if not isinstance(self.connection, ssl.SSLSocket):
                self.connection.shutdown(socket.SHUT_WR)
            while (left := end - time.monotonic()) > 0:
                self._held.clear()
                self._receive(left)
        except (OSError, ClosedError):
            return

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self.connection.shutdown(socket.SHUT_RDWR)
        self.connection.close()

    def _go_on(self) -> None:
        """More of the message that has begun; ClosedError where it takes too long as a whole: a client that
        sends a byte now and then would hold its connection for ever."""
        come = self.longest - self.left + len(self._held)
        left = self._begun + self.patience + come / _SLOWEST - self.clock()
        if left <= 0:
            raise ClosedError
        self._receive(min(left, self.patience))

    def _receive(self, within: float | None) -> None:
        try:
            self.connection.settimeout(within)
            data = self.connection.recv(_CHUNK)
        except OSError as e:
            raise ClosedError from e
        if not data:
            raise ClosedError
        self._held += data
