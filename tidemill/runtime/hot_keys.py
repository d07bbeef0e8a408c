"""Keys that have so many rows that these go to all buckets of their operator (see ``operators.buckets``).

A key becomes one in the epoch in which its first rows come, which runs again for it, and stays one: what the
buckets have of it is theirs from its first row on.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from tidemill.operators.api import HOT

Hot = dict[str, list[int]]
"""Hashes of keys by operator."""
_KEYS = 1024
"""Of an operator at most: each costs its writers a look per row and the commit record a number."""


def heard(hot: Hot, tasks: Iterable[Mapping[str, Any]]) -> Hot:
    """``hot`` with what the ``tasks`` of an epoch noted."""
    made = {operator: set(keys) for operator, keys in hot.items()}
    for task in tasks:
        keys = made.setdefault(task["operator"], set())
        keys |= set(sorted(set(task.get(HOT, ())) - keys)[: _KEYS - len(keys)])
    return {operator: sorted(keys) for operator, keys in made.items() if keys}
