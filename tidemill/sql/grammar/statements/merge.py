"""MERGE INTO."""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from tidemill.errors import SqlSyntaxError
from tidemill.sql import statements as s
from tidemill.sql.grammar.cursor import Cursor
from tidemill.sql.grammar.trees import Trees
from tidemill.sql.lexer import Token


@dataclass(frozen=True, slots=True)
class Merges:
    cursor: Cursor
    trees: Trees

    def merge(self, token: Token) -> s.Merge:
        self.cursor.expect("INTO")
        target_token = self.cursor.current
        target = self.cursor.names()
        named = self.cursor.take("AS") or self.cursor.at_identifier()
        alias = self.cursor.identifier().name if named else target[-1]
        self.cursor.expect("USING")
        source = self.trees.relation()
        self.cursor.expect("ON")
        condition = self.trees.expression()
        clauses = [self._clause(alias)]
        while self.cursor.at("WHEN"):
            clauses.append(self._clause(alias))
        return s.Merge(
            target=target,
            target_position=target_token.position,
            alias=alias,
            source=source,
            condition=condition,
            clauses=tuple(clauses),
            text=self.cursor.text_since(token),
            position=token.position,
        )

    def _clause(self, alias: str) -> s.MergeClause:
        position = self.cursor.current.position
        self.cursor.expect("WHEN")
        matched = not self.cursor.take("NOT")
        self.cursor.expect("MATCHED")
        if self.cursor.at("BY"):
            self.cursor.refuse("WHEN NOT MATCHED BY")
        condition = self.trees.expression() if self.cursor.take("AND") else None
        self.cursor.expect("THEN")
        action = self.cursor.expect_any("UPDATE", "DELETE") if matched else self.cursor.expect_any("INSERT")
        columns: list[s.MergeColumn] = []
        values: list[exp.Expression] = []
        if action == "UPDATE":
            self.cursor.expect("SET")
            self._check_star(action)
            for column, value in self.cursor.separated(lambda: self._assignment(alias)):
                columns.append(column)
                values.append(value)
        elif action == "INSERT":
            self._check_star(action)
            columns = self.cursor.wrapped(self._column) if self.cursor.at("(") else []
            self.cursor.expect("VALUES")
            values = self.cursor.wrapped(self.trees.expression)
        return s.MergeClause(
            action=action,
            condition=condition,
            columns=tuple(columns),
            values=tuple(values),
            position=position,
        )

    def _check_star(self, action: str) -> None:
        if self.cursor.at("*"):
            self.cursor.refuse(f"{action} * of MERGE INTO")

    def _column(self) -> s.MergeColumn:
        position = self.cursor.current.position
        return s.MergeColumn(self.cursor.identifier().name, position)

    def _assignment(self, alias: str) -> tuple[s.MergeColumn, exp.Expression]:
        """``column = value``, or ``alias.column = value``."""
        first = self._column()
        if self.cursor.take("."):
            if first.name != alias:
                raise SqlSyntaxError(
                    f"'{first.name}' is not the target of the MERGE, whose name is '{alias}'",
                    position=first.position,
                )
            first = self._column()
        self.cursor.expect("=")
        return first, self.trees.expression()
