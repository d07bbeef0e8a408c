"""Names of columns that a plan adds."""

from __future__ import annotations

from collections.abc import Iterable


def free_name(name: str, taken: Iterable[str]) -> str:
    """``name``, or one like it that is not ``taken``."""
    others = set(taken)
    while name in others:
        name += "$"
    return name
