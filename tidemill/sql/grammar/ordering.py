"""PARTITION BY and ORDER BY lists."""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from tidemill.sql.grammar.cursor import Cursor
from tidemill.sql.grammar.nested import Nested
from tidemill.sql.positions import place


@dataclass(frozen=True, slots=True)
class Ordering:
    cursor: Cursor
    nested: Nested

    def partition_by(self) -> list[exp.Expression]:
        """The keys of PARTITION BY, none where it is not written."""
        return self.cursor.separated(self.nested.expression) if self.cursor.take("PARTITION", "BY") else []

    def order_by(self) -> exp.Order | None:
        """``nulls_first`` of an exp.Ordered is None if NULLS FIRST / LAST is not written."""
        token = self.cursor.current
        if not self.cursor.take("ORDER", "BY"):
            return None
        return place(exp.Order(expressions=self.cursor.separated(self.key)), token)

    def key(self) -> exp.Ordered:
        """One key of an ORDER BY list."""
        token = self.cursor.current
        node = self.nested.expression()
        descending = self.cursor.take_any("ASC", "DESC") == "DESC"
        nulls_first = None
        if self.cursor.take("NULLS"):
            nulls_first = self.cursor.expect_any("FIRST", "LAST") == "FIRST"
        return place(exp.Ordered(this=node, desc=descending, nulls_first=nulls_first), token)
