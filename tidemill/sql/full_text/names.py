"""The full names of the names in a query tree, recorded by the binder while it binds the tree.

Keys are the ids of the tree's nodes, so the records are only valid while the tree is alive.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from sqlglot import exp

Name = tuple[str, ...]
"""A column in full: its relation's alias (if it has one), its name, fields of its ROW."""


@dataclass(slots=True)
class FullNames:
    """``columns`` of column names, ``stars`` of stars with the names that the query gives them, ``tables`` of
    tables and views, ``relations`` the aliases that relations without one get; what is in none of them is the
    query's own, or cannot be said in one name."""

    columns: dict[int, Name] = field(default_factory=dict)
    stars: dict[int, tuple[tuple[Name, str], ...]] = field(default_factory=dict)
    tables: dict[int, Name] = field(default_factory=dict)
    relations: dict[int, str] = field(default_factory=dict)

    def column(self, node: exp.Expr, name: Name) -> None:
        """Records a column's full name; nothing for a column without a name."""
        if name:
            self.columns[id(node)] = name

    def star(self, node: exp.Expr, columns: Iterable[tuple[Name, str]]) -> None:
        named_columns = tuple(columns)
        if all(name for name, _ in named_columns):
            self.stars[id(node)] = named_columns

    def relation(self, node: exp.Expr) -> str:
        """An alias for a relation without an alias, in Flink's form."""
        return self.relations.setdefault(id(node), f"EXPR${len(self.relations)}")

    def table(self, node: exp.Expr, path: Name) -> None:
        self.tables[id(node)] = path


class Unprintable(Exception):
    """A query, or a part of a query, that this package cannot print."""


def quoted(*parts: str) -> str:
    return ".".join("`" + part.replace("`", "``") + "`" for part in parts)


def string(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
