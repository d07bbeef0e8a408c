"""One way of writing per database, by dialect."""

from __future__ import annotations

from typing import Protocol

from sqlalchemy import Connection

from tidemill.connectors.jdbc.postgres import PostgresWriter
from tidemill.connectors.jdbc.sqlite import SqliteWriter
from tidemill.connectors.jdbc.staging import RowsFormat
from tidemill.connectors.jdbc.target import TargetTable
from tidemill.files.storage import Storage


class TableWriter(Protocol):
    """Applies staged rows within the open transaction. A file has no key twice."""

    def rows(self, target: TargetTable) -> RowsFormat:
        """How tasks keep the rows for this writer."""
        ...

    def upsert(self, open: Connection, target: TargetTable, storage: Storage, file: str) -> None: ...

    def delete(self, open: Connection, target: TargetTable, storage: Storage, files: list[str]) -> None: ...


WRITERS: dict[str, TableWriter] = {"postgresql": PostgresWriter(), "sqlite": SqliteWriter()}
