"""What the names in a query tree stand for, noted by the binder while it binds the tree.

Keys are the ids of the tree's nodes: the notes are worth as much as the tree that they were taken from lives.
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
        """Nothing is noted of a column without a name of its own."""
        if name:
            self.columns[id(node)] = name

    def star(self, node: exp.Expr, columns: Iterable[tuple[Name, str]]) -> None:
        found = tuple(columns)
        if all(name for name, _ in found):
            self.stars[id(node)] = found

    def relation(self, node: exp.Expr) -> str:
        """An alias for a relation that has none, as Flink makes it up."""
        return self.relations.setdefault(id(node), f"EXPR${len(self.relations)}")

    def table(self, node: exp.Expr, path: Name) -> None:
        self.tables[id(node)] = path


class Unprintable(Exception):
    """A query, or a part of one, for which there is no form here."""


def quoted(*parts: str) -> str:
    return ".".join("`" + part.replace("`", "``") + "`" for part in parts)


def string(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
