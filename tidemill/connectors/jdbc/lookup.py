"""Looks up rows by key in a database table: one statement for a thousand keys, or for a hundred thousand keys
of one column in PostgreSQL.

If the database is down or busy, a lookup is retried with growing pauses; then the database's error is raised.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from sqlalchemy import Connection, text

from tidemill.changelog.columns import single
from tidemill.connectors.api import LookedUp
from tidemill.connectors.jdbc.copied import can_be_copied, chosen, copied
from tidemill.connectors.jdbc.failures import DATABASE_ERRORS, failure, is_fleeting
from tidemill.connectors.jdbc.source import arrays
from tidemill.connectors.jdbc.sqlite import binder
from tidemill.connectors.jdbc.target import listed, quote
from tidemill.connectors.jdbc.urls import Database
from tidemill.errors import ConnectorError
from tidemill.types import logical as t
from tidemill.types.logical import Field
from tidemill.types.physical import arrow_schema
from tidemill.types.python_values import python_values

KEY_TYPES = (
    t.BooleanType,
    t.TinyIntType,
    t.SmallIntType,
    t.IntType,
    t.BigIntType,
    t.DecimalType,
    t.DateType,
    t.TimestampType,
    *t.CHARACTER_TYPES,
)
"""Types of keys whose literals in a statement compare like the values."""
KEYS_PER_REQUEST = 1000
KEYS_PER_COPY = 100_000
FIRST_PAUSE = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class JdbcLookup:
    database: Database
    table: str
    fields: tuple[Field, ...]
    keys: tuple[str, ...]
    retries: int
    pause: Callable[[float], None] = time.sleep

    def lookup(self, keys: pa.Table) -> LookedUp:
        parts, requests = [arrow_schema(self.fields).empty_table()], 0
        step = KEYS_PER_COPY if self._copies(keys) else KEYS_PER_REQUEST
        for start in range(0, len(keys), step):
            rows, tries = self._tried(keys.slice(start, step))
            requests += tries
            parts.append(rows)
        return LookedUp(pa.concat_tables(parts), requests)

    def version(self) -> Hashable:
        return None

    def scan(self) -> pa.Table:
        rows, _ = self._tried(None)
        return rows

    def _tried(self, keys: pa.Table | None) -> tuple[pa.Table, int]:
        """The rows of the keys, or all, and how often the database was asked."""
        for attempt in range(self.retries + 1):
            try:
                return self._asked(keys), attempt + 1
            except DATABASE_ERRORS as e:
                if attempt == self.retries or not is_fleeting(e):
                    error = failure(e, self.database, self.table)
                    error.message += f" (asked {attempt + 1} times)" if attempt else ""
                    raise error from None
                self.pause(FIRST_PAUSE * 2**attempt)
        raise AssertionError("the last try returns or raises")

    def _copies(self, keys: pa.Table | None) -> bool:
        if self.database.dialect != "postgresql" or not can_be_copied(self.fields):
            return False
        return keys is None or len(self.keys) == 1

    def _asked(self, keys: pa.Table | None) -> pa.Table:
        table = ".".join(quote(part) for part in self.table.split("."))
        with self.database.engine.connect() as open:
            if self._copies(keys):
                found = copied(open, table, self.fields, "" if keys is None else self._is_among(keys))
                if found is not None:
                    return found
            return self._table(self._fetched(open, table, keys))

    def _is_among(self, keys: pa.Table) -> str:
        (name,) = self.keys
        return chosen(next(f for f in self.fields if f.name == name), single(keys.column(name)))

    def _fetched(self, open: Connection, table: str, keys: pa.Table | None) -> list[Any]:
        """The rows as the driver gives them."""
        columns = listed(tuple(f.name for f in self.fields))
        sql = f"SELECT {columns} FROM {table}".replace(":", "\\:")
        if keys is None:
            return list(open.execute(text(sql)))
        rows: list[Any] = []
        for start in range(0, len(keys), KEYS_PER_REQUEST):
            condition, values = self._condition(keys.slice(start, KEYS_PER_REQUEST))
            rows += open.execute(text(sql + condition), values)
        return rows

    def _table(self, rows: list[Any]) -> pa.Table:
        try:
            return pa.table(arrays(rows, self.fields), schema=arrow_schema(self.fields))
        except (ValueError, ArithmeticError, pa.ArrowException) as e:
            raise ConnectorError(f"Table '{self.table}': a value does not fit: {e}") from None

    def _condition(self, keys: pa.Table) -> tuple[str, dict[str, Any]]:
        """The WHERE that chooses the rows of ``keys``, and its parameters."""
        values = [list(map(self._shown(name), python_values(keys.column(name)))) for name in self.keys]
        named = {f"k{i}_{j}": v for j, column in enumerate(values) for i, v in enumerate(column)}
        rows = ", ".join(
            "(" + ", ".join(f":k{i}_{j}" for j in range(len(self.keys))) + ")" for i in range(len(keys))
        )
        columns = listed(self.keys).replace(":", "\\:")
        return f" WHERE ({columns}) IN (VALUES {rows})", named

    def _shown(self, key: str) -> Callable[[Any], Any]:
        """A value of the key as a parameter."""
        kind = next(f.type for f in self.fields if f.name == key)
        return binder(kind) if self.database.dialect == "sqlite" else lambda value: value
