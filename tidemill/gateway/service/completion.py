"""What may stand at a place of a statement: tables behind FROM and JOIN, columns and functions elsewhere.

Behind FROM the answers and their order are Flink's. A word that has been begun must be met by its beginning.
"""

from __future__ import annotations

import re

from tidemill.catalog.table import CatalogTable
from tidemill.errors import SqlSyntaxError
from tidemill.functions import registry
from tidemill.session.context import SessionContext
from tidemill.sql.lexer import Kind, Token, tokens

_BEGUN = re.compile(r"[\w.$]*$")
_FUNCTION = re.compile(r"[A-Z_][A-Z0-9_]*")
_BEFORE_TABLES = ("FROM", "JOIN", "INTO", "TABLE", "DESCRIBE", "DESC", "VIEW")
_RELATIONS = ("(", "LATERAL", "TABLE", "UNNEST")


def complete(context: SessionContext, text: str, position: int) -> list[str]:
    """In the order in which they are best shown; empty where nothing is known to fit."""
    before = text[: max(position, 0)]
    match = _BEGUN.search(before)
    begun = match.group() if match else ""
    words = _words(before[: len(before) - len(begun)])
    last = words[-1].upper if words else ""
    if last in _BEFORE_TABLES:
        found = [*(_RELATIONS if last in ("FROM", "JOIN") else ()), *_tables(context)]
    else:
        found = _values(context, _words(text)) if words and begun else []
    low = begun.lower()
    return [name for name in found if _meets(name, low)]


def _meets(name: str, begun: str) -> bool:
    """A path is also found by its last part."""
    return name.lower().startswith(begun) or (
        "." in name and name.lower().rpartition(".")[2].startswith(begun)
    )


def _words(text: str) -> list[Token]:
    found: list[Token] = []
    try:
        for token in tokens(text):
            if token.kind is not Kind.EOF:
                found.append(token)
    except SqlSyntaxError:
        return found
    return found


def _tables(context: SessionContext) -> list[str]:
    catalog, database = context.current_catalog, context.current_database
    tables = [f"{catalog}.{database}.{name}" for name in context.object_names(catalog, database)]
    catalogs = sorted(context.catalogs.catalogs)
    databases = [f"{c}.{d}" for c in catalogs for d in sorted(context.catalogs.catalogs[c].databases)]
    return [*tables, *catalogs, *databases]


def _values(context: SessionContext, words: list[Token]) -> list[str]:
    """Columns of the tables that the statement names, then functions."""
    named = {word.value for word in words if word.kind in (Kind.WORD, Kind.QUOTED)}
    columns: dict[str, None] = {}
    for path in context.catalogs.paths(context.current_catalog, context.current_database):
        entry = context.catalogs.find(path)
        if path.name in named and isinstance(entry, CatalogTable):
            columns.update(dict.fromkeys(c.name for c in entry.columns))
    return [*columns, *sorted(n for n in registry.names() if _FUNCTION.fullmatch(n))]
