"""Which of many targets a request is for: by its method and path, a look into a dictionary for each step."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Generic, TypeVar

T = TypeVar("T")


@dataclass(slots=True)
class _Step(Generic[T]):
    """``named``: the steps that may follow; ``other``: what follows where any name may stand."""

    named: dict[str, _Step[T]] = field(default_factory=dict)
    other: _Step[T] | None = None
    targets: dict[str, tuple[T, tuple[str, ...]]] = field(default_factory=dict)


@dataclass(slots=True)
class Paths(Generic[T]):
    """Of paths like ``/sessions/{session}/close``. A step's own name goes before one for which any stands."""

    _root: _Step[T] = field(default_factory=_Step)

    def add(self, method: str, path: str, target: T) -> None:
        names: list[str] = []
        step = self._root
        for part in _parts(path):
            if part.startswith("{"):
                names.append(part.strip("{}"))
                step.other = step.other or _Step()
                step = step.other
            else:
                step = step.named.setdefault(part, _Step())
        step.targets[method] = (target, tuple(names))

    def find(self, method: str, path: str) -> tuple[T, dict[str, str]] | None:
        """The target, and what stands for the names in its path."""
        values: list[str] = []
        step = self._root
        for part in _parts(path):
            following = step.named.get(part)
            if following is None:
                following = step.other if part else None
                values.append(part)
            if following is None:
                return None
            step = following
        found = step.targets.get("GET" if method == "HEAD" else method)
        return None if found is None else (found[0], dict(zip(found[1], values, strict=True)))


def _parts(path: str) -> list[str]:
    return path.strip("/").split("/")
