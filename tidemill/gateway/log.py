"""The gateway's log on standard error: one line per record, whatever its text contains.

    2026-03-01T10:00:12Z WARNING There is no option 'a\\n2026-03-01 ...': it changes nothing.

Users' texts get into messages. So characters that end a line or control a terminal are escaped, and the lines
of a traceback are indented: no user's text can begin a line.
"""

from __future__ import annotations

import datetime as dt
import logging
import unicodedata
from collections.abc import Iterator
from contextlib import contextmanager


class OneLine(logging.Formatter):
    """Formats a record as one line, followed by the indented lines of its traceback."""

    def format(self, record: logging.LogRecord) -> str:
        time = dt.datetime.fromtimestamp(record.created, dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        lines = [f"{time} {record.levelname} {escape_controls(record.getMessage())}"]
        if record.exc_info:
            lines += [
                f"    {escape_controls(line)}" for line in self.formatException(record.exc_info).splitlines()
            ]
        return "\n".join(lines)


def escape_controls(text: str) -> str:
    """``text`` in one line, with control characters escaped: a newline becomes ``\\n``."""
    return "".join(_escaped(c) if unicodedata.category(c) in _CONTROLS else c for c in text)


_CONTROLS = ("Cc", "Cf", "Cs", "Zl", "Zp")


def _escaped(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")


@contextmanager
def log_to_standard_error() -> Iterator[None]:
    """Within the context, writes the log records of Tidemill and of libraries to standard error."""
    handler, root = logging.StreamHandler(), logging.getLogger()
    handler.setFormatter(OneLine())
    root.addHandler(handler)
    try:
        yield
    finally:
        root.removeHandler(handler)
