"""A SELECT over literal rows, which needs no job: the first reader computes the rows."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import pyarrow as pa

from tidemill.config import pipeline_options
from tidemill.errors import NotSupportedError, TidemillError
from tidemill.session.context import SessionContext
from tidemill.session.result import TableResult, query_result
from tidemill.types.logical import Field


@dataclass(slots=True, kw_only=True)
class ConstantQuery:
    """Looks like a job that has ended. ``compute`` is called once. ``wait`` and ``tables`` raise its error,
    as for any failed query."""

    name: str
    compute: Callable[[], pa.Table]
    job_id: str = field(default_factory=lambda: uuid.uuid4().hex)
    _rows: pa.Table | None = None
    _error: TidemillError | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def status(self) -> str:
        return "FINISHED" if self._error is None else "FAILED"

    def is_running(self) -> bool:
        return False

    def wait(self, timeout: float | None = None) -> None:
        with self._lock:
            if self._rows is None and self._error is None:
                try:
                    self._rows = self.compute()
                except TidemillError as e:
                    self._error = e
        if self._error is not None:
            raise self._error

    def tables(self) -> Iterator[pa.Table]:
        """The rows of the query."""
        self.wait()
        assert self._rows is not None
        yield self._rows

    def stop(self) -> None:
        """It has stopped."""

    def cancel(self) -> None:
        """It has stopped."""

    def abort(self) -> None:
        """It has stopped."""

    def stop_with_savepoint(self, directory: str, *, drain: bool = False) -> str:
        raise NotSupportedError("Savepoints of queries are not supported: only INSERTs keep their state.")

    def create_savepoint(self, directory: str = "", *, path: str = "") -> str:
        raise NotSupportedError("Savepoints of queries are not supported: only INSERTs keep their state.")


def constant_result(
    context: SessionContext, fields: tuple[Field, ...], compute: Callable[[], pa.Table]
) -> TableResult:
    """A streaming SELECT over literal rows: a finite result of inserts, in order."""
    name = context.configuration.read(pipeline_options.NAME) or "select"
    query = ConstantQuery(name=name, compute=compute)
    return query_result(context, fields, query.tables(), query, changelog=True)
