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
        """Uses TLS from now on. ClosedError if the handshake fails."""
        try:
            self.connection.settimeout(within)
            self.connection = context.wrap_socket(self.connection, server_side=True)
        except OSError as e:
            raise ClosedError from e

    @property
    def address(self) -> str:
        """The client's address; '' if the client has disconnected."""
        try:
            return str(self.connection.getpeername()[0])
        except OSError:
            return ""

    def begin(self, *, within: float | None = None) -> int:
        """Waits ``within`` seconds for a message, and returns its first byte without reading it.
        ClosedError."""
        self.left = self.longest
        if not self._held:
            self._receive(within)
        self._begun = self.clock()
        return self._held[0]

    def read(self, size: int) -> bytes:
        """Reads exactly ``size`` bytes. WireError if the message gets too long; ClosedError."""
        if not 0 <= size <= self.left:
            raise WireError(f"a message has {self.longest} bytes at most")
        while len(self._held) < size:
            self._go_on()
        self.left -= size
        data = bytes(self._held[:size])
        del self._held[:size]
        return data

    def some(self) -> bytes:
        """Reads what has come, at least a byte. WireError if the message gets too long; ClosedError."""
        if not self._held:
            self._go_on()
        return self.read(len(self._held))

    def write(self, data: bytes) -> None:
        try:
            self.connection.settimeout(self.patience)
            self.connection.sendall(data)
        except OSError as e:
            raise ClosedError from e

    def is_open(self) -> bool:
        """Whether the client is connected, as far as can be told without waiting."""
        try:
            while len(self._held) < self.longest and select.select([self.connection], [], [], 0)[0]:
                self._receive(self.patience)
        except (OSError, ValueError, ClosedError):
            return False
        return True

    def drain(self) -> None:
        """Call after a final error answer: reads the remaining bytes. If a connection is closed with unread
        bytes, it is reset, and a client that still sends never sees the answer."""
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
        """Receives more of the current message. ClosedError if the whole message takes too long, so that a
        client cannot keep a connection by sending a byte now and then."""
        received = self.longest - self.left + len(self._held)
        left = self._begun + self.patience + received / _SLOWEST - self.clock()
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
