"""ALTER [MATERIALIZED] TABLE, VIEW, CATALOG, DATABASE, FUNCTION and MODEL."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

from tidemill.sql import statements as s
from tidemill.sql.grammar.cursor import Cursor
from tidemill.sql.grammar.statements import clauses
from tidemill.sql.grammar.statements.table_elements import TableBody, TableElements
from tidemill.sql.grammar.trees import Trees
from tidemill.sql.lexer import Token

_OTHER_MATERIALIZED = ("SUSPEND", "RESUME", "REFRESH", "SET", "RESET", "ADD", "MODIFY", "DROP", "RENAME")


@dataclass(frozen=True, slots=True)
class Alters:
    cursor: Cursor
    trees: Trees
    elements: TableElements

    def alter(self, token: Token) -> s.Statement:
        """Behind ALTER."""
        if self.cursor.at("CONNECTION"):
            self.cursor.refuse("ALTER CONNECTION")
        if self.cursor.at_any("TEMPORARY", "FUNCTION"):
            return self._alter_function(token)
        return self._ALTERS[self.cursor.expect_any(*self._ALTERS)](self, token)

    def _alter_table(self, token: Token) -> s.Statement:
        if_exists = self.cursor.take("IF", "EXISTS")
        path = self.cursor.names()
        word = self.cursor.current.upper
        change = self._CHANGES.get(word)
        if change is None:
            self.cursor.fail(*self._CHANGES)
        self.cursor.advance()
        return s.AlterTable(
            path=path,
            change=change(self),
            if_exists=if_exists,
            text=self.cursor.text_since(token),
            position=token.position,
        )

    def _rename_change(self) -> s.TableChange:
        if self.cursor.take("TO"):
            return s.RenameTable(to=self.cursor.names())
        column = self.cursor.names()
        self.cursor.expect("TO")
        return s.RenameColumn(column=column, to=self.cursor.identifier().name)

    def _set_change(self) -> s.TableChange:
        return s.SetOptions(options=clauses.properties(self.cursor))

    def _reset_change(self) -> s.ResetOptions:
        if self.cursor.take("(", ")"):
            return s.ResetOptions(keys=())
        return s.ResetOptions(keys=tuple(self.cursor.wrapped(self.cursor.string)))

    def _add_change(self) -> s.TableChange:
        if self.cursor.at("PARTITION") or self.cursor.at("IF", "NOT", "EXISTS", "PARTITION"):
            return self._add_partitions()
        if self.cursor.take("DISTRIBUTION"):
            return s.SetDistribution(distribution=clauses.distribution(self.cursor), add=True)
        return self._elements(s.AddSchema)

    def _add_partitions(self) -> s.AddPartitions:
        if_not_exists = clauses.if_not_exists(self.cursor)
        added: list[tuple[s.Options, s.Options]] = []
        while not added or self.cursor.at("PARTITION"):
            values = clauses.partition(self.cursor)
            added.append((values, clauses.with_properties(self.cursor)))
        return s.AddPartitions(partitions=tuple(added), if_not_exists=if_not_exists)

    def _modify_change(self) -> s.TableChange:
        if self.cursor.take("DISTRIBUTION"):
            return s.SetDistribution(distribution=clauses.distribution(self.cursor))
        return self._elements(s.ModifySchema)

    def _elements(self, change: type[s.AddSchema] | type[s.ModifySchema]) -> s.TableChange:
        if self.cursor.at("("):
            body = self.elements.body(placed=True)
        else:
            body = TableBody()
            self.elements.element(body, placed=True)
        return change(
            columns=tuple(body.columns),
            constraints=tuple(body.constraints),
            watermarks=tuple(body.watermarks),
        )

    def _drop_change(self) -> s.TableChange:
        if self.cursor.take("PRIMARY", "KEY"):
            return s.DropConstraint()
        if self.cursor.take("CONSTRAINT"):
            return s.DropConstraint(name=self.cursor.identifier().name)
        if self.cursor.take("WATERMARK"):
            return s.DropWatermark()
        if self.cursor.take("DISTRIBUTION"):
            return s.SetDistribution(distribution=None)
        if self.cursor.at("PARTITION") or self.cursor.at("IF", "EXISTS", "PARTITION"):
            if_exists = self.cursor.take("IF", "EXISTS")
            dropped = self.cursor.separated(lambda: clauses.partition(self.cursor))
            return s.DropPartitions(partitions=tuple(dropped), if_exists=if_exists)
        columns = self.cursor.wrapped(self.cursor.names) if self.cursor.at("(") else [self.cursor.names()]
        return s.DropColumns(columns=tuple(columns))

    _CHANGES: ClassVar[dict[str, Callable[[Alters], s.TableChange]]] = {
        "RENAME": _rename_change,
        "SET": _set_change,
        "RESET": _reset_change,
        "ADD": _add_change,
        "MODIFY": _modify_change,
        "DROP": _drop_change,
    }

    def _alter_materialized_table(self, token: Token) -> s.Statement:
        self.cursor.expect("TABLE")
        path = self.cursor.names()
        if self.cursor.at_any(*_OTHER_MATERIALIZED):
            self.cursor.refuse(f"ALTER MATERIALIZED TABLE ... {self.cursor.current.upper}")
        return self._with_query(s.AlterMaterializedTable, path, token)

    def _alter_view(self, token: Token) -> s.Statement:
        path = self.cursor.names()
        if self.cursor.take("RENAME"):
            self.cursor.expect("TO")
            rename = self.cursor.names()
            text = self.cursor.text_since(token)
            return s.AlterView(path=path, rename=rename, text=text, position=token.position)
        return self._with_query(s.AlterView, path, token)

    def _with_query(
        self, kind: type[s.AlterMaterializedTable] | type[s.AlterView], path: tuple[str, ...], token: Token
    ) -> s.Statement:
        """``AS query``, the new query of the table or view ``path``."""
        self.cursor.expect("AS")
        query, query_text, position = self.trees.defining_query()
        return kind(
            path=path,
            query=query,
            query_text=query_text,
            query_position=position,
            text=self.cursor.text_since(token),
            position=token.position,
        )

    def _alter_database(self, token: Token) -> s.Statement:
        path = self.cursor.names()
        self.cursor.expect("SET")
        options = clauses.properties(self.cursor)
        return s.AlterDatabase(
            path=path, options=options, text=self.cursor.text_since(token), position=token.position
        )

    def _alter_catalog(self, token: Token) -> s.Statement:
        name = self.cursor.identifier().name
        word = self.cursor.expect_any("SET", "RESET", "COMMENT")
        change: s.SetOptions | s.ResetOptions | s.SetComment
        if word == "SET":
            change = s.SetOptions(options=clauses.properties(self.cursor))
        elif word == "COMMENT":
            change = s.SetComment(comment=self.cursor.string())
        else:
            change = self._reset_change()
        text = self.cursor.text_since(token)
        return s.AlterCatalog(name=name, change=change, text=text, position=token.position)

    def _alter_function(self, token: Token) -> s.Statement:
        temporary = self.cursor.take("TEMPORARY")
        system = temporary and self.cursor.take("SYSTEM")
        self.cursor.expect("FUNCTION")
        if_exists = self.cursor.take("IF", "EXISTS")
        path = self.cursor.names()
        self.cursor.expect("AS")
        identifier = self.cursor.string()
        return s.AlterFunction(
            path=path,
            identifier=identifier,
            language=clauses.language(self.cursor),
            temporary=temporary,
            system=system,
            if_exists=if_exists,
            text=self.cursor.text_since(token),
            position=token.position,
        )

    def _alter_model(self, token: Token) -> s.Statement:
        if_exists = self.cursor.take("IF", "EXISTS")
        path = self.cursor.names()
        word = self.cursor.expect_any("RENAME", "SET", "RESET")
        change: s.RenameTable | s.SetOptions | s.ResetOptions
        if word == "RENAME":
            self.cursor.expect("TO")
            change = s.RenameTable(to=self.cursor.names())
        elif word == "SET":
            change = s.SetOptions(options=clauses.properties(self.cursor))
        else:
            change = self._reset_change()
        text = self.cursor.text_since(token)
        return s.AlterModel(path=path, change=change, if_exists=if_exists, text=text, position=token.position)

    _ALTERS: ClassVar[dict[str, Callable[[Alters, Token], s.Statement]]] = {
        "TABLE": _alter_table,
        "MATERIALIZED": _alter_materialized_table,
        "VIEW": _alter_view,
        "CATALOG": _alter_catalog,
        "DATABASE": _alter_database,
        "MODEL": _alter_model,
    }
