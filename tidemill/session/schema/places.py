"""Where a piece of a statement stands in the script."""

from __future__ import annotations

from tidemill.errors import Position
from tidemill.sql.statements import Statement


def place_of(piece: str, statement: Statement, after: Position) -> Position:
    """The position of ``piece``, text as written, at or behind ``after``; ``after`` if it is not found."""
    start = statement.text.find(piece, _offset(statement, after))
    if start < 0:
        return after
    before = statement.text[:start]
    lines = before.count("\n")
    column = len(before) - before.rfind("\n") - 1
    first = statement.position.column if lines == 0 else 1
    return Position(statement.position.line + lines, first + column)


def _offset(statement: Statement, position: Position) -> int:
    """How far into the statement's text ``position`` is."""
    lines = statement.text.split("\n")
    below = position.line - statement.position.line
    if below == 0:
        return position.column - statement.position.column
    return sum(len(line) + 1 for line in lines[:below]) + position.column - 1
