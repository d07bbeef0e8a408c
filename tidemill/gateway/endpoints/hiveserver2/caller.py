"""The context of a connection's requests: the service, the user, and whether the client is still
connected."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tidemill.gateway.endpoints.hiveserver2.logs import Logs
from tidemill.gateway.service.service import Gateway


@dataclass(slots=True, kw_only=True)
class Caller:
    """One connection. ``is_there``: whether the client is still connected; long waits check it. ``log_in``:
    maps a name and a password to a user; set if the connection has no credentials, so that its first session
    must have them. ``is_known``: the user is authenticated."""

    gateway: Gateway
    is_there: Callable[[], bool]
    logs: Logs
    user: str = ""
    log_in: Callable[[str, str], str] | None = None
    is_known: bool = False


class GoneError(Exception):
    """The client disconnected while it waited for an answer."""
