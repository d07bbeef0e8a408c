"""Deletes rows by a condition, which the database judges as we do."""

from __future__ import annotations

from collections.abc import Mapping

from sqlalchemy import text

from tidemill.connectors.filters import ColumnFilter, columns_of
from tidemill.connectors.jdbc.conditions import column_types, exactly
from tidemill.connectors.jdbc.failures import DATABASE_ERRORS, failure
from tidemill.connectors.jdbc.grouping import BYTES, alike, is_other
from tidemill.connectors.jdbc.target import TargetTable
from tidemill.connectors.jdbc.urls import Database
from tidemill.errors import ConnectorError, NotSupportedError
from tidemill.types.logical import LogicalType


def delete_rows(
    database: Database, table: str, declared: Mapping[str, LogicalType], filters: tuple[ColumnFilter, ...]
) -> None:
    """In one transaction. ``declared``: the types of the columns. NotSupportedError where the database would
    compare other values than ours; ConnectorError where SQLite holds values of other types."""
    asked = sorted(frozenset[str]().union(*map(columns_of, filters)))
    stored, dialect = column_types(database, table), database.dialect
    unlike = [n for n in asked if n not in stored or not alike(declared[n], stored[n], dialect)]
    if unlike:
        raise _refusal(f"on column '{unlike[0]}', which the database may compare in another way")
    where = exactly(filters, dialect, stored, BYTES[dialect])
    if where is None:
        raise _refusal("by a condition that the database may judge in another way")
    name = TargetTable(name=table, fields=(), keys=()).quoted
    guard = " OR ".join(is_other(n, declared[n]) for n in asked) if dialect == "sqlite" else ""
    condition = f" WHERE {where.text}" if where.text else ""
    try:
        with database.engine.begin() as connection:
            if guard and connection.execute(text(f"SELECT 1 FROM {name} WHERE {guard} LIMIT 1")).first():
                raise ConnectorError(
                    f"Table '{table}' has values of other types than its columns: {', '.join(asked)}.",
                    hint="Nothing was deleted.",
                )
            connection.execute(text(f"DELETE FROM {name}{condition}"), dict(where.values))
    except DATABASE_ERRORS as e:
        raise failure(e, database, table) from None


def _refusal(why: str) -> NotSupportedError:
    return NotSupportedError(
        f"DELETE of a table without a primary key {why}",
        hint="Declare the key of the table: PRIMARY KEY (...) NOT ENFORCED.",
    )
