"""Statements of SQLAlchemy's as Flink SQL: backquotes, WITH options of tables, keys that nobody enforces."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Column, ForeignKeyConstraint, PrimaryKeyConstraint, Table, UniqueConstraint
from sqlalchemy.engine import Dialect
from sqlalchemy.exc import CompileError
from sqlalchemy.sql.compiler import DDLCompiler, IdentifierPreparer, SQLCompiler
from sqlalchemy.sql.selectable import GenerativeSelect

from tidemill.sql.reserved import RESERVED

OPTIONS = "with"
"""``Table(..., tidemill_with={'connector': ...})``."""


class TidemillNames(IdentifierPreparer):
    reserved_words = {word.lower() for word in RESERVED}  # noqa: RUF012 - as the base class has it
    illegal_initial_characters = {*"0123456789$_"}  # noqa: RUF012 - as the base class has it

    def __init__(self, dialect: Dialect, **kw: Any) -> None:
        super().__init__(dialect, initial_quote="`", escape_quote="`", **kw)

    def quote_schema(self, schema: str) -> str:
        """A database, or ``catalog.database``."""
        return ".".join(self.quote(part) for part in schema.split("."))


class TidemillStatements(SQLCompiler):
    def limit_clause(self, select: GenerativeSelect, **kw: Any) -> str:
        text = ""
        if select._limit_clause is not None:
            text += f"\n LIMIT {self.process(select._limit_clause, **kw)}"
        if select._offset_clause is not None:
            text += f"\n OFFSET {self.process(select._offset_clause, **kw)}"
        return text

    def for_update_clause(self, select: GenerativeSelect, **kw: Any) -> str:
        raise CompileError("There are no locks: FOR UPDATE is not supported")


class TidemillTables(DDLCompiler):
    def get_column_specification(self, column: Column[Any], **kw: Any) -> str:
        if column.server_default is not None or column.computed is not None or column.identity is not None:
            raise CompileError(f"Column '{column.name}': defaults of the server's are not supported")
        kind = self.dialect.type_compiler_instance.process(column.type, type_expression=column)
        null = "" if column.nullable else " NOT NULL"
        return f"{self.preparer.format_column(column)} {kind}{null}{self._comment(column.comment)}"

    def visit_primary_key_constraint(self, constraint: PrimaryKeyConstraint, **kw: Any) -> str:
        text: str = super().visit_primary_key_constraint(constraint, **kw)
        return f"{text} NOT ENFORCED" if text else ""

    def visit_foreign_key_constraint(self, constraint: ForeignKeyConstraint, **kw: Any) -> str:
        raise CompileError("FOREIGN KEY is not supported")

    def visit_unique_constraint(self, constraint: UniqueConstraint, **kw: Any) -> str:
        raise CompileError("UNIQUE is not supported: declare a primary key")

    def post_create_table(self, table: Table) -> str:
        options: dict[str, str] = table.dialect_options["tidemill"][OPTIONS] or {}
        pairs = ", ".join(f"{_string(k)} = {_string(str(v))}" for k, v in options.items())
        return self._comment(table.comment) + (f" WITH ({pairs})" if pairs else "")

    @staticmethod
    def _comment(comment: str | None) -> str:
        return f" COMMENT {_string(comment)}" if comment else ""


def _string(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
