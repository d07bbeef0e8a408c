"""``table.catalog-store.kind`` = ``file``: a folder with one YAML file a catalog, as Flink's has it.

Each file maps options to texts. What Tidemill writes has every text in quotes; of YAML it reads lines
``key: value``, quoted or not, which is what Flink writes.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from urllib.parse import quote, unquote

from tidemill.catalog.kinds import CatalogDescription
from tidemill.errors import StateError

_SUFFIX = ".yaml"
_COMMENT = "$internal.comment"
_LINE = re.compile(r"""\s*("(?:[^"\\]++|\\.)*+"|'(?:[^']++|'')*+'|[^\s'":#][^:#]*?)\s*:\s+(.*?)\s*""")
_QUOTED = re.compile(r"""("(?:[^"\\]++|\\.)*+"|'(?:[^']++|'')*+')\s*(?:#.*)?""")


@dataclass(frozen=True, slots=True)
class FileCatalogStore:
    """StateError where the folder, or a file in it, cannot be used."""

    folder: str

    def names(self) -> Iterable[str]:
        try:
            return [unquote(n.removesuffix(_SUFFIX)) for n in os.listdir(self.folder) if n.endswith(_SUFFIX)]
        except FileNotFoundError:
            return []
        except OSError as e:
            raise self._unusable(e) from e

    def get(self, name: str) -> CatalogDescription:
        try:
            with open(self._file(name), encoding="utf-8") as file:
                options = _read(file.read(), file.name)
        except OSError as e:
            raise self._unusable(e) from e
        comment = options.pop(_COMMENT, None)
        return CatalogDescription(options, comment)

    def put(self, name: str, description: CatalogDescription) -> None:
        """Others see all of it or nothing; it may hold passwords, and is its user's alone."""
        comment = {} if description.comment is None else {_COMMENT: description.comment}
        lines = [f"{json.dumps(k)}: {json.dumps(v)}\n" for k, v in {**description.options, **comment}.items()]
        file = self._file(name)
        try:
            os.makedirs(self.folder, mode=0o700, exist_ok=True)
            with open(os.open(f"{file}.new", os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600), "w") as new:
                new.writelines(lines or ["{}\n"])
            os.replace(f"{file}.new", file)
        except OSError as e:
            raise self._unusable(e) from e

    def remove(self, name: str) -> None:
        try:
            os.unlink(self._file(name))
        except FileNotFoundError:
            return
        except OSError as e:
            raise self._unusable(e) from e

    def _file(self, name: str) -> str:
        return os.path.join(self.folder, quote(name, safe=" ") + _SUFFIX)

    def _unusable(self, error: OSError) -> StateError:
        return StateError(f"The catalog store '{self.folder}' cannot be used: {error.strerror or error}")


def _read(text: str, file: str) -> dict[str, str]:
    options: dict[str, str] = {}
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.strip() in ("---", "{}") or line.lstrip().startswith("#"):
            continue
        match = _LINE.fullmatch(line)
        if match is None or line.startswith((" ", "\t")):
            raise StateError(f"{file}, line {number}: an option is a line such as 'key: value'")
        options[_text(match.group(1))] = _text(match.group(2))
    return options


def _text(written: str) -> str:
    match = _QUOTED.fullmatch(written)
    if match is None:
        return written.partition(" #")[0].strip()
    quoted = match.group(1)
    return str(json.loads(quoted)) if quoted[0] == '"' else quoted[1:-1].replace("''", "'")
