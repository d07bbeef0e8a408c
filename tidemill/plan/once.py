"""Walks over plans that share sub-plans: what a walk did at a node it does not do again.

A CTE that is read twice is one object with two readers, and ``n`` such CTEs over each other are n nodes
that a plain recursion would visit 2^n times. ``once_per_node`` gives a recursive function a memory that
lasts as long as its outermost call, so the walk is linear and its results share what the plan shares.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

T = TypeVar("T")


def once_per_node(walk: Callable[..., T]) -> Callable[..., T]:
    """``walk(node, *more)``, pure and recursive, with one answer per node (by identity) and ``more``
    (by value, which must be hashable)."""
    memory = threading.local()

    @wraps(walk)
    def remembered(node: object, *more: object) -> T:
        known: dict[Any, tuple[object, T]] | None = getattr(memory, "known", None)
        if known is None:
            memory.known = {}
            try:
                return remembered(node, *more)
            finally:
                del memory.known
        key = (id(node), *more)
        found = known.get(key)
        if found is None:
            # The node is kept with its answer: a freed one's id could come again.
            found = known[key] = (node, walk(node, *more))
        return found[1]

    return remembered
