"""What a request is answered with: the service, who asks, and whether he still listens."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tidemill.gateway.endpoints.hiveserver2.logs import Logs
from tidemill.gateway.service.service import Gateway


@dataclass(slots=True, kw_only=True)
class Caller:
    """One connection. ``is_there``: whether the client has not gone; what waits for long asks it.
    ``log_in``: the user of a name and a password, where the connection itself has not said who asks, which
    its first session must do; ``is_known``: somebody has."""

    gateway: Gateway
    is_there: Callable[[], bool]
    logs: Logs
    user: str = ""
    log_in: Callable[[str, str], str] | None = None
    is_known: bool = False


class GoneError(Exception):
    """The client went while it waited: there is nobody to answer."""
