"""Writes staged rows into PostgreSQL: COPY into a temporary table, merged from there by one statement.

Without a primary key the rows are copied straight into the table.
"""

from __future__ import annotations

import psycopg
from sqlalchemy import Connection

from tidemill.connectors.jdbc.copy_rows import COPY_OPTIONS, CopyRows
from tidemill.connectors.jdbc.target import TargetTable, listed, quote
from tidemill.files.storage import Storage

_CHUNK = 1 << 20
_STAGED = "tidemill_staged"


class PostgresWriter:
    def rows(self, target: TargetTable) -> CopyRows:
        return CopyRows(fields=target.fields)

    def upsert(self, open: Connection, target: TargetTable, storage: Storage, file: str) -> None:
        if not target.keys:
            _copy(open, target.quoted, target.columns, storage, [file])
            return
        _fill_temporary(open, target, target.columns, storage, [file])
        columns = listed(target.columns)
        open.exec_driver_sql(
            f"INSERT INTO {target.quoted} ({columns}) SELECT {columns} FROM {_STAGED}{target.on_conflict()}"
        )
        open.exec_driver_sql(f"DROP TABLE {_STAGED}")

    def delete(self, open: Connection, target: TargetTable, storage: Storage, files: list[str]) -> None:
        _fill_temporary(open, target, target.keys, storage, files)
        same = " AND ".join(f"t.{quote(k)} = s.{quote(k)}" for k in target.keys)
        open.exec_driver_sql(f"DELETE FROM {target.quoted} AS t USING {_STAGED} AS s WHERE {same}")
        open.exec_driver_sql(f"DROP TABLE {_STAGED}")


def _fill_temporary(
    open: Connection, target: TargetTable, columns: tuple[str, ...], storage: Storage, files: list[str]
) -> None:
    """A temporary table with ``columns`` of the target's types, and the rows of ``files`` in it."""
    select = f"SELECT {listed(columns)} FROM {target.quoted} WITH NO DATA"
    open.exec_driver_sql(f"CREATE TEMPORARY TABLE {_STAGED} ON COMMIT DROP AS {select}")
    _copy(open, _STAGED, columns, storage, files)


def _copy(open: Connection, table: str, columns: tuple[str, ...], storage: Storage, files: list[str]) -> None:
    connection = open.connection.driver_connection
    assert isinstance(connection, psycopg.Connection)
    statement = f"COPY {table} ({listed(columns)}) FROM STDIN ({COPY_OPTIONS})"
    with connection.cursor() as cursor, cursor.copy(statement.encode()) as copy:
        for name in files:
            with storage.open(name) as file:
                while chunk := file.read(_CHUNK):
                    copy.write(chunk)
