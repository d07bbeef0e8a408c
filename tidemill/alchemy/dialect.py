"""The dialect: ``tidemill://[USER:PASSWORD@]HOST:PORT[/CATALOG[/DATABASE]][?https=true&option=value]``.

Each connection of the engine's pool is a session of the gateway, in batch mode; what is after the question
mark are its options. There are no transactions. A schema is a database, or ``catalog.database``.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection, Table, text
from sqlalchemy.engine import URL
from sqlalchemy.engine.default import DefaultDialect
from sqlalchemy.engine.interfaces import (
    ConnectArgsType,
    DBAPIConnection,
    DBAPIModule,
    ReflectedColumn,
    ReflectedForeignKeyConstraint,
    ReflectedIndex,
    ReflectedPrimaryKeyConstraint,
    ReflectedTableComment,
    ReflectedUniqueConstraint,
)
from sqlalchemy.exc import DBAPIError, NoSuchTableError
from sqlalchemy.pool import PoolProxiedConnection
from sqlalchemy.sql.compiler import IdentifierPreparer

import tidemill.dbapi
from tidemill.alchemy.compiling import OPTIONS, TidemillNames, TidemillStatements, TidemillTables
from tidemill.alchemy.types import TidemillTypes, reflected
from tidemill.sql.parser import parse_statement, parse_type
from tidemill.sql.statements import CreateTable, CreateView

_PORT = 8083
_HTTPS = "https"


class TidemillDialect(DefaultDialect):
    name = "tidemill"
    driver = "rest"
    default_paramstyle = "qmark"
    statement_compiler = TidemillStatements
    ddl_compiler = TidemillTables
    type_compiler_cls = TidemillTypes
    preparer: type[IdentifierPreparer] = TidemillNames
    construct_arguments = [(Table, {OPTIONS: None})]  # noqa: RUF012 - as the base class has it
    supports_statement_cache = True
    supports_native_boolean = True
    supports_native_decimal = True
    supports_alter = False
    supports_comments = True
    inline_comments = True
    supports_default_values = False
    supports_multivalues_insert = True
    supports_sane_rowcount = False
    supports_sane_multi_rowcount = False
    postfetch_lastrowid = False
    # Each INSERT is a job: rows of an executemany go into one.
    use_insertmanyvalues = True
    use_insertmanyvalues_wo_returning = True
    insertmanyvalues_max_parameters = 100_000
    max_identifier_length = 255

    @classmethod
    def import_dbapi(cls) -> DBAPIModule:
        return tidemill.dbapi  # type: ignore[return-value]  # a module is not declared to be one

    def create_connect_args(self, url: URL) -> ConnectArgsType:
        options = {k: v if isinstance(v, str) else v[-1] for k, v in url.query.items()}
        scheme = "https" if options.pop(_HTTPS, "").lower() == "true" else "http"
        address = URL.create(
            scheme, url.username, url.password, url.host or "127.0.0.1", url.port or _PORT
        ).render_as_string(hide_password=False)
        return (address,), {
            "properties": options,
            "path": tuple(filter(None, (url.database or "").split("/"))),
        }

    def connect(self, *arguments: Any, path: tuple[str, ...] = (), **named: Any) -> DBAPIConnection:
        """``path``: the catalog and database to begin in."""
        connection = super().connect(*arguments, **named)
        cursor = connection.cursor()
        for words, part in zip(("USE CATALOG", "USE"), path, strict=False):
            cursor.execute(f"{words} {self.identifier_preparer.quote_identifier(part)}")
        cursor.close()
        return connection

    def do_rollback(self, dbapi_connection: PoolProxiedConnection) -> None:
        """There is nothing to take back."""

    def is_disconnect(self, e: Any, connection: Any, cursor: Any) -> bool:
        """The gateway has closed the session, or is away."""
        return isinstance(e, self.loaded_dbapi.OperationalError) and any(
            words in str(e) for words in ("does not answer", "Session '")
        )

    def _get_default_schema_name(self, connection: Connection) -> str:
        return str(connection.scalar(text("SHOW CURRENT DATABASE")))

    # -- reflection

    def get_schema_names(self, connection: Connection, **kw: Any) -> list[str]:
        return _names(connection, "SHOW DATABASES")

    def get_table_names(self, connection: Connection, schema: str | None = None, **kw: Any) -> list[str]:
        views = set(self.get_view_names(connection, schema))
        return [n for n in _names(connection, f"SHOW TABLES{self._within(schema)}") if n not in views]

    def get_view_names(self, connection: Connection, schema: str | None = None, **kw: Any) -> list[str]:
        return _names(connection, f"SHOW VIEWS{self._within(schema)}")

    def has_table(
        self, connection: Connection, table_name: str, schema: str | None = None, **kw: Any
    ) -> bool:
        return table_name in _names(connection, f"SHOW TABLES{self._within(schema)}")

    def get_columns(
        self, connection: Connection, table_name: str, schema: str | None = None, **kw: Any
    ) -> list[ReflectedColumn]:
        return [
            {
                "name": row[0],
                "type": reflected(parse_type(row[1].partition(" *")[0])),
                "nullable": row[2],
                "default": None,
                "comment": row[6] if len(row) > _COMMENT else None,
            }
            for row in self._described(connection, table_name, schema)
        ]

    def get_pk_constraint(
        self, connection: Connection, table_name: str, schema: str | None = None, **kw: Any
    ) -> ReflectedPrimaryKeyConstraint:
        keys = (row[3] for row in self._described(connection, table_name, schema) if row[3])
        names = next(keys, "").removeprefix("PRI(").removesuffix(")")
        return {"name": None, "constrained_columns": names.split(", ") if names else []}

    def get_view_definition(
        self, connection: Connection, view_name: str, schema: str | None = None, **kw: Any
    ) -> str:
        made = connection.scalar(text(f"SHOW CREATE VIEW {self._path(view_name, schema)}"))
        return str(made).partition("\nAS ")[2].rstrip("\n")

    def get_table_comment(
        self, connection: Connection, table_name: str, schema: str | None = None, **kw: Any
    ) -> ReflectedTableComment:
        kind = "VIEW" if table_name in self.get_view_names(connection, schema) else "TABLE"
        asked = text(f"SHOW CREATE {kind} {self._path(table_name, schema)}")
        try:
            made = parse_statement(str(connection.scalar(asked)))
        except DBAPIError as e:
            raise _missing(table_name, schema) from e
        found = made.comment if isinstance(made, CreateTable | CreateView) else ""
        return {"text": found or None}

    def get_foreign_keys(self, *_: Any, **kw: Any) -> list[ReflectedForeignKeyConstraint]:
        return []

    def get_indexes(self, *_: Any, **kw: Any) -> list[ReflectedIndex]:
        return []

    def get_unique_constraints(self, *_: Any, **kw: Any) -> list[ReflectedUniqueConstraint]:
        return []

    def _described(self, connection: Connection, table: str, schema: str | None) -> list[Any]:
        try:
            return list(connection.execute(text(f"DESCRIBE {self._path(table, schema)}")))
        except DBAPIError as e:
            raise _missing(table, schema) from e

    def _path(self, name: str, schema: str | None) -> str:
        quoted = self.identifier_preparer.quote_identifier(name)
        return f"{self._schema(schema)}.{quoted}" if schema else quoted

    def _within(self, schema: str | None) -> str:
        return f" FROM {self._schema(schema)}" if schema else ""

    def _schema(self, schema: str | None) -> str:
        return self.identifier_preparer.quote_schema(schema or "")


_COMMENT = 6
"""Where DESCRIBE has comments, if a column has one."""


def _missing(table: str, schema: str | None) -> NoSuchTableError:
    return NoSuchTableError(f"{schema}.{table}" if schema else table)


def _names(connection: Connection, statement: str) -> list[str]:
    return [row[0] for row in connection.execute(text(statement))]
