"""Calls: a name, its arguments, and what may follow them.

A call comes out as ``exp.Anonymous`` with the name as written.
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from tidemill.sql.expressions import Descriptor
from tidemill.sql.grammar.cursor import Cursor, at_query
from tidemill.sql.grammar.expressions.windows import Windows
from tidemill.sql.grammar.nested import Nested
from tidemill.sql.grammar.tables import TableArguments
from tidemill.sql.lexer import Kind, Token
from tidemill.sql.positions import place

_ORDERED_AGGREGATES = ("ARRAY_AGG", "ARRAY_CONCAT_AGG", "GROUP_CONCAT", "STRING_AGG")


@dataclass(frozen=True, slots=True)
class Calls:
    cursor: Cursor
    nested: Nested
    windows: Windows
    tables: TableArguments

    def call(self, token: Token, name: str) -> exp.Expression:
        """The arguments of a call and what may follow: WITHIN GROUP, FILTER, null treatment, OVER."""
        arguments = self.arguments(aggregate=name.upper() in _ORDERED_AGGREGATES)
        node = exp.Anonymous(this=name, expressions=arguments)
        return self.windows.followed(place(node, token))

    def arguments(self, *, aggregate: bool = False) -> list[exp.Expression]:
        """``([DISTINCT | ALL] a, b => c, *)``; ``aggregate`` allows null treatment and ORDER BY inside."""
        self.cursor.expect("(")
        if self.cursor.take(")"):
            return []
        distinct = self.cursor.take_any("DISTINCT", "ALL") == "DISTINCT"
        items = self.cursor.separated(self._argument)
        if aggregate:
            items[-1] = self.windows.aggregate_order(self.windows.null_treatment(items[-1]))
        self.cursor.expect(")")
        return [exp.Distinct(expressions=items)] if distinct else items

    def _argument(self) -> exp.Expression:
        token = self.cursor.current
        if self.cursor.at("*"):
            return place(exp.Star(), self.cursor.advance())
        if self.cursor.peek().upper == "=>":
            name = self._argument_name()
            self.cursor.expect("=>")
            return place(exp.Kwarg(this=exp.Var(this=name), expression=self._argument()), token)
        value = self._special_argument() or self.nested.expression()
        if isinstance(value, exp.Subquery) and self.cursor.at("PARTITION"):
            return place(self.tables.keyed(value.this), token)
        return value

    def _argument_name(self) -> str:
        if self.cursor.at_kind(Kind.WORD):
            return self.cursor.advance().value
        return self.cursor.identifier().name

    def _special_argument(self) -> exp.Expression | None:
        token = self.cursor.current
        if self.cursor.at("TABLE"):
            return place(self.tables.argument(), token)
        if self.cursor.at("DEFAULT"):
            return place(exp.Var(this="DEFAULT"), self.cursor.advance())
        if self.cursor.take("DESCRIPTOR"):
            return place(Descriptor(expressions=self.cursor.wrapped(self.cursor.identifier)), token)
        if token.upper != "(" and at_query(self.cursor):
            return place(exp.Subquery(this=self.nested.query()), token)
        return None
