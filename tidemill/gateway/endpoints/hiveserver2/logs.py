"""What has been told of operations' logs: clients ask for the lines that are new, and name no position."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field

from tidemill.gateway.api import OperationInfo, OperationStatus

_REMEMBERED = 10_000
_WAITING = (OperationStatus.INITIALIZED, OperationStatus.PENDING)


@dataclass(slots=True)
class Logs:
    """Of all sessions; the oldest are forgotten, and told again."""

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
