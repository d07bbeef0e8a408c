"""Clauses that several statements have."""

from __future__ import annotations

from tidemill.catalog.table import Distribution
from tidemill.sql import statements as s
from tidemill.sql.grammar.cursor import Cursor
from tidemill.sql.lexer import Kind


def properties(cursor: Cursor) -> s.Options:
    """``('key' = 'value', ...)``, possibly empty."""
    if cursor.take("(", ")"):
        return ()
    return tuple(cursor.wrapped(lambda: _property(cursor)))


def _property(cursor: Cursor) -> tuple[str, str]:
    key = cursor.string()
    cursor.expect("=")
    return key, cursor.string()


def with_properties(cursor: Cursor) -> s.Options:
    """``WITH ('key' = 'value', ...)``, if here."""
    return properties(cursor) if cursor.take("WITH") else ()


def comment(cursor: Cursor) -> str:
    """The text of COMMENT, '' if there is none."""
    return cursor.string() if cursor.take("COMMENT") else ""


def if_not_exists(cursor: Cursor) -> bool:
    return cursor.take("IF", "NOT", "EXISTS")


def language(cursor: Cursor) -> str:
    """Of a function: JAVA where it is not written."""
    return cursor.expect_any("JAVA", "SCALA", "PYTHON", "SQL") if cursor.take("LANGUAGE") else "JAVA"


def distribution(cursor: Cursor) -> Distribution:
    """``[BY [HASH | RANGE] (columns)] [INTO n BUCKETS]`` behind DISTRIBUTED or DISTRIBUTION."""
    kind, buckets = "", None
    columns: tuple[str, ...] = ()
    if cursor.take("BY"):
        kind = cursor.take_any("HASH", "RANGE")
        columns = cursor.name_list()
    elif not cursor.at("INTO"):
        cursor.fail("BY", "INTO")
    if cursor.take("INTO"):
        buckets = cursor.integer()
        cursor.expect("BUCKETS")
    return Distribution(kind=kind, columns=columns, buckets=buckets)


def partition(cursor: Cursor) -> s.Options:
    """``PARTITION (column = literal, ...)``: values as text."""
    cursor.expect("PARTITION")
    return tuple(cursor.wrapped(lambda: _partition_value(cursor)))


def _partition_value(cursor: Cursor) -> tuple[str, str]:
    name = cursor.identifier().name
    cursor.expect("=")
    if cursor.current.kind is Kind.STRING:
        return name, cursor.string()
    first = cursor.current
    cursor.take("-")
    if cursor.current.kind is not Kind.NUMBER:
        cursor.fail("<literal>")
    cursor.advance()
    return name, cursor.text_since(first)
