"""Looks ahead without moving the cursor. Cost: constant, after one scan of the whole statement."""

from __future__ import annotations

from tidemill.sql.grammar.cursor import Cursor
from tidemill.sql.lexer import Token

_QUERY_STARTS = ("SELECT", "VALUES", "WITH")


def at_query(cursor: Cursor) -> bool:
    """Whether a query starts here, also behind opening parentheses."""
    ahead = cursor.parentheses.opened(cursor.index)
    word = cursor.peek(ahead).upper
    return word in _QUERY_STARTS or (word == "TABLE" and cursor.peek(ahead + 1).upper != "(")


def behind_parenthesis(cursor: Cursor, ahead: int) -> Token:
    """The token behind the parenthesis that opens ``ahead`` tokens from here; EOF if none closes it."""
    return cursor.peek(cursor.parentheses.behind(cursor.index + ahead) - cursor.index)
