"""The interface of endpoints: each serves a protocol by which clients reach the service.

A package adds an endpoint by an entry point of the group ``tidemill.endpoints``. Its name is a value of
``sql-gateway.endpoint.type``, its object a function ``(gateway, config) -> Endpoint``. The function is called
before Spark starts, so that its SetupErrors appear at once.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from importlib.metadata import entry_points
from typing import Protocol

from tidemill.config.gateway_options import ENDPOINTS
from tidemill.config.option import Configuration
from tidemill.errors import ValidationError
from tidemill.gateway.service.service import Gateway

GROUP = "tidemill.endpoints"


class Endpoint(Protocol):
    """Listens in threads of its own."""

    @property
    def address(self) -> str:
        """The address for clients, once the endpoint has been started."""
        ...

    def start(self) -> None:
        """Starts to listen. SetupError if it cannot, for example because the port is in use."""
        ...

    def stop(self) -> None:
        """Refuses new requests; running requests end."""
        ...


EndpointFactory = Callable[[Gateway, Configuration], Endpoint]


def configured(gateway: Gateway, config: Configuration) -> list[Endpoint]:
    """The endpoints that the options name, in order. ValidationError for an unknown endpoint, SetupError if
    an endpoint could not start."""
    factories = {entry.name: entry for entry in entry_points(group=GROUP)}
    endpoints: list[Endpoint] = []
    for name in filter(None, re.split(r"[;,\s]+", config.read(ENDPOINTS))):
        if name not in factories:
            raise ValidationError(f"There is no endpoint '{name}'.", expected=tuple(sorted(factories)))
        factory: EndpointFactory = factories[name].load()
        endpoints.append(factory(gateway, config))
    return endpoints
