"""What all statements have, and what is changed alike in objects of several kinds."""

from __future__ import annotations

from dataclasses import dataclass

from tidemill.errors import Position

Path = tuple[str, ...]
Options = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    text: str
    position: Position


@dataclass(frozen=True, slots=True, kw_only=True)
class Drop(Statement):
    """``cascade`` matters for databases only."""

    path: Path
    if_exists: bool = False
    temporary: bool = False
    cascade: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RenameTable:
    to: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class SetOptions:
    options: Options


@dataclass(frozen=True, slots=True, kw_only=True)
class ResetOptions:
    keys: tuple[str, ...]
