"""Calls for statements and results: submit, wait, fetch, cancel, close.

The protocol has no row kinds and no tokens, and clients read an empty page as the end. So a fetch waits while
more rows may come and the client is connected.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Mapping
from functools import partial
from typing import Any

import pyarrow.compute as pc

from tidemill.changelog.rowkind import KIND_COLUMN
from tidemill.config import hiveserver2_options as h
from tidemill.config.option import Configuration
from tidemill.errors import NotSupportedError, TidemillError
from tidemill.gateway.api import (
    LONGEST_TIMEOUT,
    OperationInfo,
    OperationStatus,
    ResultInfo,
    ResultPage,
    ResultType,
    StatusError,
)
from tidemill.gateway.endpoints.hiveserver2 import rows, status, types
from tidemill.gateway.endpoints.hiveserver2.caller import Caller, GoneError
from tidemill.gateway.endpoints.hiveserver2.fold import folded
from tidemill.gateway.endpoints.hiveserver2.handles import (
    OperationRef,
    SessionRef,
    operation_handle,
    operation_of,
    session_of,
)
from tidemill.gateway.endpoints.hiveserver2.structs import structs
from tidemill.gateway.endpoints.hiveserver2.wire import Answer
from tidemill.gateway.service.operation import Outcome

_WAIT_SECONDS = 0.5
"""Seconds between two checks that the client is still connected."""
_LONGEST_POLL_SECONDS = 1.0
_MOST_ROWS = 10_000
_LOG = 1
_TIMED_OUT_SINCE = 8
_USE_DEFAULT = re.compile(r"\s*USE\s+`?default`?\s*;?\s*", re.IGNORECASE)
_STATES = {
    OperationStatus.INITIALIZED: 0,
    OperationStatus.RUNNING: 1,
    OperationStatus.FINISHED: 2,
    OperationStatus.CANCELED: 3,
    OperationStatus.CLOSED: 4,
    OperationStatus.ERROR: 5,
    OperationStatus.PENDING: 7,
    OperationStatus.TIMEDOUT: 8,
}


def execute(caller: Caller, request: Any) -> Answer:
    """Submits a statement. Without ``runAsync`` it answers after the statement's end, with the statement's
    error."""
    thrift = structs()
    session = session_of(request.sessionHandle)
    operation = caller.gateway.execute(
        session.session,
        _statement(caller, session, request.statement or ""),
        request.confOverlay,
        then=partial(_in_result_mode, caller, session.session, request.confOverlay or {}),
        timeout=min(max(request.queryTimeout or 0, 0), LONGEST_TIMEOUT),
        user=caller.user,
    )
    ref = OperationRef(operation, session.session, session.version)
    if not request.runAsync:
        await_end(caller, ref)
    handle = operation_handle(ref, thrift.TOperationType.EXECUTE_STATEMENT)
    return Answer(thrift.TExecuteStatementResp(status.good(), handle))


def await_end(caller: Caller, ref: OperationRef) -> None:
    """Waits for the end, and raises the statement's error. Closes a failed operation, or one without a
    client."""
    gateway = caller.gateway
    try:
        info = gateway.operation_info(ref.session, ref.operation, user=caller.user)
        while not info.status.is_terminal:
            info = gateway.wait(ref.session, ref.operation, _WAIT_SECONDS, user=caller.user)
            if not info.status.is_terminal and not caller.is_there():
                raise GoneError
        gateway.result_info(ref.session, ref.operation, user=caller.user)
    except (TidemillError, GoneError):
        gateway.close_operation(ref.session, ref.operation, user=caller.user)
        raise


def operation_status(caller: Caller, request: Any) -> Answer:
    """Waits for a quarter of the running time, at most a second, because clients poll without a pause."""
    ref = operation_of(request.operationHandle)
    gateway = caller.gateway
    info = gateway.operation_info(ref.session, ref.operation, user=caller.user)
    if not info.status.is_terminal:
        wait = min(_seconds_since(info.submitted) / 4, _LONGEST_POLL_SECONDS)
        info = gateway.wait(ref.session, ref.operation, wait, user=caller.user)
    answer = structs().TGetOperationStatusResp(
        status=status.good(),
        operationState=_state(info.status, ref.version),
        operationStarted=_millis(info.submitted),
        hasResultSet=info.status is OperationStatus.FINISHED,
        taskStatus="[]",
    )
    if info.error is not None:
        answer.sqlState, answer.errorCode = status.sql_state(info.error), 1
        answer.errorMessage = status.message(info.error)
    if request.getProgressUpdate:
        answer.progressUpdateResponse = _progress(info)
    return Answer(answer)


def cancel(caller: Caller, request: Any) -> Answer:
    """Cancels an operation. A streaming query's operation has ended already: then the query is stopped."""
    ref = operation_of(request.operationHandle)
    try:
        caller.gateway.cancel(ref.session, ref.operation, user=caller.user)
    except StatusError:
        caller.gateway.stop_rows(ref.session, ref.operation, user=caller.user)
    return Answer(structs().TCancelOperationResp(status.good()))


def close(caller: Caller, request: Any) -> Answer:
    ref = operation_of(request.operationHandle)
    caller.gateway.close_operation(ref.session, ref.operation, user=caller.user)
    return Answer(structs().TCloseOperationResp(status.good()))


def metadata(caller: Caller, request: Any) -> Answer:
    ref = operation_of(request.operationHandle)
    info = _result_info(caller, ref)
    return Answer(structs().TGetResultSetMetadataResp(status.good(), types.schema(info.fields, ref.version)))


def fetch(caller: Caller, request: Any) -> Answer:
    ref = operation_of(request.operationHandle)
    thrift = structs()
    response = thrift.TFetchResultsResp(status.good())
    if request.fetchType == _LOG:
        response.hasMoreRows = False
        operation = caller.gateway.operation_info(ref.session, ref.operation, user=caller.user)
        fresh = caller.logs.fresh(
            operation, first=request.orientation == thrift.TFetchOrientation.FETCH_FIRST
        )
        return Answer(response, rows.lines(fresh, ref.version))
    info = _result_info(caller, ref)
    page = _page(caller, request, ref)
    assert page.rows is not None
    response.hasMoreRows = page.rows.num_rows > 0
    return Answer(response, rows.results(_inserts(page), info.fields, info.zone, ref.version))


def query_id(caller: Caller, request: Any) -> Answer:
    return Answer(structs().TGetQueryIdResp(operation_of(request.operationHandle).operation))


def _in_result_mode(caller: Caller, session: str, options: Mapping[str, str], outcome: Outcome) -> Outcome:
    """The outcome, folded into a table if the session's result mode is ``table``."""
    all_options = {**caller.gateway.session_config(session, user=caller.user), **options}
    return folded(outcome) if Configuration(all_options).read(h.RESULT_MODE) == "table" else outcome


def _statement(caller: Caller, session: SessionRef, text: str) -> str:
    """Clients begin with USE `default`, Hive's default database. If the catalog has none, it means the
    current one."""
    if not _USE_DEFAULT.fullmatch(text):
        return text
    catalog = caller.gateway.catalog(session.session, user=caller.user)
    current, database = catalog.current
    return text if "default" in catalog.databases(current) else f"USE `{database}`"


def _result_info(caller: Caller, ref: OperationRef) -> ResultInfo:
    """The result's columns; waits while the statement runs."""
    gateway = caller.gateway
    info = gateway.result_info(ref.session, ref.operation, user=caller.user)
    while info is None:
        gateway.wait(ref.session, ref.operation, _WAIT_SECONDS, user=caller.user)
        info = gateway.result_info(ref.session, ref.operation, user=caller.user)
        if info is None and not caller.is_there():
            raise GoneError
    return info


def _page(caller: Caller, request: Any, ref: OperationRef) -> ResultPage:
    """The next page with rows, or the end."""
    orientations = structs().TFetchOrientation
    if request.orientation not in (orientations.FETCH_NEXT, orientations.FETCH_FIRST):
        raise NotSupportedError(f"The fetch type {request.orientation} is not supported for this resultset")
    most = min(max(request.maxRows or 0, 1), _MOST_ROWS)
    first = request.orientation == orientations.FETCH_FIRST
    while True:
        page = caller.gateway.fetch_next(
            ref.session, ref.operation, most=most, first=first, wait=_WAIT_SECONDS, user=caller.user
        )
        if page.type is ResultType.EOS or (page.rows is not None and page.rows.num_rows):
            return page
        if not caller.is_there():
            raise GoneError
        first = False


def _inserts(page: ResultPage) -> Any:
    """The rows of a page. NotSupportedError if a row is an update or a delete."""
    table = page.rows
    assert table is not None
    if KIND_COLUMN in table.column_names and pc.any(pc.not_equal(table.column(KIND_COLUMN), 0)).as_py():
        raise NotSupportedError(
            "The query updates or deletes earlier rows, which HiveServer2's protocol cannot express.",
            hint=f"SET '{h.RESULT_MODE.key}' = 'table' for the final table, or "
            "'execution.runtime-mode' = 'batch'.",
        )
    return table


def _progress(info: OperationInfo) -> Any:
    thrift = structs()
    codes = thrift.TJobExecutionStatus
    ended = info.status.is_terminal
    return thrift.TProgressUpdateResp(
        headerNames=["STATUS", "SECONDS"],
        rows=[[info.status.value, f"{_seconds_since(info.submitted):.1f}"]],
        progressedPercentage=1.0 if ended else 0.0,
        status=codes.COMPLETE if ended else codes.IN_PROGRESS,
        footerSummary=info.status.value,
        startTime=_millis(info.submitted),
    )


def _state(operation_status: OperationStatus, version: int) -> int:
    if operation_status is OperationStatus.TIMEDOUT and version < _TIMED_OUT_SINCE:
        operation_status = OperationStatus.CANCELED
    return _STATES[operation_status]


def _millis(moment: dt.datetime) -> int:
    return int(moment.timestamp() * 1000)


def _seconds_since(moment: dt.datetime) -> float:
    return max((dt.datetime.now(dt.UTC) - moment).total_seconds(), 0.0)
