"""Jobs that have ended, a file for each run: JSON, in a folder that only their user can look into.

A file is there whole or not at all, and never changes. Names begin with the time of the run's begin, so that
the last ones are found without a look into any. Whoever adds one removes the oldest beyond the limit.
"""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

Json = dict[str, Any]
_TEXTS, _TIMES = ("id", "name", "mode", "status", "error"), ("begun", "ended")
"""What every record has."""
_SUFFIX = ".json"


@dataclass(frozen=True, slots=True)
class Records:
    """``most``: how many are kept."""

    folder: str
    most: int

    def add(self, begun: float, job_id: str, document: Json) -> None:
        """OSError where it cannot be kept."""
        os.makedirs(self.folder, mode=0o700, exist_ok=True)
        path = os.path.join(self.folder, f"{int(begun * 1000):014d}-{job_id}{_SUFFIX}")
        made = f"{path}.{uuid.uuid4().hex}"
        try:
            with open(made, "w", encoding="utf-8", opener=_private) as file:
                json.dump(document, file)
            os.replace(made, path)
        except BaseException:
            if os.path.exists(made):
                os.remove(made)
            raise
        for name in self._names()[self.most :]:
            self._remove(name)

    def last(self, count: int) -> list[Json]:
        """The youngest first."""
        return list(self._documents(self._names()[:count]))

    def find(self, job_id: str) -> Json | None:
        """The last run of a job whose id begins so; None where there is none."""
        names = [name for name in self._names() if name.partition("-")[2].startswith(job_id)]
        return next(self._documents(names), None)

    def _names(self) -> list[str]:
        try:
            found = os.listdir(self.folder)
        except FileNotFoundError:
            return []
        return sorted((name for name in found if name.endswith(_SUFFIX)), reverse=True)

    def _documents(self, names: list[str]) -> Iterator[Json]:
        for name in names:
            try:
                with open(os.path.join(self.folder, name), encoding="utf-8") as file:
                    found = json.load(file)
            except (OSError, ValueError):  # removed meanwhile, or damaged: others are whole
                continue
            if _is_record(found):
                yield found

    def _remove(self, name: str) -> None:
        try:
            os.remove(os.path.join(self.folder, name))
        except FileNotFoundError:
            return


def _is_record(found: Any) -> bool:
    return (
        isinstance(found, dict)
        and all(isinstance(found.get(key), str) for key in _TEXTS)
        and all(isinstance(found.get(key), int | float) for key in _TIMES)
    )


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)
