"""Queries: WITH, SELECT, VALUES, TABLE t, set operations, ORDER BY and LIMIT.

INTERSECT binds tighter than UNION and EXCEPT, which are left-associative; ORDER BY and LIMIT belong to
the whole set operation. ``TABLE t`` is SELECT * FROM t, ``VALUES ..`` is SELECT * FROM (VALUES ..); a
query in parentheses is an exp.Subquery only where its own ORDER BY, LIMIT or WITH must stay inside.
"""

from __future__ import annotations

from sqlglot import exp

from tidemill.errors import SqlSyntaxError
from tidemill.sql.relation_grammar import RelationGrammar

_MODIFIERS = ("order", "limit", "offset", "with_")
_CONFORMANCE = "is not allowed under the current SQL conformance level"


class QueryGrammar(RelationGrammar):
    def query(self) -> exp.Expression:
        token = self.current
        ctes = self._with()
        node = self._union()
        if isinstance(node, exp.Subquery) and (ctes is not None or self._at_modifiers()):
            node = _select_all(node)
        self._modifiers(node)
        if ctes is not None:
            node.set("with_", ctes)
        return self.place(node, token)

    def _with(self) -> exp.With | None:
        if not self.take("WITH"):
            return None
        recursive = self.take("RECURSIVE")
        return exp.With(expressions=self.separated(self._cte), recursive=recursive)

    def _cte(self) -> exp.CTE:
        token = self.current
        name = self.identifier()
        columns = self.wrapped(self.identifier) if self.at("(") else []
        self.expect("AS", "(")
        query = self.query()
        self.expect(")")
        return self.place(exp.CTE(this=query, alias=exp.TableAlias(this=name, columns=columns)), token)

    def _union(self) -> exp.Expression:
        left = self._intersection()
        while self.at_any("UNION", "EXCEPT", "MINUS"):
            token = self.advance()
            if token.upper == "MINUS":
                raise SqlSyntaxError(f"MINUS {_CONFORMANCE}", position=token.position, expected=("EXCEPT",))
            node = exp.Union if token.upper == "UNION" else exp.Except
            distinct = self._is_distinct()
            left = self.place(node(this=left, expression=self._intersection(), distinct=distinct), token)
        return left

    def _intersection(self) -> exp.Expression:
        left = self._leaf()
        while self.at("INTERSECT"):
            token = self.advance()
            distinct = self._is_distinct()
            left = self.place(exp.Intersect(this=left, expression=self._leaf(), distinct=distinct), token)
        return left

    def _is_distinct(self) -> bool:
        return self.take_any("ALL", "DISTINCT") != "ALL"

    def _leaf(self) -> exp.Expression:
        token = self.current
        if self.take("("):
            inner = self.query()
            self.expect(")")
            is_closed = any(inner.args.get(slot) for slot in _MODIFIERS)
            return self.place(exp.Subquery(this=inner), token) if is_closed else inner
        if self.at("SELECT"):
            return self.place(self._select(), token)
        if self.take("VALUES"):
            rows = self.separated(self._row_of_values)
            values = self.place(exp.Values(expressions=rows), token)
            return self.place(_select_all(values), token)
        if self.take("TABLE"):
            table = self.place(self.table_node(self.path()), token)
            return self.place(_select_all(table), token)
        self.fail("SELECT", "VALUES", "WITH", "TABLE", "(")

    def _row_of_values(self) -> exp.Tuple:
        """A row is a Tuple, also where one value is written without parentheses."""
        token = self.current
        node = self.expression()
        if isinstance(node, exp.Tuple):
            return node
        value = node.this if isinstance(node, exp.Paren) else node
        return self.place(exp.Tuple(expressions=[value]), token)

    def _select(self) -> exp.Select:
        self.expect("SELECT")
        node = exp.Select()
        if hints := self.hints():
            node.set("hint", exp.Hint(expressions=hints))
        if self.at("STREAM"):
            self.refuse("SELECT STREAM")
        if self.take_any("DISTINCT", "ALL") == "DISTINCT":
            node.set("distinct", exp.Distinct())
        node.set("expressions", self.separated(self._select_item))
        if self.take("FROM"):
            source, joins = self.from_clause()
            node.set("from_", source)
            node.set("joins", joins)
            self._select_clauses(node)
        return node

    def _select_item(self) -> exp.Expression:
        token = self.current
        if self.at("*"):
            return self.place(exp.Star(), self.advance())
        node = self.expression()
        if self.take("AS") or self.at_identifier():
            return self.place(exp.Alias(this=node, alias=self.identifier()), token)
        return node

    def _select_clauses(self, node: exp.Select) -> None:
        if token := self._took("WHERE"):
            node.set("where", self.place(exp.Where(this=self.expression()), token))
        if self.at("GROUP", "BY"):
            node.set("group", self._group())
        if token := self._took("HAVING"):
            node.set("having", self.place(exp.Having(this=self.expression()), token))
        if self.take("WINDOW"):
            node.set("windows", self.separated(self._named_window))
        if token := self._took("QUALIFY"):
            node.set("qualify", self.place(exp.Qualify(this=self.expression()), token))

    def _group(self) -> exp.Group:
        """Plain keys in ``expressions``; GROUPING SETS, ROLLUP, CUBE in lists of their own.

        A set or a ROLLUP/CUBE element of several keys is an exp.Tuple, the empty set ``()`` an empty one.
        """
        token = self.current
        self.expect("GROUP", "BY")
        distinct = self.take_any("ALL", "DISTINCT") == "DISTINCT"
        node = exp.Group()
        for element in self.separated(self._grouping_element):
            slot = _GROUPING_SLOTS.get(type(element), "expressions")
            node.append(slot, element)
        if distinct and len(node.args) > 1:
            self.refuse("GROUP BY DISTINCT with GROUPING SETS, ROLLUP or CUBE", token)
        return self.place(node, token)

    def _grouping_element(self) -> exp.Expression:
        token = self.current
        if self.take("GROUPING", "SETS"):
            items = self.wrapped(self._grouping_element)
            return self.place(exp.GroupingSets(expressions=items), token)
        if self.at_any("ROLLUP", "CUBE") and self.peek().upper == "(":
            node = exp.Rollup if self.advance().upper == "ROLLUP" else exp.Cube
            return self.place(node(expressions=self.wrapped(self._grouping_element)), token)
        if self.take("(", ")"):
            return self.place(exp.Tuple(expressions=[]), token)
        return self.expression()

    def _named_window(self) -> exp.Window:
        token = self.current
        name = self.identifier()
        self.expect("AS")
        return self.place(self.window(name), token)

    def _at_modifiers(self) -> bool:
        return self.at_any("ORDER", "LIMIT", "OFFSET", "FETCH")

    def _modifiers(self, node: exp.Expression) -> None:
        if (order := self.order_by()) is not None:
            node.set("order", order)
        self._limit(node)
        if token := self._took("OFFSET"):
            node.set("offset", self.place(exp.Offset(expression=self._count()), token))
            self.take_any("ROW", "ROWS")
            if self.at("LIMIT"):
                message = f"'OFFSET start LIMIT count' {_CONFORMANCE}"
                raise SqlSyntaxError(message, position=self.current.position)
        if node.args.get("limit") is None and (token := self._took("FETCH")):
            self.expect_any("FIRST", "NEXT")
            node.set("limit", self.place(exp.Limit(expression=self._count()), token))
            self.expect_any("ROW", "ROWS")
            self.expect("ONLY")

    def _limit(self, node: exp.Expression) -> None:
        token = self._took("LIMIT")
        if token is None or self.take("ALL"):
            return
        node.set("limit", self.place(exp.Limit(expression=self._count()), token))
        if self.at(","):
            message = f"'LIMIT start, count' {_CONFORMANCE}"
            raise SqlSyntaxError(message, position=self.current.position)

    def _count(self) -> exp.Literal:
        token = self.current
        return self.place(exp.Literal(this=str(self.integer()), is_string=False), token)


_GROUPING_SLOTS: dict[type[exp.Expression], str] = {
    exp.GroupingSets: "grouping_sets",
    exp.Rollup: "rollup",
    exp.Cube: "cube",
}


def _select_all(source: exp.Expression) -> exp.Select:
    return exp.Select(expressions=[exp.Star()], from_=exp.From(this=source), joins=[])
