"""CREATE TABLE: its elements and the clauses behind them."""

from __future__ import annotations

from dataclasses import dataclass

from tidemill.sql import statements as s
from tidemill.sql.grammar.cursor import Cursor
from tidemill.sql.grammar.statements import clauses
from tidemill.sql.grammar.statements.table_elements import TableBody, TableElements
from tidemill.sql.grammar.trees import Trees
from tidemill.sql.lexer import Token

_LIKE_VERBS = ("INCLUDING", "EXCLUDING", "OVERWRITING")
_LIKE_FEATURES = (
    "ALL", "CONSTRAINTS", "DISTRIBUTION", "GENERATED", "METADATA", "OPTIONS", "PARTITIONS", "WATERMARKS",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class CreateTables:
    cursor: Cursor
    trees: Trees
    elements: TableElements

    def create_table(self, token: Token, *, temporary: bool, replace: bool = False) -> s.CreateTable:
        """Behind CREATE [TEMPORARY] TABLE."""
        if_not_exists = clauses.if_not_exists(self.cursor)
        path = self.cursor.names()
        body = self.elements.body(allow_names=True) if self.cursor.at("(") else TableBody()
        comment = clauses.comment(self.cursor)
        distribution = clauses.distribution(self.cursor) if self.cursor.take("DISTRIBUTED") else None
        partitioned_by = self._partitioned_by()
        options = clauses.with_properties(self.cursor)
        like = self._like_clause() if self.cursor.at("LIKE") else None
        query, query_text = None, ""
        if self.cursor.take("AS"):
            first = self.cursor.current
            query = self.trees.query()
            query_text = self.cursor.text_since(first)
        elif body.names:
            self.cursor.fail("AS")
        return s.CreateTable(
            text=self.cursor.text_since(token),
            position=token.position,
            path=path,
            columns=tuple(placed.column for placed in body.columns),
            column_names=tuple(body.names),
            constraints=tuple(body.constraints),
            watermarks=tuple(body.watermarks),
            partitioned_by=partitioned_by,
            distribution=distribution,
            options=options,
            comment=comment,
            like=like,
            query=query,
            query_text=query_text,
            temporary=temporary,
            if_not_exists=if_not_exists,
            replace=replace,
        )

    def _partitioned_by(self) -> tuple[str, ...]:
        if not self.cursor.take("PARTITIONED", "BY"):
            return ()
        if self.cursor.take("(", ")"):
            return ()
        return self.cursor.name_list()

    def _like_clause(self) -> s.Like:
        token = self.cursor.advance()
        source = self.cursor.names()
        options: list[tuple[str, str]] = []
        if self.cursor.take("("):
            while verb := self.cursor.take_any(*_LIKE_VERBS):
                options.append((verb, self.cursor.expect_any(*_LIKE_FEATURES)))
            self.cursor.expect(")")
        return s.Like(source=source, position=token.position, options=tuple(options))
