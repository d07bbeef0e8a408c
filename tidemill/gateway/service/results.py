"""Turns the result of a statement into pages of rows with one schema.

Rows of a finished result are put at once. A thread of its own puts the rows of a streaming query; the thread
waits while the reader is far behind (backpressure), and nothing else waits for it.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable
from dataclasses import dataclass

import pyarrow as pa

from tidemill.changelog.rowkind import KIND_COLUMN
from tidemill.config import gateway_options as g
from tidemill.config.option import Configuration
from tidemill.errors import InternalError, TidemillError
from tidemill.gateway.api import ResultInfo
from tidemill.gateway.service.operation import Control, Outcome
from tidemill.gateway.service.pages import Pages
from tidemill.session.constant_query import ConstantQuery
from tidemill.session.result import StatementKind, TableResult
from tidemill.types.logical import STRING, Field
from tidemill.types.physical import arrow_schema

_KIND_TYPE = pa.int8()
_NEVER = 1 << 62


@dataclass(frozen=True, slots=True)
class Results:
    """``folder`` holds the results of all sessions, each in a folder named by its operation."""

    config: Configuration
    folder: str

    def of(self, result: TableResult, work: str, control: Control) -> Outcome:
        """The outcome of a statement. ``work``: the id of a batch job, which has no id of its own."""
        if result.kind is StatementKind.INSERT:
            return self._of_insert(result, work, control)
        if result.job is not None:
            control.stop_with(result.job.abort)
        info = ResultInfo(
            fields=result.fields,
            is_query=result.kind is StatementKind.QUERY,
            result_kind=result.result_kind,
            job_id=_job_id(result, work),
            zone=result.zone,
            changelog=result.changelog,
        )
        endless = result.changelog and not isinstance(result.job, ConstantQuery)
        pages = self.pages(info, control.handle, endless=endless)
        if endless:
            threading.Thread(
                target=_feed, args=(result, info, pages), name="tidemill-gateway-result", daemon=True
            ).start()
        else:
            _fill(result.tables(), info, pages)
        return Outcome(info, pages)

    def _of_insert(self, result: TableResult, work: str, control: Control) -> Outcome:
        """One row with the job id of an INSERT. The job continues if the operation is closed."""
        job_id = _job_id(result, work)
        fields = (Field("job id", STRING),)
        info = ResultInfo(
            fields=fields, is_query=False, result_kind="SUCCESS_WITH_CONTENT", job_id=job_id, zone=result.zone
        )
        pages = self.pages(info, control.handle, endless=False)
        _fill([pa.table({"job id": [job_id]})], info, pages)
        return Outcome(info, pages)

    def pages(self, info: ResultInfo, name: str, *, endless: bool) -> Pages:
        """Empty pages for a result. ``endless``: a streaming result, whose read rows are dropped."""
        schema = arrow_schema(info.fields)
        return Pages(
            schema=schema.append(pa.field(KIND_COLUMN, _KIND_TYPE)) if info.changelog else schema,
            folder=os.path.join(self.folder, name),
            memory=self.config.read(g.RESULT_MEMORY).bytes,
            ahead=self.config.read(g.RESULT_AHEAD).bytes if endless else _NEVER,
            keep=not endless,
            durable=True,
        )


def _job_id(result: TableResult, work: str) -> str:
    """The result's job id. A batch statement has no job, so its job id is ``work``."""
    if result.job is not None:
        return result.job.job_id
    return work if result.kind in (StatementKind.QUERY, StatementKind.INSERT) else ""


def _fill(tables: Iterable[pa.Table], info: ResultInfo, pages: Pages) -> None:
    for table in tables:
        if not pages.put(_uniform(table, info, pages.schema)):
            return
    pages.finish()


def _feed(result: TableResult, info: ResultInfo, pages: Pages) -> None:
    """Fills ``pages`` until the job ends or nobody reads. The reader gets the job's error."""
    try:
        _fill(result.tables(), info, pages)
    except TidemillError as e:
        pages.fail(e)
    except Exception as e:
        pages.fail(InternalError(f"{type(e).__name__}: {e}"))
    finally:
        if result.job is not None and result.job.is_running():
            result.job.abort()


def _uniform(table: pa.Table, info: ResultInfo, schema: pa.Schema) -> pa.Table:
    """``table`` cast to the schema of the result's pages."""
    if table.schema.equals(schema):
        return table
    columns = [table.column(index) for index in range(len(info.fields))]
    if schema.names[-1:] == [KIND_COLUMN]:
        has_kinds = KIND_COLUMN in table.column_names
        columns.append(table.column(KIND_COLUMN) if has_kinds else _inserts(table.num_rows))
    return pa.table([c.cast(f.type) for c, f in zip(columns, schema, strict=True)], schema=schema)


def _inserts(rows: int) -> pa.ChunkedArray:
    return pa.chunked_array([pa.array([0] * rows, _KIND_TYPE)])
