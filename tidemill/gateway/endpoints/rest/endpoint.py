"""The REST endpoint."""

from __future__ import annotations

from dataclasses import dataclass

from tidemill.config import gateway_options as g
from tidemill.config.option import Configuration
from tidemill.gateway.endpoints.entrance import Entrance
from tidemill.gateway.endpoints.http_server import HttpServer
from tidemill.gateway.endpoints.rest.app import Application
from tidemill.gateway.endpoints.rest.authentication import Authentication
from tidemill.gateway.security.access import is_loopback
from tidemill.gateway.service.service import Gateway

_ENTRANCE = Entrance("REST", g.REST_ADDRESS, g.REST_PORT)
_CONNECTIONS = 4_096


@dataclass(slots=True)
class RestEndpoint:
    gateway: Gateway
    config: Configuration
    address: str = ""
    _application: Application | None = None
    _server: HttpServer | None = None

    def start(self) -> None:
        opened = _ENTRANCE.opened(self.gateway, self.config)
        self.address = opened.address("https" if opened.tls else "http")
        authentication = Authentication(opened.access, local=is_loopback(opened.host))
        self._application = Application(
            gateway=self.gateway, longest=self.config.read(g.MAX_REQUEST).bytes, authentication=authentication
        )
        self._server = HttpServer(
            application=self._application,
            listening=opened.socket,
            tls=opened.tls,
            head_seconds=self.config.read(g.HEADER_TIMEOUT).seconds,
            connections=_CONNECTIONS,
            name="tidemill-gateway-rest",
        )
        self._server.start()

    def stop(self) -> None:
        if self._server is not None:
            self._server.stop()
        if self._application is not None:
            self._application.close()


def endpoint(gateway: Gateway, config: Configuration) -> RestEndpoint:
    """The entry point ``rest`` of ``tidemill.endpoints``."""
    _ENTRANCE.check(gateway, config)
    return RestEndpoint(gateway, config)
