"""A cursor: one statement at a time, and its rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain, islice
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from tidemill.client.gateway_client import Answer
from tidemill.dbapi import pages
from tidemill.dbapi.errors import NotSupportedError, ProgrammingError, translated
from tidemill.dbapi.pages import Change, Row
from tidemill.dbapi.values import type_code, with_parameters

if TYPE_CHECKING:
    from tidemill.dbapi.connection import Connection

_INSERT = "INSERT"


class Cursor:
    """``description`` and ``job_id`` of the last statement. Rows come page by page, as they are fetched."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.arraysize = 1
        self.description: list[tuple[str, str, None, None, int | None, int | None, bool]] | None = None
        self.rowcount = -1
        self.job_id = ""
        self._answer: Answer | None = None
        self._changes: Iterator[Change] | None = None
        """The rows that are left, once the first was asked for."""
        self._closed = False

    def execute(self, operation: str, parameters: Sequence[Any] = ()) -> Cursor:
        self._check_open()
        statement = with_parameters(operation, parameters) if parameters else operation
        self._answer = self._changes = None
        with translated():
            self._answer = self.connection.client.execute(statement)
        self.description = [_described(column) for column in self._answer.columns]
        self.job_id = self._answer.job_id
        return self

    def executemany(self, operation: str, seq_of_parameters: Sequence[Sequence[Any]]) -> Cursor:
        for parameters in seq_of_parameters:
            self.execute(operation, parameters)
        return self

    def changes(self) -> Iterator[Change]:
        """The rows not yet fetched with their kinds: INSERT, UPDATE_BEFORE, UPDATE_AFTER, DELETE."""
        while found := self._next(1):
            yield found[0]

    def _next(self, most: int | None) -> list[Change]:
        """So many rows, or all that are left."""
        answer = self._executed()
        with translated():
            if self._changes is None:
                self._changes = chain.from_iterable(pages.changes(answer.columns, answer.pages))
            return list(islice(self._changes, most))

    def _executed(self) -> Answer:
        self._check_open()
        if self._answer is None:
            raise ProgrammingError("No statement has been executed.")
        return self._answer

    def fetchone(self) -> Row | None:
        """NotSupportedError for a row that takes another away: ``changes`` has those."""
        return next(iter(self.fetchmany(1)), None)

    def fetchmany(self, size: int | None = None) -> list[Row]:
        return _final(self._next(self.arraysize if size is None else size))

    def fetchall(self) -> list[Row]:
        return _final(self._next(None))

    def fetch_arrow_table(self) -> pa.Table:
        """All rows as an Arrow table, which pandas and polars take as it is. NotSupportedError for a
        changelog, and over a gateway of Flink's."""
        answer = self._executed()
        if self._changes is not None:
            raise ProgrammingError("Rows have been fetched already: an Arrow table has all of them.")
        self._changes = iter(())
        with translated():
            return pages.table(answer.columns, answer.pages)

    def __iter__(self) -> Iterator[Row]:
        while (row := self.fetchone()) is not None:
            yield row

    def cancel(self) -> None:
        """Ends the statement, also from another thread while it is executed; to fetch on is an error."""
        with translated():
            self.connection.client.cancel("" if self._answer is None else self._answer.operation)

    def close(self) -> None:
        self._closed = True
        self._answer = self._changes = None

    def setinputsizes(self, sizes: Sequence[Any]) -> None:
        """Does nothing, as PEP 249 allows."""

    def setoutputsize(self, size: int, column: int | None = None) -> None:
        """Does nothing, as PEP 249 allows."""

    def __enter__(self) -> Cursor:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _check_open(self) -> None:
        if self._closed:
            raise ProgrammingError("The cursor is closed.")
        self.connection.check_open()


def _final(changes: list[Change]) -> list[Row]:
    for kind, row in changes:
        if kind != _INSERT:
            raise NotSupportedError(
                f"The row {row} is {kind}: changes() reads a changelog, and batch mode gives final rows."
            )
    return [row for _, row in changes]


def _described(
    column: dict[str, Any],
) -> tuple[str, str, None, None, int | None, int | None, bool]:
    kind = column["logicalType"]
    return (
        column["name"],
        type_code(kind),
        None,
        None,
        kind.get("precision"),
        kind.get("scale"),
        kind["nullable"],
    )
