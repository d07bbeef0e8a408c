"""The gateway's log on standard error: a line for each record, whatever names its text holds.

    2026-03-01T10:00:12Z WARNING There is no option 'a\\n2026-03-01 ...': it changes nothing.

What users write gets into messages. So characters that end a line, or steer a terminal, are shown by their
numbers, and the lines of a traceback are indented: no text of a user's begins a line.
"""

from __future__ import annotations

import datetime as dt
import logging
import unicodedata
from collections.abc import Iterator
from contextlib import contextmanager


class OneLine(logging.Formatter):
    """A record's line, and its traceback's."""

    def format(self, record: logging.LogRecord) -> str:
        time = dt.datetime.fromtimestamp(record.created, dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        lines = [f"{time} {record.levelname} {shown(record.getMessage())}"]
        if record.exc_info:
            lines += [f"    {shown(line)}" for line in self.formatException(record.exc_info).splitlines()]
        return "\n".join(lines)


def shown(text: str) -> str:
    """``text`` in one line: without letters that control."""
    return "".join(_escaped(c) if unicodedata.category(c) in _CONTROLS else c for c in text)


_CONTROLS = ("Cc", "Cf", "Cs", "Zl", "Zp")


def _escaped(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")


@contextmanager
def log_to_standard_error() -> Iterator[None]:
    """What Tidemill and the libraries say meanwhile."""
    handler, root = logging.StreamHandler(), logging.getLogger()
    handler.setFormatter(OneLine())
    root.addHandler(handler)
    try:
        yield
    finally:
        root.removeHandler(handler)
