"""What may follow a function call: WITHIN GROUP, FILTER, null treatment, OVER."""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from tidemill.sql.grammar.cursor import Cursor
from tidemill.sql.grammar.nested import Nested
from tidemill.sql.grammar.ordering import Ordering
from tidemill.sql.positions import place


@dataclass(frozen=True, slots=True)
class Windows:
    cursor: Cursor
    nested: Nested
    ordering: Ordering

    def followed(self, node: exp.Expression) -> exp.Expression:
        """The call ``node`` with what stands behind it."""
        token = self.cursor.previous
        node = self.null_treatment(node)
        if self.cursor.take("WITHIN", "GROUP"):
            self.cursor.expect("(")
            order = self.ordering.order_by() or self.cursor.fail("ORDER")
            node = exp.WithinGroup(this=node, expression=order)
            self.cursor.expect(")")
        if self.cursor.at("WITHIN", "DISTINCT"):
            self.cursor.refuse("WITHIN DISTINCT")
        node = self.null_treatment(node)
        if self.cursor.take("FILTER"):
            self.cursor.expect("(", "WHERE")
            node = exp.Filter(this=node, expression=exp.Where(this=self.nested.expression()))
            self.cursor.expect(")")
        if self.cursor.take("OVER"):
            node = place(self._over(node), token)
        return node

    def null_treatment(self, node: exp.Expression) -> exp.Expression:
        """IGNORE / RESPECT NULLS around ``node``."""
        if self.cursor.take("IGNORE", "NULLS"):
            return exp.IgnoreNulls(this=node)
        if self.cursor.take("RESPECT", "NULLS"):
            return exp.RespectNulls(this=node)
        return node

    def _over(self, node: exp.Expression) -> exp.Window:
        if self.cursor.at("("):
            return self.window(node)
        return exp.Window(this=node, alias=self.cursor.identifier())

    def window(self, this: exp.Expression) -> exp.Window:
        """``([name] [PARTITION BY ..] [ORDER BY ..] [ROWS | RANGE ..])``."""
        self.cursor.expect("(")
        base = self.cursor.identifier() if self.cursor.at_identifier() else None
        partition = self.ordering.partition_by()
        order = self.ordering.order_by()
        spec = self._frame()
        if self.cursor.at_any("ALLOW", "DISALLOW"):
            self.cursor.refuse("ALLOW PARTIAL")
        self.cursor.expect(")")
        return exp.Window(this=this, alias=base, partition_by=partition, order=order, spec=spec)

    def _frame(self) -> exp.WindowSpec | None:
        kind = self.cursor.take_any("ROWS", "RANGE")
        if not kind:
            return None
        if self.cursor.take("BETWEEN"):
            start, start_side = self._bound()
            self.cursor.expect("AND")
            end, end_side = self._bound()
        else:
            start, start_side = self._bound()
            end, end_side = "CURRENT ROW", None
        if self.cursor.at("EXCLUDE"):
            self.cursor.refuse("EXCLUDE in a window frame")
        return exp.WindowSpec(kind=kind, start=start, start_side=start_side, end=end, end_side=end_side)

    def _bound(self) -> tuple[exp.Expression | str, str | None]:
        """'CURRENT ROW' or 'UNBOUNDED' as text, else the distance; and PRECEDING or FOLLOWING."""
        if self.cursor.take("CURRENT", "ROW"):
            return "CURRENT ROW", None
        distance = "UNBOUNDED" if self.cursor.take("UNBOUNDED") else self.nested.expression()
        return distance, self.cursor.expect_any("PRECEDING", "FOLLOWING")

    def aggregate_order(self, last: exp.Expression) -> exp.Expression:
        """``x ORDER BY y`` in an aggregate: an exp.Order around ``x``."""
        order = self.ordering.order_by()
        if order is None:
            return last
        order.set("this", last)
        return order
