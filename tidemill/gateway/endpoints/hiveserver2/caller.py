"""The context of a connection's requests: the service, the user, and whether the client is still
connected."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field

from tidemill.gateway.api import OperationInfo, OperationStatus
from tidemill.gateway.service.service import Gateway

_REMEMBERED = 10_000
_WAITING = (OperationStatus.INITIALIZED, OperationStatus.PENDING)


@dataclass(slots=True)
class Logs:
    """How much of each operation's log was sent: clients ask for the new lines, and name no position. The
    oldest operations are forgotten, and their lines sent again."""

    _told: dict[str, int] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def fresh(self, info: OperationInfo, *, first: bool) -> list[str]:
        """The lines that are new since the last call; with ``first`` all."""
        found = _lines(info)
        with self._lock:
            told = 0 if first else self._told.pop(info.handle, 0)
            self._told[info.handle] = len(found)
            while len(self._told) > _REMEMBERED:
                self._told.pop(next(iter(self._told)))
        return found[told:]


def _lines(info: OperationInfo) -> list[str]:
    lines = [f"{info.submitted:%Y-%m-%d %H:%M:%S} Operation {info.handle} was submitted."]
    if info.status not in _WAITING:
        lines.append(f"Operation {info.handle} runs.")
    lines += [f"Warning: {text}" for text in info.warnings]
    if info.status.is_terminal:
        lines.append(f"Operation {info.handle} has ended: {info.status.value}.")
    return lines


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
