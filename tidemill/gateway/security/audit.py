"""The audit log: logins and requests with their users, one line of JSON each.

Statements are logged with masked secrets. A line is written before the request runs; if the file cannot be
written, the request is refused. Only the file's owner can read it. Other tools rotate the log; they may move
the file away at any time.
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
    """``file``: '' for no audit log."""

    file: str = ""
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        if self.file:
            try:
                os.close(self._opened())
            except OSError as e:
                raise SetupError(f"The audit log '{self.file}' cannot be written: {e.strerror or e}") from e

    def note(self, event: str, user: str, **fields: str) -> None:
        """Appends a line. StateError if the file cannot be written."""
        if not self.file:
            return
        time = dt.datetime.now(dt.UTC).isoformat(timespec="milliseconds")
        document = {"time": time, "event": event, "user": user, **{k: v for k, v in fields.items() if v}}
        line = (json.dumps(document, ensure_ascii=False) + "\n").encode("utf-8", "replace")
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
