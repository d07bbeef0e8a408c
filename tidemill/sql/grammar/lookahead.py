"""What follows, found without moving the cursor. Cost: the tokens looked at, of a parenthesis all."""

from __future__ import annotations

from tidemill.sql.grammar.cursor import Cursor
from tidemill.sql.lexer import Kind, Token

_QUERY_STARTS = ("SELECT", "VALUES", "WITH")


def at_query(cursor: Cursor) -> bool:
    """Whether a query starts here, also behind opening parentheses."""
    ahead = 0
    while cursor.peek(ahead).upper == "(":
        ahead += 1
    word = cursor.peek(ahead).upper
    return word in _QUERY_STARTS or (word == "TABLE" and cursor.peek(ahead + 1).upper != "(")


def behind_parenthesis(cursor: Cursor, ahead: int) -> Token:
    """The token behind the parenthesis that opens ``ahead`` tokens from here; EOF if none closes it."""
    depth = 0
    while (token := cursor.peek(ahead)).kind is not Kind.EOF:
        depth += {"(": 1, ")": -1}.get(token.upper, 0)
        ahead += 1
        if depth == 0:
            return cursor.peek(ahead)
    return token
