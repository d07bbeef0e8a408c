"""Names of columns that a plan adds."""

from __future__ import annotations

from collections.abc import Iterable


def free_name(name: str, used_names: Iterable[str]) -> str:
    """``name``, with ``$`` appended until it is not among ``used_names``."""
    used = set(used_names)
    while name in used:
        name += "$"
    return name
