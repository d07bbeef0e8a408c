"""Queries: WITH, SELECT, VALUES, TABLE t, set operations, ORDER BY and LIMIT.

INTERSECT binds tighter than UNION and EXCEPT, which are left-associative; ORDER BY and LIMIT belong to
the whole set operation. ``TABLE t`` is SELECT * FROM t, ``VALUES ..`` is SELECT * FROM (VALUES ..); a
query in parentheses is an exp.Subquery only where its own ORDER BY, LIMIT or WITH must stay inside.
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from tidemill.errors import SqlSyntaxError
from tidemill.sql.grammar.cursor import Cursor
from tidemill.sql.grammar.nested import Nested
from tidemill.sql.grammar.ordering import Ordering
from tidemill.sql.grammar.queries.select import Selects
from tidemill.sql.grammar.tables import named
from tidemill.sql.positions import place

_MODIFIERS = ("order", "limit", "offset", "with_")
_CONFORMANCE = "is not allowed under the current SQL conformance level"


@dataclass(frozen=True, slots=True)
class Queries:
    cursor: Cursor
    nested: Nested
    ordering: Ordering
    selects: Selects

    def query(self) -> exp.Expression:
        token = self.cursor.current
        ctes = self._with()
        node = self._union()
        if isinstance(node, exp.Subquery) and (ctes is not None or self._at_modifiers()):
            node = _select_all(node)
        self._modifiers(node)
        if ctes is not None:
            node.set("with_", ctes)
        return place(node, token)

    def _with(self) -> exp.With | None:
        if not self.cursor.take("WITH"):
            return None
        recursive = self.cursor.take("RECURSIVE")
        return exp.With(expressions=self.cursor.separated(self._cte), recursive=recursive)

    def _cte(self) -> exp.CTE:
        token = self.cursor.current
        name = self.cursor.identifier()
        columns = self.cursor.wrapped(self.cursor.identifier) if self.cursor.at("(") else []
        self.cursor.expect("AS", "(")
        query = self.query()
        self.cursor.expect(")")
        return place(exp.CTE(this=query, alias=exp.TableAlias(this=name, columns=columns)), token)

    def _union(self) -> exp.Expression:
        left = self._intersection()
        while self.cursor.at_any("UNION", "EXCEPT", "MINUS"):
            token = self.cursor.advance()
            if token.upper == "MINUS":
                raise SqlSyntaxError(f"MINUS {_CONFORMANCE}", position=token.position, expected=("EXCEPT",))
            node = exp.Union if token.upper == "UNION" else exp.Except
            distinct = self._is_distinct()
            left = place(node(this=left, expression=self._intersection(), distinct=distinct), token)
        return left

    def _intersection(self) -> exp.Expression:
        left = self._leaf()
        while self.cursor.at("INTERSECT"):
            token = self.cursor.advance()
            distinct = self._is_distinct()
            left = place(exp.Intersect(this=left, expression=self._leaf(), distinct=distinct), token)
        return left

    def _is_distinct(self) -> bool:
        return self.cursor.take_any("ALL", "DISTINCT") != "ALL"

    def _leaf(self) -> exp.Expression:
        token = self.cursor.current
        if self.cursor.take("("):
            inner = self.query()
            self.cursor.expect(")")
            is_closed = any(inner.args.get(slot) for slot in _MODIFIERS)
            return place(exp.Subquery(this=inner), token) if is_closed else inner
        if self.cursor.at("SELECT"):
            return self.selects.select()
        if self.cursor.take("VALUES"):
            rows = self.cursor.separated(self._row_of_values)
            values = place(exp.Values(expressions=rows), token)
            return place(_select_all(values), token)
        if self.cursor.take("TABLE"):
            table = place(named(self.cursor.path()), token)
            return place(_select_all(table), token)
        self.cursor.fail("SELECT", "VALUES", "WITH", "TABLE", "(")

    def _row_of_values(self) -> exp.Tuple:
        """A row is a Tuple, also where one value is written without parentheses; ``(ROW(1, 2))`` is the row
        of two, ``((1, 2))`` that of one which is a row."""
        token = self.cursor.current
        in_words = token.upper == "(" and self.cursor.peek().upper == "ROW"
        node = self.nested.expression()
        if in_words and isinstance(node, exp.Paren):
            node = node.this
        if isinstance(node, exp.Tuple):
            return node
        value = node.this if isinstance(node, exp.Paren) else node
        return place(exp.Tuple(expressions=[value]), token)

    def _at_modifiers(self) -> bool:
        return self.cursor.at_any("ORDER", "LIMIT", "OFFSET", "FETCH")

    def _modifiers(self, node: exp.Expression) -> None:
        if (order := self.ordering.order_by()) is not None:
            node.set("order", order)
        self._limit(node)
        if token := self.cursor.took("OFFSET"):
            node.set("offset", place(exp.Offset(expression=self._count()), token))
            self.cursor.take_any("ROW", "ROWS")
            if self.cursor.at("LIMIT"):
                message = f"'OFFSET start LIMIT count' {_CONFORMANCE}"
                raise SqlSyntaxError(message, position=self.cursor.current.position)
        if node.args.get("limit") is None and (token := self.cursor.took("FETCH")):
            self.cursor.expect_any("FIRST", "NEXT")
            node.set("limit", place(exp.Limit(expression=self._count()), token))
            self.cursor.expect_any("ROW", "ROWS")
            self.cursor.expect("ONLY")

    def _limit(self, node: exp.Expression) -> None:
        token = self.cursor.took("LIMIT")
        if token is None or self.cursor.take("ALL"):
            return
        node.set("limit", place(exp.Limit(expression=self._count()), token))
        if self.cursor.at(","):
            message = f"'LIMIT start, count' {_CONFORMANCE}"
            raise SqlSyntaxError(message, position=self.cursor.current.position)

    def _count(self) -> exp.Literal:
        token = self.cursor.current
        return place(exp.Literal(this=str(self.cursor.integer()), is_string=False), token)


def _select_all(source: exp.Expression) -> exp.Select:
    return exp.Select(expressions=[exp.Star()], from_=exp.From(this=source), joins=[])
