"""Hints: ``/*+ A('k'='v'), B(t) */`` behind SELECT or the name of a table."""

from __future__ import annotations

from tidemill.sql.expressions import FlinkHint
from tidemill.sql.grammar.cursor import Cursor
from tidemill.sql.lexer import Kind
from tidemill.sql.positions import place


def hints(cursor: Cursor) -> list[FlinkHint]:
    """The hints that stand here, if any."""
    if not cursor.at_kind(Kind.HINT_START):
        return []
    cursor.advance()
    parsed_hints = cursor.separated(lambda: _hint(cursor))
    cursor.expect("*/")
    return parsed_hints


def _hint(cursor: Cursor) -> FlinkHint:
    token = cursor.current
    if token.kind not in (Kind.WORD, Kind.QUOTED):
        cursor.fail("<IDENTIFIER>")
    name = cursor.advance().value.upper()
    items = _items(cursor)
    options = [item for item in items if isinstance(item, tuple)]
    arguments = [item for item in items if isinstance(item, str)]
    return place(FlinkHint(this=name, options=options, arguments=arguments), token)


def _items(cursor: Cursor) -> list[str | tuple[str, str]]:
    if not cursor.at("(") or cursor.take("(", ")"):
        return []
    return cursor.wrapped(lambda: _item(cursor))


def _item(cursor: Cursor) -> str | tuple[str, str]:
    key = _word(cursor)
    return (key, _word(cursor)) if cursor.take("=") else key


def _word(cursor: Cursor) -> str:
    if cursor.at_kind(Kind.STRING):
        return cursor.string()
    if cursor.at_kind(Kind.NUMBER):
        return cursor.number()
    return ".".join(cursor.names())
