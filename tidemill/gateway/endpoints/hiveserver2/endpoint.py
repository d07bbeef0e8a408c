"""The HiveServer2 endpoint: a listening thread, and one thread per connection."""

from __future__ import annotations

import contextlib
import logging
import socket
import ssl
import threading
from dataclasses import dataclass, field

from tidemill.config import hiveserver2_options as h
from tidemill.config.option import Configuration
from tidemill.gateway.endpoints.entrance import Entrance
from tidemill.gateway.endpoints.hiveserver2.caller import Logs
from tidemill.gateway.endpoints.hiveserver2.connection import Connection
from tidemill.gateway.endpoints.hiveserver2.stream import ClosedError, Stream
from tidemill.gateway.endpoints.hiveserver2.structs import structs
from tidemill.gateway.security.access import Access
from tidemill.gateway.service.service import Gateway

_LOGGER = logging.getLogger("tidemill.gateway")
_ENTRANCE = Entrance("HiveServer2", h.HOST, h.PORT)
_PAUSE_SECONDS = 0.1
_CLIENT_THREAD = "tidemill-gateway-hiveserver2-client"
_STOP_SECONDS = 3.0


@dataclass(slots=True)
class HiveServer2Endpoint:
    gateway: Gateway
    config: Configuration
    address: str = ""
    _access: Access = field(default_factory=Access)
    _tls: ssl.SSLContext | None = None
    _socket: socket.socket | None = None
    _logs: Logs = field(default_factory=Logs)
    _open: set[Stream] = field(default_factory=set)
    _ending: threading.Event = field(default_factory=threading.Event)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _thread: threading.Thread | None = None

    def start(self) -> None:
        structs()
        opened = _ENTRANCE.opened(self.gateway, self.config)
        self._access, self._tls, self._socket = opened.access, opened.tls, opened.socket
        self.address = opened.address("thrift")
        self._thread = threading.Thread(
            target=self._listen, args=(opened.socket,), name="tidemill-gateway-hiveserver2", daemon=True
        )
        self._thread.start()

    def stop(self) -> None:
        if self._socket is None or self._thread is None:
            return
        self._ending.set()
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        self._thread.join(_STOP_SECONDS)
        with self._lock:
            streams = list(self._open)
        for stream in streams:
            stream.close()

    def _listen(self, listening: socket.socket) -> None:
        """Accepts connections. Survives errors, such as a lack of file descriptors."""
        while not self._ending.is_set():
            try:
                connection, _ = listening.accept()
                self._take(connection)
            except (OSError, RuntimeError):
                if not self._ending.wait(_PAUSE_SECONDS):
                    _LOGGER.exception("the HiveServer2 endpoint could not take a connection")

    def _take(self, connection: socket.socket) -> None:
        """Serves a connection in a new thread. Beyond the limit, closes it at once, so that the client need
        not wait."""
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        read = self.config.read
        stream = Stream(connection, read(h.MAX_MESSAGE).bytes, read(h.LOGIN_TIMEOUT).seconds)
        with self._lock:
            if len(self._open) >= read(h.MAX_CONNECTIONS):
                stream.close()
                return
            self._open.add(stream)
        serving = threading.Thread(target=self._serve, args=(stream,), name=_CLIENT_THREAD, daemon=True)
        try:
            serving.start()
        except RuntimeError:
            self._forget(stream)
            raise

    def _serve(self, stream: Stream) -> None:
        try:
            login = self.config.read(h.LOGIN_TIMEOUT).seconds
            if self._tls is not None:
                stream.secure(self._tls, login)
            Connection(
                stream=stream, gateway=self.gateway, access=self._access, logs=self._logs, login=login
            ).serve()
        except ClosedError:
            pass
        finally:
            self._forget(stream)

    def _forget(self, stream: Stream) -> None:
        stream.close()
        with self._lock:
            self._open.discard(stream)


def endpoint(gateway: Gateway, config: Configuration) -> HiveServer2Endpoint:
    """The entry point ``hiveserver2`` of ``tidemill.endpoints``."""
    _ENTRANCE.check(gateway, config)
    return HiveServer2Endpoint(gateway, config)
