"""A module beside the user's module, which it imports."""

from __future__ import annotations


def add(a: int, b: int) -> int:
    return a + b
