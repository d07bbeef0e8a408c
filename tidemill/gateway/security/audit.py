"""The audit log: who has come, and what he asked for, a line of JSON each.

Statements are shown without their secrets. A line is written before what it tells of is done; a file that
cannot be written refuses it. Only its user can read the file; turning it over is left to others, who may move
it away at any time.
"""

from __future__ import annotations

import datetime as dt
import json
import os
import threading
from dataclasses import dataclass, field

from tidemill.errors import SetupError, StateError


@dataclass(slots=True)
class Audit:
    """``file``: '' keeps none."""

    file: str = ""
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        if self.file:
            try:
                os.close(self._opened())
            except OSError as e:
                raise SetupError(f"The audit log '{self.file}' cannot be written: {e.strerror or e}") from e

    def note(self, event: str, user: str, **fields: str) -> None:
        """StateError where it cannot be written."""
        if not self.file:
            return
        time = dt.datetime.now(dt.UTC).isoformat(timespec="milliseconds")
        told = {"time": time, "event": event, "user": user, **{k: v for k, v in fields.items() if v}}
        line = (json.dumps(told, ensure_ascii=False) + "\n").encode("utf-8", "replace")
        try:
            with self._lock:
                descriptor = self._opened()
                try:
                    os.write(descriptor, line)
                finally:
                    os.close(descriptor)
        except OSError as e:
            raise StateError(f"The audit log cannot be written: {e.strerror or e}") from e

    def _opened(self) -> int:
        return os.open(self.file, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
