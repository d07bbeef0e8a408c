"""The public interface of the grammar: text -> statement, text -> type."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeVar

from sqlglot import exp

from tidemill.deep_calls import with_room
from tidemill.errors import Position
from tidemill.last_used import LastUsed
from tidemill.sql import statements as s
from tidemill.sql.grammar.cursor import Cursor
from tidemill.sql.grammar.statements.statement import Statements
from tidemill.sql.grammar.trees import Trees
from tidemill.sql.grammar.types import Types
from tidemill.sql.lexer import START
from tidemill.sql.splitter import split
from tidemill.types.logical import LogicalType

T = TypeVar("T")

_QUERIES = LastUsed[s.Query](most=100, heaviest=1 << 20, weight=lambda query: len(query.text))
"""By text and position. Letters weigh: a tree takes some hundred bytes for each."""


def parse_statement(text: str, position: Position = START) -> s.Statement:
    """One statement, with or without its semicolon; ``position`` is where it starts in its script.

    Raises SqlSyntaxError with the position and the choices that were expected, ValidationError for
    types out of range, NotSupportedError for syntax that names something Tidemill does not have. A query that
    was parsed before is that tree again, which nobody changes.
    """
    cached = _QUERIES.get((text, position))
    if cached is not None:
        return cached
    statement = with_room(lambda: _whole(Cursor(text, position), _statement))
    if isinstance(statement, s.Query):
        _QUERIES.keep((text, position), statement)
    return statement


def parse_script(script: str) -> Iterator[s.Statement]:
    """The statements of a script, each parsed when the iteration comes to it."""
    for piece in split(script):
        yield parse_statement(piece.text, piece.position)


def parse_expression(text: str, position: Position = START) -> exp.Expression:
    """One value expression, such as that of a computed column or a watermark."""
    return with_room(lambda: _whole(Cursor(text, position), _expression))


def _statement(cursor: Cursor) -> s.Statement:
    return Statements(cursor, Trees(cursor)).statement()


def _expression(cursor: Cursor) -> exp.Expression:
    return Trees(cursor).expression()


def _whole(cursor: Cursor, read: Callable[[Cursor], T]) -> T:
    """What ``read`` makes of the text, if nothing but a semicolon is left behind it."""
    result = read(cursor)
    cursor.take(";")
    if not cursor.at_end():
        cursor.fail("<EOF>")
    return result


def parse_type(text: str) -> LogicalType:
    """The type that ``text`` names in Flink's syntax, ``NOT NULL`` included.

    Raises SqlSyntaxError or ValidationError with the position in ``text``, NotSupportedError for types
    Tidemill has no values of (RAW, VARIANT, STRUCTURED).
    """
    return with_room(lambda: _parsed(Cursor(text)))


def _parsed(cursor: Cursor) -> LogicalType:
    kind = Types(cursor, interval_columns=True).nullable_type()
    if not cursor.at_end():
        cursor.fail("<EOF>")
    return kind
