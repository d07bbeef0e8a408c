"""Java properties, as ``spark-defaults.conf`` and the files of ``--conf-file`` hold options.

``key value``, ``key=value`` or ``key: value`` a line; ``#`` and ``!`` begin comments; a line that ends with a
backslash goes on in the next one; a backslash takes the next character as it is.
"""

from __future__ import annotations

import re
from pathlib import Path

from tidemill.errors import ConnectorError

_CONTINUED = re.compile(r"(?<!\\)(?:\\\\)*\\\n[ \t]*")
_ENTRY = re.compile(r"((?:\\.|[^\\\s=:])+)(?:\s*[=:]\s*|\s+|$)(.*)")
_ESCAPE = re.compile(r"\\(.)")


def read_properties(file: Path) -> dict[str, str]:
    """The entries of a file. ConnectorError where it cannot be read."""
    try:
        return parse_properties(file.read_text(encoding="utf-8"))
    except OSError as e:
        raise ConnectorError(f"Cannot read the options in '{file}': {e.strerror or e}") from e
    except UnicodeDecodeError as e:
        raise ConnectorError(f"Cannot read the options in '{file}': it is not UTF-8 text") from e


def parse_properties(text: str) -> dict[str, str]:
    """The last entry of a key counts."""
    entries: dict[str, str] = {}
    for line in _CONTINUED.sub(_without_break, text).splitlines():
        entry = _ENTRY.match(line.strip())
        if entry is not None and not line.lstrip().startswith(("#", "!")):
            key, value = (_ESCAPE.sub(r"\1", part) for part in entry.groups())
            entries[key] = value
    return entries


def _without_break(match: re.Match[str]) -> str:
    """The backslashes before the one that ends the line."""
    return match.group(0).rstrip(" \t")[:-2]
