"""Asks a table of a database for the rows of some keys: one statement for a thousand keys.

A lookup that fails because the database is down or busy is tried again, a little later each time; then the
error says what the database said.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from sqlalchemy import text

from tidemill.connectors.api import LookedUp
from tidemill.connectors.jdbc.failures import DATABASE_ERRORS, failure, is_fleeting
from tidemill.connectors.jdbc.source import arrays
from tidemill.connectors.jdbc.sqlite import binder
from tidemill.connectors.jdbc.target import listed, quote
from tidemill.connectors.jdbc.urls import Database
from tidemill.errors import ConnectorError
from tidemill.types import logical as t
from tidemill.types.logical import Field
from tidemill.types.physical import arrow_schema

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
"""What is written into a statement as it is compared there."""
KEYS_PER_REQUEST = 1000
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
        parts, requests = [], 0
        for start in range(0, len(keys), KEYS_PER_REQUEST):
            rows, tries = self._tried(keys.slice(start, KEYS_PER_REQUEST))
            requests += tries
            parts.append(pa.table(self._arrays(rows), schema=arrow_schema(self.fields)))
        return LookedUp(pa.concat_tables([arrow_schema(self.fields).empty_table(), *parts]), requests)

    def _arrays(self, rows: list[Any]) -> list[pa.Array]:
        try:
            return arrays(rows, self.fields)
        except (ValueError, ArithmeticError, pa.ArrowException) as e:
            raise ConnectorError(f"Table '{self.table}': a value does not fit: {e}") from None

    def _tried(self, keys: pa.Table) -> tuple[list[Any], int]:
        """The rows, and how often the database was asked."""
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

    def _asked(self, keys: pa.Table) -> list[Any]:
        values = [list(map(self._shown(name), keys.column(name).to_pylist())) for name in self.keys]
        named = {f"k{i}_{j}": v for j, column in enumerate(values) for i, v in enumerate(column)}
        rows = ", ".join(
            "(" + ", ".join(f":k{i}_{j}" for j in range(len(self.keys))) + ")" for i in range(len(keys))
        )
        table = ".".join(quote(part) for part in self.table.split("."))
        columns = listed(tuple(f.name for f in self.fields))
        condition = f"({listed(self.keys)}) IN (VALUES {rows})"
        sql = f"SELECT {columns} FROM {table} WHERE "
        with self.database.engine.connect() as open:
            return list(open.execute(text(sql.replace(":", "\\:") + condition), named))

    def _shown(self, key: str) -> Callable[[Any], Any]:
        """A value of the key as a parameter."""
        kind = next(f.type for f in self.fields if f.name == key)
        return binder(kind) if self.database.dialect == "sqlite" else lambda value: value
