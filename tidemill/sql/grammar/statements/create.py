"""CREATE: views, functions, models, catalogs and databases; tables have a part of their own."""

from __future__ import annotations

from dataclasses import dataclass

from tidemill.errors import SqlSyntaxError
from tidemill.sql import statements as s
from tidemill.sql.grammar.cursor import Cursor
from tidemill.sql.grammar.statements import clauses
from tidemill.sql.grammar.statements.create_table import CreateTables
from tidemill.sql.grammar.statements.savepoints import create_savepoint
from tidemill.sql.grammar.trees import Trees
from tidemill.sql.lexer import Token


@dataclass(frozen=True, slots=True)
class Creates:
    cursor: Cursor
    trees: Trees
    tables: CreateTables

    def create(self, token: Token) -> s.Statement:
        """Behind CREATE."""
        replace = self.cursor.take("OR", "REPLACE")
        if self.cursor.take("OR", "ALTER"):
            self.cursor.expect("MATERIALIZED")
            self.cursor.expect("TABLE")
            return self.tables.materialized_table(token, or_alter=True)
        temporary = self.cursor.take("TEMPORARY")
        system = temporary and self.cursor.take("SYSTEM")
        if self.cursor.at("CONNECTION"):
            self.cursor.refuse("CREATE CONNECTION")
        if self.cursor.at("SAVEPOINT") and not (replace or temporary):
            return create_savepoint(self.cursor, self.trees, token)
        if self.cursor.at("MATERIALIZED"):
            return self._create_materialized(token, temporary=temporary, replace=replace)
        word = self.cursor.expect_any("TABLE", "VIEW", "FUNCTION", "CATALOG", "DATABASE", "MODEL")
        if word == "TABLE":
            return self.tables.create_table(token, temporary=temporary, or_replace=replace)
        if word == "VIEW":
            return self._create_view(token, temporary, replace)
        if replace:
            self.cursor.refuse(f"CREATE OR REPLACE {word}", token)
        if word == "MODEL":
            return self._create_model(token, temporary)
        if word == "FUNCTION":
            return self._create_function(token, temporary, system)
        return self._create_catalog(token) if word == "CATALOG" else self._create_database(token)

    def _create_materialized(self, token: Token, *, temporary: bool, replace: bool) -> s.CreateTable:
        if temporary:
            message = "CREATE TEMPORARY MATERIALIZED TABLE is not supported."
            raise SqlSyntaxError(message, position=token.position)
        if replace:
            self.cursor.refuse("CREATE OR REPLACE MATERIALIZED TABLE", token)
        self.cursor.expect("MATERIALIZED")
        self.cursor.expect("TABLE")
        return self.tables.materialized_table(token)

    def _create_view(self, token: Token, temporary: bool, replace: bool) -> s.CreateView:
        if_not_exists = clauses.if_not_exists(self.cursor)
        path = self.cursor.names()
        columns = self.cursor.name_list() if self.cursor.at("(") else ()
        comment = clauses.comment(self.cursor)
        self.cursor.expect("AS")
        query, query_text, position = self.trees.defining_query()
        return s.CreateView(
            path=path,
            query=query,
            query_text=query_text,
            query_position=position,
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

    def _create_model(self, token: Token, temporary: bool) -> s.CreateModel:
        if_not_exists = clauses.if_not_exists(self.cursor)
        path = self.cursor.names()
        inputs, outputs = (self._model_columns(word) for word in ("INPUT", "OUTPUT"))
        if bool(inputs) != bool(outputs):
            empty, other = ("Input", "output") if outputs else ("Output", "input")
            raise SqlSyntaxError(
                f"{empty} column list can not be empty with non-empty {other} column list.",
                position=token.position,
            )
        comment = clauses.comment(self.cursor)
        options = clauses.with_properties(self.cursor)
        if not options:
            raise SqlSyntaxError("Model property list can not be empty.", position=token.position)
        if self.cursor.at("AS"):
            self.cursor.refuse("CREATE MODEL AS")
        return s.CreateModel(
            path=path,
            inputs=inputs,
            outputs=outputs,
            options=options,
            comment=comment,
            temporary=temporary,
            if_not_exists=if_not_exists,
            text=self.cursor.text_since(token),
            position=token.position,
        )

    def _model_columns(self, word: str) -> tuple[s.PhysicalColumn, ...]:
        """``INPUT (name type, ...)``, if here; neither keys nor computed columns."""
        if not self.cursor.take(word):
            return ()
        token = self.cursor.current
        body = self.tables.elements.body()
        columns = [placed.column for placed in body.columns]
        plain = tuple(column for column in columns if isinstance(column, s.PhysicalColumn))
        if body.constraints or body.watermarks or len(plain) < len(columns):
            message = f"{word} of a model has columns with names and types only."
            raise SqlSyntaxError(message, position=token.position)
        return plain

    def _create_catalog(self, token: Token) -> s.CreateCatalog:
        if_not_exists = clauses.if_not_exists(self.cursor)
        name = self.cursor.identifier().name
        comment = clauses.comment(self.cursor)
        options = clauses.with_properties(self.cursor)
        if not (comment or options or self.cursor.at_end() or self.cursor.at(";")):
            self.cursor.fail("<EOF>", "WITH", "COMMENT", ";")
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
