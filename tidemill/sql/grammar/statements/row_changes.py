"""DELETE, UPDATE and TRUNCATE TABLE."""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from tidemill.sql import statements as s
from tidemill.sql.grammar.cursor import Cursor
from tidemill.sql.grammar.trees import Trees
from tidemill.sql.lexer import Token


@dataclass(frozen=True, slots=True)
class RowChanges:
    cursor: Cursor
    trees: Trees

    def truncate(self, token: Token) -> s.TruncateTable:
        self.cursor.expect("TABLE")
        path = self.cursor.names()
        return s.TruncateTable(path=path, text=self.cursor.text_since(token), position=token.position)

    def delete(self, token: Token) -> s.Delete:
        self.cursor.expect("FROM")
        target_token = self.cursor.current
        target, condition = self.cursor.names(), self._condition()
        return s.Delete(
            target=target,
            target_position=target_token.position,
            condition=condition,
            text=self.cursor.text_since(token),
            position=token.position,
        )

    def update(self, token: Token) -> s.Update:
        target_token = self.cursor.current
        target = self.cursor.names()
        self.cursor.expect("SET")
        assignments, condition = self.cursor.separated(self._assignment), self._condition()
        return s.Update(
            target=target,
            target_position=target_token.position,
            assignments=tuple(assignments),
            condition=condition,
            text=self.cursor.text_since(token),
            position=token.position,
        )

    def _assignment(self) -> s.Assignment:
        column_token = self.cursor.current
        column = self.cursor.identifier().name
        self.cursor.expect("=")
        return s.Assignment(column=column, value=self.trees.expression(), position=column_token.position)

    def _condition(self) -> exp.Expression | None:
        return self.trees.expression() if self.cursor.take("WHERE") else None
