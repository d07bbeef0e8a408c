"""Walks over plans with shared sub-plans that visit each node once.

A CTE that is read twice is one object with two readers. A plain recursion would visit ``n`` such CTEs over
each other 2^n times. ``once_per_node`` gives a recursive function a cache for the time of its outermost call.
So the walk is linear, and its results share the sub-plans that the plan shares.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

T = TypeVar("T")


def once_per_node(walk: Callable[..., T]) -> Callable[..., T]:
    """The pure recursive function ``walk(node, *more)`` with a cache. The key is the node's identity and the
    value of ``more``, which must be hashable."""
    memory = threading.local()

    @wraps(walk)
    def remembered(node: object, *more: object) -> T:
        cache: dict[Any, tuple[object, T]] | None = getattr(memory, "cache", None)
        if cache is None:
            memory.cache = {}
            try:
                return remembered(node, *more)
            finally:
                del memory.cache
        key = (id(node), *more)
        cached = cache.get(key)
        if cached is None:
            # The cache keeps the node alive: another node could get the id of a freed node.
            cached = cache[key] = (node, walk(node, *more))
        return cached[1]

    return remembered
