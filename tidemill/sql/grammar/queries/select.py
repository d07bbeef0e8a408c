"""SELECT: its list, FROM and the clauses behind it."""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from tidemill.sql.grammar.cursor import Cursor
from tidemill.sql.grammar.expressions.windows import Windows
from tidemill.sql.grammar.hints import hints
from tidemill.sql.grammar.nested import Nested
from tidemill.sql.grammar.queries.relations import Relations
from tidemill.sql.positions import place

_GROUPING_SLOTS: dict[type[exp.Expression], str] = {
    exp.GroupingSets: "grouping_sets",
    exp.Rollup: "rollup",
    exp.Cube: "cube",
}


@dataclass(frozen=True, slots=True)
class Selects:
    cursor: Cursor
    nested: Nested
    relations: Relations
    windows: Windows

    def select(self) -> exp.Select:
        token = self.cursor.current
        self.cursor.expect("SELECT")
        node = exp.Select()
        if select_hints := hints(self.cursor):
            node.set("hint", exp.Hint(expressions=select_hints))
        if self.cursor.at("STREAM"):
            self.cursor.refuse("SELECT STREAM")
        if self.cursor.take_any("DISTINCT", "ALL") == "DISTINCT":
            node.set("distinct", exp.Distinct())
        node.set("expressions", self.cursor.separated(self._item))
        if self.cursor.take("FROM"):
            source, joins = self.relations.from_clause()
            node.set("from_", source)
            node.set("joins", joins)
            self._clauses(node)
        return place(node, token)

    def _item(self) -> exp.Expression:
        token = self.cursor.current
        if self.cursor.at("*"):
            return place(exp.Star(), self.cursor.advance())
        node = self.nested.expression()
        if self.cursor.take("AS") or self.cursor.at_identifier():
            return place(exp.Alias(this=node, alias=self.cursor.identifier()), token)
        return node

    def _clauses(self, node: exp.Select) -> None:
        if token := self.cursor.took("WHERE"):
            node.set("where", place(exp.Where(this=self.nested.expression()), token))
        if self.cursor.at("GROUP", "BY"):
            node.set("group", self._group())
        if token := self.cursor.took("HAVING"):
            node.set("having", place(exp.Having(this=self.nested.expression()), token))
        if self.cursor.take("WINDOW"):
            node.set("windows", self.cursor.separated(self._named_window))
        if token := self.cursor.took("QUALIFY"):
            node.set("qualify", place(exp.Qualify(this=self.nested.expression()), token))

    def _group(self) -> exp.Group:
        """Plain keys in ``expressions``; GROUPING SETS, ROLLUP, CUBE in lists of their own.

        A set or a ROLLUP/CUBE element of several keys is an exp.Tuple, the empty set ``()`` an empty one.
        With ``distinct`` equal sets count once.
        """
        token = self.cursor.current
        self.cursor.expect("GROUP", "BY")
        distinct = self.cursor.take_any("ALL", "DISTINCT") == "DISTINCT"
        node = exp.Group()
        for element in self.cursor.separated(self._grouping_element):
            slot = _GROUPING_SLOTS.get(type(element), "expressions")
            node.append(slot, element)
        if distinct:
            node.set("distinct", True)
        return place(node, token)

    def _grouping_element(self) -> exp.Expression:
        token = self.cursor.current
        if self.cursor.take("GROUPING", "SETS"):
            items = self.cursor.wrapped(self._grouping_element)
            return place(exp.GroupingSets(expressions=items), token)
        if self.cursor.at_any("ROLLUP", "CUBE") and self.cursor.peek().upper == "(":
            node = exp.Rollup if self.cursor.advance().upper == "ROLLUP" else exp.Cube
            return place(node(expressions=self.cursor.wrapped(self._grouping_element)), token)
        if self.cursor.take("(", ")"):
            return place(exp.Tuple(expressions=[]), token)
        return self.nested.expression()

    def _named_window(self) -> exp.Window:
        token = self.cursor.current
        name = self.cursor.identifier()
        self.cursor.expect("AS")
        return place(self.windows.window(name), token)
