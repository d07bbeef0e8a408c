"""The bytes of one connection: read exactly, up to a limit a message, and never for longer than allowed."""

from __future__ import annotations

import contextlib
import select
import socket
import ssl
import time
from dataclasses import dataclass, field

from tidemill.gateway.endpoints.hiveserver2.wire import WireError

_CHUNK = 1 << 16


class ClosedError(Exception):
    """The client has closed the connection, or takes too long to say what it began to say."""


@dataclass(slots=True, eq=False)
class Stream:
    """``longest``: bytes that a message may have. ``patience``: seconds until a client that has begun a
    message must go on. Between messages it may be silent for as long as it likes."""

    connection: socket.socket
    longest: int
    patience: float
    left: int = 0
    _held: bytearray = field(default_factory=bytearray)

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
        return self._held[0]

    def read(self, size: int) -> bytes:
        """Exactly so many bytes; WireError where the message would get too long, ClosedError."""
        if not 0 <= size <= self.left:
            raise WireError(f"a message has {self.longest} bytes at most")
        while len(self._held) < size:
            self._receive(self.patience)
        self.left -= size
        found = bytes(self._held[:size])
        del self._held[:size]
        return found

    def line(self, longest: int) -> bytes:
        """Up to a line feed, which is the last byte; WireError."""
        while (end := self._held.find(b"\n", 0, longest)) < 0:
            if len(self._held) >= longest:
                raise WireError(f"a line has {longest} bytes at most")
            self._receive(self.patience)
        return self.read(end + 1)

    def write(self, data: bytes) -> None:
        try:
            self.connection.settimeout(self.patience)
            self.connection.sendall(data)
        except OSError as e:
            raise ClosedError from e

    def is_open(self) -> bool:
        """Whether the client has not gone, as far as one can tell without waiting."""
        if self._held:
            return True
        try:
            if not select.select([self.connection], [], [], 0)[0]:
                return True
            if isinstance(self.connection, ssl.SSLSocket):
                self._receive(self.patience)
                return True
            return bool(self.connection.recv(1, socket.MSG_PEEK))
        except (OSError, ValueError, ClosedError):
            return False

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

    def _receive(self, within: float | None) -> None:
        try:
            self.connection.settimeout(within)
            data = self.connection.recv(_CHUNK)
        except OSError as e:
            raise ClosedError from e
        if not data:
            raise ClosedError
        self._held += data
