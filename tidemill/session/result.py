"""TableResult: the columns and rows of one statement, and its job.

A result can be read once: ``collect``, ``print`` and ``to_pandas`` share one stream of rows. The rows of a
streaming query arrive epoch by epoch.
"""

from __future__ import annotations

import datetime as dt
import sys
from collections.abc import Iterable, Iterator
from enum import Enum
from itertools import chain
from types import TracebackType
from typing import TYPE_CHECKING, Any, TextIO

import pyarrow as pa

from tidemill.changelog.rowkind import RowKind
from tidemill.config import table_options
from tidemill.functions.text.cast import cast
from tidemill.session.jobs.client import JobClient
from tidemill.session.jobs.job import JobHandle
from tidemill.session.rows import tableau, values
from tidemill.session.rows.decoder import ChangelogRow, rows_of
from tidemill.session.rows.pandas_frames import folded_pandas
from tidemill.session.rows.row import Row
from tidemill.types.logical import STRING, Field
from tidemill.types.physical import arrow_type

if TYPE_CHECKING:
    import pandas as pd

    from tidemill.session.context import SessionContext


UNCUT = 1 << 30


class StatementKind(Enum):
    """The kind of a statement, as ``tidemill run --format json`` names it."""

    SET = "set"
    RESET = "reset"
    QUERY = "query"
    INSERT = "insert"
    EXPLAIN = "explain"
    OTHER = "other"


class TableResult:
    """Flink's TableResult.

    ``fields`` are the columns. If ``changelog`` is true, rows may have any RowKind, otherwise only +I. If
    ``rendered`` is true, values other than booleans and numbers are texts already.

    >>> with env.execute_sql("SELECT 1 AS n").collect() as rows:
    ...     print([(row.kind, row["n"]) for row in rows])
    """

    def __init__(
        self,
        *,
        kind: StatementKind,
        fields: tuple[Field, ...],
        rows: Iterable[ChangelogRow] = (),
        tables: Iterator[pa.Table] | None = None,
        zone: dt.tzinfo = dt.UTC,
        changelog: bool = False,
        rendered: bool = False,
        ok: bool = False,
        job: JobHandle | None = None,
        max_width: int = 30,
    ) -> None:
        self.kind = kind
        self.fields = fields
        self.zone = zone
        self.changelog = changelog
        self.rendered = rendered
        self.ok = ok
        self.job = job
        self.max_width = max_width
        self._tables = tables
        self._rows = iter(rows) if tables is None else _rows_in(tables, len(fields))

    @property
    def result_kind(self) -> str:
        """SUCCESS for statements that only answer OK, otherwise SUCCESS_WITH_CONTENT."""
        return "SUCCESS" if self.ok else "SUCCESS_WITH_CONTENT"

    @property
    def is_text(self) -> bool:
        """Whether the result is one long text, as of EXPLAIN. Such a text is printed without a frame."""
        if self.ok or self.kind is StatementKind.QUERY:
            return False
        return [f.name for f in self.fields] == ["result"]

    def changes(self) -> Iterator[ChangelogRow]:
        """The unread rows in Spark's types, with their kinds. A stream may block until the next epoch."""
        yield from self._rows

    def tables(self) -> Iterator[pa.Table]:
        """The unread rows as Arrow tables, with a column of kinds if there may be kinds other than +I."""
        yield from self._tables if self._tables is not None else self._in_arrow()

    def _in_arrow(self) -> Iterator[pa.Table]:
        rows = list(self._rows)
        arrays = [
            pa.array([carried[place] for _, carried in rows], arrow_type(f.type))
            for place, f in enumerate(self.fields)
        ]
        yield pa.Table.from_arrays(arrays, names=[f.name for f in self.fields])

    def collect(self) -> CloseableRows:
        """The unread rows as ``Row`` objects. Closing the iterator stops the job."""
        return CloseableRows(self)

    def print(self, file: TextIO | None = None) -> None:
        """Prints the rows in Flink's tableau style, or a long text unchanged. ``file``: standard output."""
        for line in self.lines():
            print(line, file=file or sys.stdout, flush=True)

    def lines(self) -> Iterator[str]:
        """The lines that ``print`` writes, as the rows arrive."""
        if self.is_text:
            return (str(carried[0]).rstrip() for _, carried in self._rows)
        lay_out = tableau.stream_lines if self.changelog else tableau.batch_lines
        return lay_out(self.fields, self._rows, max_width=self.max_width, zone=self.zone, show=self.show)

    @property
    def show(self) -> tableau.Show:
        """How values are shown: as CAST to STRING, unless the job made them text already."""
        return values.or_rendered(cast) if self.rendered else cast

    def to_pandas(self) -> pd.DataFrame:
        """All rows. The changes of a changelog are applied, so only the final rows are left."""
        return folded_pandas(self.fields, self._rows)

    def wait(self, timeout: float | None = None) -> None:
        """Blocks until the job has ended. Returns at once if there is no job. ``timeout`` is in seconds."""
        if self.job is not None:
            self.job.wait(timeout)

    def get_job_client(self) -> JobClient | None:
        """The job, or None: batch statements, and statements other than queries and INSERTs, have no job."""
        return None if self.job is None else JobClient(self.job)


class CloseableRows:
    """An iterator of ``Row``. ``close``, or the end of a ``with`` block, stops the job."""

    def __init__(self, result: TableResult) -> None:
        self._result = result
        self._names = tuple(f.name for f in result.fields)
        self._types = tuple(f.type for f in result.fields)
        self._changes = result.changes()

    def __iter__(self) -> CloseableRows:
        return self

    def __next__(self) -> Row:
        kind, carried = next(self._changes)
        shown = (values.python_value(t, v) for t, v in zip(self._types, carried, strict=True))
        return Row(shown, self._names, kind)

    def close(self) -> None:
        if self._result.job is not None and self._result.job.is_running():
            self._result.job.cancel()

    def __enter__(self) -> CloseableRows:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _rows_in(tables: Iterable[pa.Table], width: int) -> Iterator[ChangelogRow]:
    return chain.from_iterable(rows_of(table, width) for table in tables)


def ok(kind: StatementKind = StatementKind.OTHER) -> TableResult:
    """The result of DDL: one row with OK."""
    return TableResult(
        kind=kind, fields=(Field("result", STRING),), rows=[(RowKind.INSERT, ("OK",))], ok=True
    )


def listing(
    fields: tuple[Field, ...], rows: Iterable[tuple[Any, ...]], kind: StatementKind = StatementKind.OTHER
) -> TableResult:
    """The result of SHOW and DESCRIBE: complete rows."""
    changes = [(RowKind.INSERT, r) for r in rows]
    return TableResult(kind=kind, fields=fields, rows=changes, max_width=UNCUT)


def query_result(
    context: SessionContext,
    fields: tuple[Field, ...],
    tables: Iterator[pa.Table],
    job: JobHandle | None = None,
    *,
    changelog: bool = False,
) -> TableResult:
    """The result of a SELECT, as the session wants results."""
    return TableResult(
        kind=StatementKind.QUERY,
        fields=fields,
        tables=tables,
        zone=context.zone,
        changelog=changelog,
        rendered=context.rendered,
        job=job,
        max_width=context.configuration.read(table_options.MAX_COLUMN_WIDTH),
    )
