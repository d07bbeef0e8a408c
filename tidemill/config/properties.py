"""Parses Java properties, the syntax of ``spark-defaults.conf`` and of the files of ``--conf-file``.

A line is ``key value``, ``key=value`` or ``key: value``. ``#`` and ``!`` begin comments. A line that ends
with a backslash continues on the next line. A backslash escapes the next character.
"""

from __future__ import annotations

import re
from pathlib import Path

from tidemill.errors import ConnectorError

_CONTINUED = re.compile(r"(?<!\\)(?:\\\\)*\\\n[ \t]*")
_ENTRY = re.compile(r"((?:\\.|[^\\\s=:])+)(?:\s*[=:]\s*|\s+|$)(.*)")
_ESCAPE = re.compile(r"\\(.)")


def read_properties(file: Path) -> dict[str, str]:
    """The entries of a file. ConnectorError if it cannot be read."""
    try:
        return parse_properties(file.read_text(encoding="utf-8"))
    except OSError as e:
        raise ConnectorError(f"Cannot read the options in '{file}': {e.strerror or e}") from e
    except UnicodeDecodeError as e:
        raise ConnectorError(f"Cannot read the options in '{file}': it is not UTF-8 text") from e


def parse_properties(text: str) -> dict[str, str]:
    """The entries of ``text``. The last entry of a key wins. Example: ``a.b = 1`` gives ``{"a.b": "1"}``."""
    entries: dict[str, str] = {}
    for line in _CONTINUED.sub(_without_break, text).splitlines():
        entry = _ENTRY.match(line.strip())
        if entry is not None and not line.lstrip().startswith(("#", "!")):
            key, value = (_ESCAPE.sub(r"\1", part) for part in entry.groups())
            entries[key] = value
    return entries


def _without_break(match: re.Match[str]) -> str:
    """A line continuation without its last backslash and the newline."""
    return match.group(0).rstrip(" \t")[:-2]
