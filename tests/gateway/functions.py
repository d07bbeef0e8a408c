"""User functions of an installed module, and what such a module has imported."""

from __future__ import annotations

from os import system
from urllib.parse import quote as imported

__all__ = ["doubled", "imported", "system"]


def doubled(text: str) -> str:
    return text + text
