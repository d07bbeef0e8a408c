"""What an endpoint is: a wire by which clients reach the service.

A package brings one by an entry point of the group ``tidemill.endpoints``: its name is what
``sql-gateway.endpoint.type`` says, its object a function ``(gateway, config) -> Endpoint``. It is called
before Spark starts: a SetupError of what the endpoint could not start with comes at once.
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
        """Where clients find it, once it has been started."""
        ...

    def start(self) -> None:
        """Listens on return; SetupError where it cannot, as when the port is in use."""
        ...

    def stop(self) -> None:
        """Takes no more requests; those under way end."""
        ...


EndpointFactory = Callable[[Gateway, Configuration], Endpoint]


def configured(gateway: Gateway, config: Configuration) -> list[Endpoint]:
    """The endpoints that the options name, in their order; ValidationError for one that nobody brings,
    SetupError for one that could not start."""
    found = {entry.name: entry for entry in entry_points(group=GROUP)}
    made: list[Endpoint] = []
    for name in filter(None, re.split(r"[;,\s]+", config.read(ENDPOINTS))):
        if name not in found:
            raise ValidationError(f"There is no endpoint '{name}'.", expected=tuple(sorted(found)))
        factory: EndpointFactory = found[name].load()
        made.append(factory(gateway, config))
    return made
