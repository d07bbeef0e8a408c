"""How texts that hold secrets are kept: as they are, or sealed with a key that lies elsewhere."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Seal:
    """``open`` gives what ``close`` was given, and takes texts that were kept before there was a seal."""

    close: Callable[[str], str] = str
    open: Callable[[str], str] = str


PLAIN = Seal()
