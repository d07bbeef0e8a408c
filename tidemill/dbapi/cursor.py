"""A cursor: one statement at a time, and its rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from tidemill.client.gateway_client import Answer
from tidemill.dbapi.errors import NotSupportedError, ProgrammingError, translated
from tidemill.dbapi.values import row_reader, with_parameters

if TYPE_CHECKING:
    from tidemill.dbapi.connection import Connection

Row = tuple[Any, ...]
_INSERT = "INSERT"


class Cursor:
    """``description`` and ``job_id`` of the last statement. Rows come page by page, as they are fetched."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.arraysize = 1
        self.description: list[tuple[str, str, None, None, int | None, int | None, bool]] | None = None
        self.rowcount = -1
        self.job_id = ""
        self._changes: Iterator[tuple[str, Row]] | None = None
        self._closed = False

    def execute(self, operation: str, parameters: Sequence[Any] = ()) -> Cursor:
        self._check_open()
        statement = with_parameters(operation, parameters) if parameters else operation
        with translated():
            answer = self.connection.client.execute(statement)
        self.description = [_described(column) for column in answer.columns]
        self.job_id = answer.job_id
        self._changes = _changes(answer)
        return self

    def executemany(self, operation: str, seq_of_parameters: Sequence[Sequence[Any]]) -> Cursor:
        for parameters in seq_of_parameters:
            self.execute(operation, parameters)
        return self

    def changes(self) -> Iterator[tuple[str, Row]]:
        """The rows not yet fetched with their kinds: INSERT, UPDATE_BEFORE, UPDATE_AFTER, DELETE."""
        while (change := self._next()) is not None:
            yield change

    def _next(self) -> tuple[str, Row] | None:
        self._check_open()
        if self._changes is None:
            raise ProgrammingError("No statement has been executed.")
        with translated():
            return next(self._changes, None)

    def fetchone(self) -> Row | None:
        """NotSupportedError for a row that takes another away: ``changes`` has those."""
        change = self._next()
        if change is None:
            return None
        kind, row = change
        if kind != _INSERT:
            raise NotSupportedError(
                f"The row {row} is {kind}: changes() reads a changelog, and batch mode gives final rows."
            )
        return row

    def fetchmany(self, size: int | None = None) -> list[Row]:
        rows: list[Row] = []
        while len(rows) < (self.arraysize if size is None else size):
            row = self.fetchone()
            if row is None:
                break
            rows.append(row)
        return rows

    def fetchall(self) -> list[Row]:
        return list(self)

    def __iter__(self) -> Iterator[Row]:
        while (row := self.fetchone()) is not None:
            yield row

    def cancel(self) -> None:
        """Ends the statement."""
        with translated():
            self.connection.client.cancel()

    def close(self) -> None:
        self._closed = True
        self._changes = None

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


def _changes(answer: Answer) -> Iterator[tuple[str, Row]]:
    read = row_reader(answer.columns)
    return ((kind, read(values)) for kind, values in answer.rows)


def _described(
    column: dict[str, Any],
) -> tuple[str, str, None, None, int | None, int | None, bool]:
    kind = column["logicalType"]
    return (
        column["name"],
        kind["type"],
        None,
        None,
        kind.get("precision"),
        kind.get("scale"),
        kind["nullable"],
    )
