"""Deletes and updates rows by a condition, which the database judges as we do."""

from __future__ import annotations

from collections.abc import Mapping

from sqlalchemy import text

from tidemill.connectors.filters import ColumnFilter, columns_of
from tidemill.connectors.jdbc.conditions import column_types, exactly
from tidemill.connectors.jdbc.failures import DATABASE_ERRORS, failure
from tidemill.connectors.jdbc.grouping import BYTES, alike, is_other
from tidemill.connectors.jdbc.source import escaped
from tidemill.connectors.jdbc.target import TargetTable, quote
from tidemill.connectors.jdbc.urls import Database
from tidemill.errors import ConnectorError, NotSupportedError
from tidemill.types.logical import LogicalType


def change_rows(
    database: Database,
    table: str,
    declared: Mapping[str, LogicalType],
    filters: tuple[ColumnFilter, ...],
    values: Mapping[str, object] | None,
) -> None:
    """In one transaction. ``declared``: the types of the columns; ``values``: what columns are set to, None
    to delete the rows. NotSupportedError where the database would compare or hold other values than ours;
    ConnectorError where SQLite holds values of other types."""
    word = "DELETE" if values is None else "UPDATE"
    asked = sorted(frozenset[str]().union(*map(columns_of, filters)))
    stored, dialect = column_types(database, table), database.dialect
    unlike = [
        n for n in (*asked, *(values or ())) if n not in stored or not alike(declared[n], stored[n], dialect)
    ]
    if unlike:
        raise _refusal(word, f"on column '{unlike[0]}', which may have other values in the database")
    where = exactly(filters, dialect, stored, BYTES[dialect])
    if where is None:
        raise _refusal(word, "by a condition that the database may judge in another way")
    name = TargetTable(name=table, fields=(), keys=()).quoted
    guard = " OR ".join(is_other(n, declared[n]) for n in asked) if dialect == "sqlite" else ""
    condition = f" WHERE {where.text}" if where.text else ""
    given = {f"n{number}": value for number, value in enumerate((values or {}).values())}
    sets = ", ".join(f"{escaped(quote(c))} = :{n}" for c, n in zip(values or (), given, strict=True))
    change = f"DELETE FROM {escaped(name)}" if values is None else f"UPDATE {escaped(name)} SET {sets}"
    try:
        with database.engine.begin() as connection:
            if guard and connection.execute(text(f"SELECT 1 FROM {name} WHERE {guard} LIMIT 1")).first():
                raise ConnectorError(
                    f"Table '{table}' has values of other types than its columns: {', '.join(asked)}.",
                    hint="Nothing was changed.",
                )
            connection.execute(text(f"{change}{condition}"), {**where.values, **given})
    except DATABASE_ERRORS as e:
        raise failure(e, database, table) from None


def _refusal(word: str, why: str) -> NotSupportedError:
    return NotSupportedError(
        f"{word} of a table without a primary key {why}",
        hint="Declare the key of the table: PRIMARY KEY (...) NOT ENFORCED.",
    )
