"""CREATE TABLE: its elements and the clauses behind them."""

from __future__ import annotations

from dataclasses import dataclass, replace

from tidemill.errors import SqlSyntaxError
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

    def replace_table(self, token: Token) -> s.CreateTable:
        """Behind REPLACE: the table must be there."""
        self.cursor.expect("TABLE")
        create = self.create_table(token, temporary=False, or_replace=True)
        if create.query is None:
            self.cursor.fail("AS")
        return replace(create, must_exist=True)

    def create_table(self, token: Token, *, temporary: bool, or_replace: bool = False) -> s.CreateTable:
        """Behind CREATE [OR REPLACE] [TEMPORARY] TABLE."""
        if_not_exists = clauses.if_not_exists(self.cursor)
        defined = self._definition(token)
        like = self._like_clause() if self.cursor.at("LIKE") else None
        query, query_text = None, ""
        if like is None and self.cursor.take("AS"):
            _check_kind(token, or_replace, temporary=temporary, if_not_exists=if_not_exists)
            query, query_text, _ = self.trees.defining_query()
        elif defined.column_names:
            self.cursor.fail("AS")
        return replace(
            defined,
            text=self.cursor.text_since(token),
            like=like,
            query=query,
            query_text=query_text,
            temporary=temporary,
            if_not_exists=if_not_exists,
            replace=or_replace,
        )

    def materialized_table(self, token: Token, *, or_alter: bool = False) -> s.CreateTable:
        """Behind CREATE [OR ALTER] MATERIALIZED TABLE."""
        defined = self._definition(token)
        if self.cursor.take("START_MODE"):
            self._only("START_MODE", "FROM_BEGINNING")
        freshness = self._freshness()
        if self.cursor.take("REFRESH_MODE"):
            self._only("REFRESH_MODE", "CONTINUOUS")
        self.cursor.expect("AS")
        query, query_text, _ = self.trees.defining_query()
        return replace(
            defined,
            text=self.cursor.text_since(token),
            query=query,
            query_text=query_text,
            freshness=freshness,
            or_alter=or_alter,
        )

    def _definition(self, token: Token) -> s.CreateTable:
        """From the name to the options: what every CREATE TABLE has."""
        path = self.cursor.names()
        body = self.elements.body(allow_names=True) if self.cursor.at("(") else TableBody()
        comment = clauses.comment(self.cursor)
        distribution = clauses.distribution(self.cursor) if self.cursor.take("DISTRIBUTED") else None
        partitioned_by = self._partitioned_by()
        options = clauses.with_properties(self.cursor)
        return s.CreateTable(
            text=self.cursor.text_since(token),
            position=token.position,
            path=path,
            columns=tuple(placed.column for placed in body.columns),
            column_names=tuple(body.names),
            constraints=tuple(body.constraints),
            watermarks=tuple(body.watermarks),
            comment=comment,
            distribution=distribution,
            partitioned_by=partitioned_by,
            options=options,
        )

    def _only(self, clause: str, word: str) -> None:
        """``= word``; another one is not supported."""
        self.cursor.expect("=")
        if not self.cursor.take(word):
            self.cursor.refuse(f"{clause} = {self.cursor.current.upper}")

    def _freshness(self) -> s.Freshness:
        token = self.cursor.current
        if not self.cursor.take("FRESHNESS"):
            return s.Freshness(number="3", unit="MINUTE", position=token.position)
        self.cursor.expect("=")
        self.cursor.expect("INTERVAL")
        number = self.cursor.string()
        unit = self.cursor.advance()
        return s.Freshness(number=number, unit=unit.upper, position=token.position)

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


def _check_kind(token: Token, or_replace: bool, *, temporary: bool, if_not_exists: bool) -> None:
    """What cannot be filled by a query."""
    words = "CREATE OR REPLACE TABLE AS SELECT" if or_replace else "CREATE TABLE AS SELECT"
    if or_replace and if_not_exists:
        raise SqlSyntaxError(
            f"{words} syntax does not support IF NOT EXISTS statements yet.", position=token.position
        )
    if temporary:
        kind = "temporary table" if or_replace else "to create temporary table"
        raise SqlSyntaxError(f"{words} syntax does not support {kind} yet.", position=token.position)
