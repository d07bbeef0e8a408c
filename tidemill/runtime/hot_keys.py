"""Hot keys: keys with so many rows that all buckets of their operator share them (see
``operators.buckets``).

A key becomes hot in the epoch of its first rows, and that epoch runs again. It stays hot, because each bucket
then has a part of the key's state from the first row on.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from tidemill.operators.api import HOT

Hot = dict[str, list[int]]
"""Hashes of keys by operator."""
_KEYS = 1024
"""Of an operator at most: each costs its writers a look per row and the commit record a number."""


def updated(hot: Hot, tasks: Iterable[Mapping[str, Any]]) -> Hot:
    """``hot``, with the keys that the ``tasks`` of an epoch reported."""
    made = {operator: set(keys) for operator, keys in hot.items()}
    for task in tasks:
        keys = made.setdefault(task["operator"], set())
        keys |= set(sorted(set(task.get(HOT, ())) - keys)[: _KEYS - len(keys)])
    return {operator: sorted(keys) for operator, keys in made.items() if keys}
