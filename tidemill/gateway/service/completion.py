"""Completes a statement at a position: with tables behind FROM and JOIN, elsewhere with columns and
functions.

Behind FROM the completions and their order are Flink's. A completion begins with the word before the
position.
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
    """Completions of ``text`` at ``position``, best first; empty if there are none. Example: ``SELECT cou``
    gives ``["COUNT"]``."""
    before = text[: max(position, 0)]
    match = _BEGUN.search(before)
    prefix = match.group() if match else ""
    words = _words(before[: len(before) - len(prefix)])
    last = words[-1].upper if words else ""
    if last in _BEFORE_TABLES:
        candidates = [*(_RELATIONS if last in ("FROM", "JOIN") else ()), *_tables(context)]
    else:
        candidates = _values(context, _words(text)) if words and prefix else []
    lower_prefix = prefix.lower()
    return [name for name in candidates if _begins_with(name, lower_prefix)]


def _begins_with(name: str, prefix: str) -> bool:
    """Whether ``name``, or the last part of a path, begins with ``prefix``."""
    return name.lower().startswith(prefix) or (
        "." in name and name.lower().rpartition(".")[2].startswith(prefix)
    )


def _words(text: str) -> list[Token]:
    words: list[Token] = []
    try:
        for token in tokens(text):
            if token.kind is not Kind.EOF:
                words.append(token)
    except SqlSyntaxError:
        return words
    return words


def _tables(context: SessionContext) -> list[str]:
    catalog, database = context.current_catalog, context.current_database
    tables = [f"{catalog}.{database}.{name}" for name in context.names_within(catalog, database)]
    catalogs = sorted(context.catalogs.catalogs)
    databases = [f"{c}.{d}" for c in catalogs for d in sorted(context.catalogs.catalogs[c].databases)]
    return [*tables, *catalogs, *databases]


def _values(context: SessionContext, words: list[Token]) -> list[str]:
    """Columns of the tables that the statement names, then functions."""
    names = {word.value for word in words if word.kind in (Kind.WORD, Kind.QUOTED)}
    columns: dict[str, None] = {}
    for path in context.catalogs.paths(context.current_catalog, context.current_database):
        entry = context.catalogs.find(path)
        if path.name in names and isinstance(entry, CatalogTable):
            columns.update(dict.fromkeys(c.name for c in entry.columns))
    return [*columns, *sorted(n for n in registry.names() if _FUNCTION.fullmatch(n))]
