"""The history of ended jobs: one JSON file per run, in a folder that only their user can access.

A file appears only when it is complete, and never changes. Its name begins with the start time of the run, so
that the last runs are found without reading files. Each new record removes the oldest ones beyond the limit.
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
"""Keys that every record has."""
_SUFFIX = ".json"


@dataclass(frozen=True, slots=True)
class Records:
    """``most``: the largest number of records."""

    folder: str
    most: int

    def add(self, begun: float, job_id: str, document: Json) -> None:
        """Writes a record. OSError if this fails."""
        os.makedirs(self.folder, mode=0o700, exist_ok=True)
        path = os.path.join(self.folder, f"{int(begun * 1000):014d}-{job_id}{_SUFFIX}")
        temporary = f"{path}.{uuid.uuid4().hex}"
        try:
            with open(temporary, "w", encoding="utf-8", opener=_private) as file:
                json.dump(document, file)
            os.replace(temporary, path)
        except BaseException:
            if os.path.exists(temporary):
                os.remove(temporary)
            raise
        for name in self._names()[self.most :]:
            self._remove(name)

    def last(self, count: int) -> list[Json]:
        """The last ``count`` records, newest first."""
        return list(self._documents(self._names()[:count]))

    def find(self, job_id: str) -> Json | None:
        """The record of the last run of a job whose id begins with ``job_id``; None if there is none."""
        names = [name for name in self._names() if name.partition("-")[2].startswith(job_id)]
        return next(self._documents(names), None)

    def _names(self) -> list[str]:
        try:
            names = os.listdir(self.folder)
        except FileNotFoundError:
            return []
        return sorted((name for name in names if name.endswith(_SUFFIX)), reverse=True)

    def _documents(self, names: list[str]) -> Iterator[Json]:
        for name in names:
            try:
                with open(os.path.join(self.folder, name), encoding="utf-8") as file:
                    document = json.load(file)
            except (OSError, ValueError):  # removed meanwhile, or damaged: others are whole
                continue
            if _is_record(document):
                yield document

    def _remove(self, name: str) -> None:
        try:
            os.remove(os.path.join(self.folder, name))
        except FileNotFoundError:
            return


def _is_record(document: Any) -> bool:
    return (
        isinstance(document, dict)
        and all(isinstance(document.get(key), str) for key in _TEXTS)
        and all(isinstance(document.get(key), int | float) for key in _TIMES)
    )


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)
