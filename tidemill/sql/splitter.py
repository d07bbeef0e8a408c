"""A script -> its statements, one at a time.

A statement ends at a semicolon outside strings, quoted names, comments and statement sets
(``BEGIN STATEMENT SET; ...; END`` and ``EXECUTE STATEMENT SET BEGIN ... END`` are one statement). The
split is lazy: what is wrong with a later statement shows only when the iteration comes to it.
Cost: one pass over the text.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tidemill.errors import Position
from tidemill.sql.lexer import Kind, Token, tokens

_SET_OPENERS = ("EXECUTE", "EXPLAIN", "COMPILE")
_SET_WORDS = ("STATEMENT", "SET", "BEGIN")
_BEGIN_SET = ("BEGIN", "STATEMENT", "SET")
# EXPLAIN with every detail, each behind a comma, and STATEMENT SET BEGIN.
_LONGEST_OPENING = 16


@dataclass(frozen=True, slots=True)
class Piece:
    """A statement without its semicolon; ``position`` is that of its first character."""

    text: str
    position: Position


def split(script: str) -> Iterator[Piece]:
    """The statements of ``script``; pieces with nothing but comments are left out.

    Raises SqlSyntaxError at a string, quoted name or comment that does not end.
    """
    pending: list[Token] = []
    for token in tokens(script):
        if token.kind is Kind.EOF:
            break
        if token.upper == ";" and not _is_open_set(pending):
            if pending:
                yield _piece(script, pending)
            pending = []
        elif pending or token.upper != ";":
            pending.append(token)
    if pending:
        yield _piece(script, pending)


def _is_open_set(pending: list[Token]) -> bool:
    """Whether these tokens begin a statement set that has not come to its END."""
    if not pending or pending[-1].upper == "END":
        return False
    words = [token.upper for token in pending[:_LONGEST_OPENING]]
    if tuple(words[:3]) == _BEGIN_SET:
        return True
    if words[0] not in _SET_OPENERS or "BEGIN" not in words:
        return False
    begin = words.index("BEGIN")
    return tuple(words[begin - 2 : begin + 1]) == _SET_WORDS


def _piece(script: str, pending: list[Token]) -> Piece:
    first, last = pending[0], pending[-1]
    return Piece(script[first.start : last.end], first.position)
