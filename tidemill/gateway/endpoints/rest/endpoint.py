"""The REST endpoint: uvicorn in a thread of its own."""

from __future__ import annotations

import socket
import threading
import time
from dataclasses import dataclass, field

import uvicorn

from tidemill.config import gateway_options as g
from tidemill.config.option import Configuration
from tidemill.errors import SetupError
from tidemill.gateway.endpoints.entrance import Entrance
from tidemill.gateway.endpoints.rest.app import Application
from tidemill.gateway.endpoints.rest.door import Door
from tidemill.gateway.endpoints.rest.patience import impatient
from tidemill.gateway.security.access import is_loopback
from tidemill.gateway.service.service import Gateway

_ENTRANCE = Entrance("REST", g.REST_ADDRESS, g.REST_PORT)
_START_SECONDS = 30.0
_POLL_SECONDS = 0.01
_STOP_SECONDS = 3
_CONNECTIONS = 4_096
_IDLE_SECONDS = 60
"""How long a connection stays open between requests: a client that thinks for a while finds it there."""


@dataclass(slots=True)
class RestEndpoint:
    gateway: Gateway
    config: Configuration
    address: str = ""
    _application: Application | None = None
    _server: uvicorn.Server | None = None
    _thread: threading.Thread | None = None
    _socket: socket.socket | None = field(default=None)

    def start(self) -> None:
        opened = _ENTRANCE.opened(self.gateway, self.config)
        self._socket = opened.socket
        # What is accepted sends at once, as this does: asyncio does not see that these are TCP's. Else the
        # body of an answer waits until the client has acknowledged the headers, which takes it 40 ms.
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.address = opened.address("https" if opened.tls else "http")
        door = Door(opened.access, local=is_loopback(opened.host))
        self._application = Application(
            gateway=self.gateway, longest=self.config.read(g.MAX_REQUEST).bytes, door=door
        )
        settings = uvicorn.Config(
            self._application,
            interface="asgi3",
            proxy_headers=False,
            log_config=None,
            access_log=False,
            lifespan="off",
            http=impatient(self.config.read(g.HEADER_TIMEOUT).seconds),
            ws="none",
            server_header=False,
            limit_concurrency=_CONNECTIONS,
            timeout_keep_alive=_IDLE_SECONDS,
            timeout_graceful_shutdown=_STOP_SECONDS,
        )
        settings.load()
        settings.ssl = opened.tls
        self._server = uvicorn.Server(settings)
        self._thread = threading.Thread(
            target=self._server.run, args=([self._socket],), name="tidemill-gateway-rest", daemon=True
        )
        self._thread.start()
        self._await_start(self._server)

    def stop(self) -> None:
        if self._server is not None and self._thread is not None:
            self._server.should_exit = True
            self._thread.join(_STOP_SECONDS + 1)
        if self._application is not None:
            self._application.close()
        if self._socket is not None:
            self._socket.close()

    def _await_start(self, server: uvicorn.Server) -> None:
        end = time.monotonic() + _START_SECONDS
        while not server.started:
            if time.monotonic() > end or (self._thread is not None and not self._thread.is_alive()):
                raise SetupError("The REST endpoint did not start.")
            time.sleep(_POLL_SECONDS)


def endpoint(gateway: Gateway, config: Configuration) -> RestEndpoint:
    """The entry point ``rest`` of ``tidemill.endpoints``."""
    _ENTRANCE.check(gateway, config)
    return RestEndpoint(gateway, config)
