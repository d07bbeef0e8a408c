"""Tables by name, and as arguments of a function."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from sqlglot import exp

from tidemill.errors import ValidationError
from tidemill.sql.expressions import TableArgument
from tidemill.sql.grammar.cursor import Cursor
from tidemill.sql.grammar.hints import hints
from tidemill.sql.grammar.nested import Nested
from tidemill.sql.grammar.ordering import Ordering
from tidemill.sql.positions import place, position_of

E = TypeVar("E", bound=exp.Expression)


def named(parts: list[exp.Identifier]) -> exp.Table:
    """A Table of one to three parts."""
    if len(parts) > 3:
        name = ".".join(part.name for part in parts)
        raise ValidationError(f"Object '{name}' not found", position=position_of(parts[0]))
    return exp.Table(**dict(zip(("this", "db", "catalog"), reversed(parts), strict=False)))


@dataclass(frozen=True, slots=True)
class TableArguments:
    cursor: Cursor
    nested: Nested
    ordering: Ordering

    def argument(self) -> TableArgument:
        """``TABLE t``, and what ``keyed`` reads."""
        self.cursor.expect("TABLE")
        token = self.cursor.current
        source = place(named(self.cursor.path()), token)
        if table_hints := hints(self.cursor):
            source.set("hints", table_hints)
        return self.keyed(source)

    def keyed(self, source: exp.Expression) -> TableArgument:
        """What follows a table or a query: ``[PARTITION BY ..] [ORDER BY ..]``."""
        partition = self._keys(self.nested.expression) if self.cursor.take("PARTITION", "BY") else []
        order = None
        if self.cursor.take("ORDER", "BY"):
            order = exp.Order(expressions=self._keys(self.ordering.key))
        return TableArgument(this=source, partition_by=partition, order=order)

    def _keys(self, key: Callable[[], E]) -> list[E]:
        """A table argument takes one key, or several in parentheses: a comma ends it."""
        return self.cursor.wrapped(key) if self.cursor.at("(") else [key()]
