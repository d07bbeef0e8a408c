"""CREATE: views, functions, catalogs and databases; tables have a part of their own."""

from __future__ import annotations

from dataclasses import dataclass

from tidemill.sql import statements as s
from tidemill.sql.grammar.cursor import Cursor
from tidemill.sql.grammar.statements import clauses
from tidemill.sql.grammar.statements.create_table import CreateTables
from tidemill.sql.grammar.trees import Trees
from tidemill.sql.lexer import Token

_UNSUPPORTED = ("MATERIALIZED", "MODEL", "CONNECTION")


@dataclass(frozen=True, slots=True)
class Creates:
    cursor: Cursor
    trees: Trees
    tables: CreateTables

    def create(self, token: Token) -> s.Statement:
        """Behind CREATE."""
        replace = self.cursor.take("OR", "REPLACE")
        if self.cursor.take("OR", "ALTER"):
            self.cursor.refuse("CREATE OR ALTER")
        temporary = self.cursor.take("TEMPORARY")
        system = temporary and self.cursor.take("SYSTEM")
        if self.cursor.at_any(*_UNSUPPORTED):
            self.cursor.refuse(f"CREATE {self.cursor.current.upper}")
        word = self.cursor.expect_any("TABLE", "VIEW", "FUNCTION", "CATALOG", "DATABASE")
        if word == "TABLE":
            return self.tables.create_table(token, temporary=temporary, replace=replace)
        if word == "VIEW":
            return self._create_view(token, temporary, replace)
        if replace:
            self.cursor.refuse(f"CREATE OR REPLACE {word}", token)
        if word == "FUNCTION":
            return self._create_function(token, temporary, system)
        return self._create_catalog(token) if word == "CATALOG" else self._create_database(token)

    def _create_view(self, token: Token, temporary: bool, replace: bool) -> s.CreateView:
        if_not_exists = clauses.if_not_exists(self.cursor)
        path = self.cursor.names()
        columns = self.cursor.name_list() if self.cursor.at("(") else ()
        comment = clauses.comment(self.cursor)
        self.cursor.expect("AS")
        first = self.cursor.current
        query = self.trees.query()
        return s.CreateView(
            path=path,
            query=query,
            query_text=self.cursor.text_since(first),
            query_position=first.position,
            columns=columns,
            comment=comment,
            temporary=temporary,
            if_not_exists=if_not_exists,
            replace=replace,
            text=self.cursor.text_since(token),
            position=token.position,
        )

    def _create_function(self, token: Token, temporary: bool, system: bool) -> s.CreateFunction:
        if_not_exists = clauses.if_not_exists(self.cursor)
        path = self.cursor.names()
        self.cursor.expect("AS")
        identifier = self.cursor.string()
        language = clauses.language(self.cursor)
        if self.cursor.at("USING"):
            self.cursor.refuse("CREATE FUNCTION ... USING JAR")
        return s.CreateFunction(
            path=path,
            identifier=identifier,
            language=language,
            temporary=temporary,
            system=system,
            if_not_exists=if_not_exists,
            text=self.cursor.text_since(token),
            position=token.position,
        )

    def _create_catalog(self, token: Token) -> s.CreateCatalog:
        if_not_exists = clauses.if_not_exists(self.cursor)
        name = self.cursor.identifier().name
        comment = clauses.comment(self.cursor)
        options = clauses.with_properties(self.cursor)
        return s.CreateCatalog(
            name=name,
            options=options,
            comment=comment,
            if_not_exists=if_not_exists,
            text=self.cursor.text_since(token),
            position=token.position,
        )

    def _create_database(self, token: Token) -> s.CreateDatabase:
        if_not_exists = clauses.if_not_exists(self.cursor)
        path = self.cursor.names()
        comment = clauses.comment(self.cursor)
        options = clauses.with_properties(self.cursor)
        return s.CreateDatabase(
            path=path,
            options=options,
            comment=comment,
            if_not_exists=if_not_exists,
            text=self.cursor.text_since(token),
            position=token.position,
        )
