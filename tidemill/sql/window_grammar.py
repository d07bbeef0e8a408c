"""What may follow a function call (WITHIN GROUP, FILTER, null treatment, OVER) and ORDER BY lists."""

from __future__ import annotations

from sqlglot import exp

from tidemill.sql.operator_grammar import OperatorGrammar


class WindowGrammar(OperatorGrammar):
    def followed(self, node: exp.Expression) -> exp.Expression:
        token = self.previous
        node = self.null_treatment(node)
        if self.take("WITHIN", "GROUP"):
            self.expect("(")
            node = exp.WithinGroup(this=node, expression=self.order_by() or self.fail("ORDER"))
            self.expect(")")
        if self.at("WITHIN", "DISTINCT"):
            self.refuse("WITHIN DISTINCT")
        node = self.null_treatment(node)
        if self.take("FILTER"):
            self.expect("(", "WHERE")
            node = exp.Filter(this=node, expression=exp.Where(this=self.expression()))
            self.expect(")")
        if self.take("OVER"):
            node = self.place(self._over(node), token)
        return node

    def null_treatment(self, node: exp.Expression) -> exp.Expression:
        if self.take("IGNORE", "NULLS"):
            return exp.IgnoreNulls(this=node)
        if self.take("RESPECT", "NULLS"):
            return exp.RespectNulls(this=node)
        return node

    def _over(self, node: exp.Expression) -> exp.Window:
        if self.at("("):
            return self.window(node)
        return exp.Window(this=node, alias=self.identifier())

    def window(self, this: exp.Expression) -> exp.Window:
        """``([name] [PARTITION BY ..] [ORDER BY ..] [ROWS | RANGE ..])``."""
        self.expect("(")
        base = self.identifier() if self.at_identifier() else None
        partition = self.separated(self.expression) if self.take("PARTITION", "BY") else []
        order = self.order_by()
        spec = self._frame()
        if self.at_any("ALLOW", "DISALLOW"):
            self.refuse("ALLOW PARTIAL")
        self.expect(")")
        return exp.Window(this=this, alias=base, partition_by=partition, order=order, spec=spec)

    def _frame(self) -> exp.WindowSpec | None:
        kind = self.take_any("ROWS", "RANGE")
        if not kind:
            return None
        if self.take("BETWEEN"):
            start, start_side = self._bound()
            self.expect("AND")
            end, end_side = self._bound()
        else:
            start, start_side = self._bound()
            end, end_side = "CURRENT ROW", None
        if self.at("EXCLUDE"):
            self.refuse("EXCLUDE in a window frame")
        return exp.WindowSpec(kind=kind, start=start, start_side=start_side, end=end, end_side=end_side)

    def _bound(self) -> tuple[exp.Expression | str, str | None]:
        """'CURRENT ROW' or 'UNBOUNDED' as text, else the distance; and PRECEDING or FOLLOWING."""
        if self.take("CURRENT", "ROW"):
            return "CURRENT ROW", None
        distance = "UNBOUNDED" if self.take("UNBOUNDED") else self.expression()
        return distance, self.expect_any("PRECEDING", "FOLLOWING")

    def aggregate_order(self, last: exp.Expression) -> exp.Expression:
        order = self.order_by()
        if order is None:
            return last
        order.set("this", last)
        return order

    def order_by(self) -> exp.Order | None:
        """``nulls_first`` of an exp.Ordered is None where NULLS FIRST / LAST is not written."""
        token = self.current
        if not self.take("ORDER", "BY"):
            return None
        return self.place(exp.Order(expressions=self.separated(self.ordered)), token)

    def ordered(self) -> exp.Ordered:
        """One key of an ORDER BY list."""
        token = self.current
        node = self.expression()
        descending = self.take_any("ASC", "DESC") == "DESC"
        nulls_first = None
        if self.take("NULLS"):
            nulls_first = self.expect_any("FIRST", "LAST") == "FIRST"
        return self.place(exp.Ordered(this=node, desc=descending, nulls_first=nulls_first), token)
