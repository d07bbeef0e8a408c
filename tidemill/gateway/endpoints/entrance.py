"""Opens the socket of an endpoint, and prepares its authentication and TLS."""

from __future__ import annotations

import socket
import ssl
from dataclasses import dataclass

from tidemill.config.option import Configuration, Option
from tidemill.errors import SetupError
from tidemill.gateway.security.access import Access, check_chosen
from tidemill.gateway.security.tls import server_context
from tidemill.gateway.service.service import Gateway

_BACKLOG = 512


@dataclass(frozen=True, slots=True)
class Entrance:
    """``name``: of the endpoint, for errors; ``host`` and ``port``: its options."""

    name: str
    host: Option[str]
    port: Option[int]

    def check(self, gateway: Gateway, config: Configuration) -> None:
        """SetupError if the endpoint could not be opened."""
        self.opened(gateway, config).socket.close()

    def opened(self, gateway: Gateway, config: Configuration) -> Opened:
        """Opens the socket. SetupError if authentication is not chosen, a needed file is unreadable, or the
        port is in use."""
        host, port = config.read(self.host), config.read(self.port)
        check_chosen(config, host)
        access, tls = Access.of(config, gateway.audit), server_context(config)
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        try:
            listening = socket.create_server((host, port), family=family, backlog=_BACKLOG)
        except OSError as e:
            raise SetupError(
                f"The {self.name} endpoint cannot listen on {host}:{port}: {e.strerror or e}",
                hint=f"Choose another port with '{self.port.key}', or 0 for any free port.",
            ) from e
        return Opened(host, access, tls, listening)


@dataclass(frozen=True, slots=True)
class Opened:
    """``host``: as configured; ``tls``: None without TLS."""

    host: str
    access: Access
    tls: ssl.SSLContext | None
    socket: socket.socket

    def address(self, scheme: str) -> str:
        return f"{scheme}://{self.host}:{self.socket.getsockname()[1]}"
