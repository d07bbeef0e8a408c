"""What each route does: a call of the service, and its answer as JSON text."""

from __future__ import annotations

import json
from asyncio import wrap_future
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import lru_cache, wraps
from typing import Any

import pyarrow as pa

from tidemill.catalog.table import ObjectPath
from tidemill.errors import NotSupportedError, TidemillError, ValidationError
from tidemill.gateway.api import PRODUCT, VERSION, OperationStatus, ResultInfo, ResultPage, ResultType
from tidemill.gateway.endpoints.rest.arrow_pages import ARROW, written
from tidemill.gateway.endpoints.rest.call import NEWEST, Call
from tidemill.gateway.endpoints.rest.errors import HttpError, failed, refused
from tidemill.gateway.endpoints.rest.rows import rows_json
from tidemill.gateway.endpoints.rest.types import type_json
from tidemill.gateway.service.operation import Control, Operation, Outcome
from tidemill.gateway.service.service import Gateway
from tidemill.types.logical import Field

JSON = "application/json; charset=UTF-8"
_WARNINGS = "Tidemill-Warnings"


@dataclass(frozen=True, slots=True)
class Binary:
    """An answer that is no JSON, or has headers of its own."""

    content: bytes
    media_type: str
    headers: Mapping[str, str]


Handler = Callable[[Gateway, Call], str | Binary]
EMPTY_WAIT = 0.2
"""Seconds that a request for rows that are not there waits for them: clients ask again at once, and where
there is much to do each request more makes all wait longer."""
LONG_STATEMENT = 16 << 10
"""Bytes of a request from which on to read it takes a while."""


def _text(answer: Mapping[str, Any]) -> str:
    return json.dumps(answer, ensure_ascii=False, separators=(",", ":"))


def _refusing(handler: Handler) -> Handler:
    @wraps(handler)
    def run(gateway: Gateway, call: Call) -> str | Binary:
        with _refusals():
            return handler(gateway, call)

    return run


def _failing(doing: str) -> Callable[[Handler], Handler]:
    def decorate(handler: Handler) -> Handler:
        @wraps(handler)
        def run(gateway: Gateway, call: Call) -> str | Binary:
            with _failures(doing):
                return handler(gateway, call)

        return run

    return decorate


@contextmanager
def _refusals() -> Iterator[None]:
    try:
        yield
    except TidemillError as e:
        raise refused(e) from e


@contextmanager
def _failures(doing: str) -> Iterator[None]:
    try:
        yield
    except TidemillError as e:
        raise failed(e, doing) from e


def info(gateway: Gateway, call: Call) -> str:
    """Whose protocol this is."""
    return _text({"productName": PRODUCT, "version": VERSION})


def api_versions(gateway: Gateway, call: Call) -> str:
    """The versions of the protocol."""
    return _text({"versions": [f"V{n}" for n in range(1, NEWEST + 1)]})


# -- sessions


@_failing("open session")
def open_session(gateway: Gateway, call: Call) -> str:
    """Opens a session with these properties over the gateway's own."""
    name = call.text("sessionName")
    handle = gateway.open_session(call.options("properties"), name=name, user=call.user)
    return _text(call.answer({"sessionHandle": handle}))


@_refusing
def close_session(gateway: Gateway, call: Call) -> str:
    """Closes the session; its running jobs go on, its queries end."""
    gateway.close_session(call.session, user=call.user)
    return _text({"status": "CLOSED"})


@_refusing
def session_config(gateway: Gateway, call: Call) -> str:
    """The session's options as they are now."""
    return _text({"properties": gateway.session_config(call.session, user=call.user)})


@_refusing
def heartbeat(gateway: Gateway, call: Call) -> str:
    """Keeps the session from being closed as idle."""
    gateway.heartbeat(call.session, user=call.user)
    return "{}"


@_failing("configure session")
def configure_session(gateway: Gateway, call: Call) -> str:
    """Runs a statement that changes the session, to its end."""
    gateway.configure_session(call.session, call.text("statement"), timeout=call.timeout, user=call.user)
    return "{}"


@_refusing
def complete_statement(gateway: Gateway, call: Call) -> str:
    """What may stand at a position of a statement."""
    if not call.body.strip():
        raise HttpError(400, "Request did not match expected format: it has no body.")
    statement = call.text("statement")
    position = call.number("position", len(statement))
    return _text({"candidates": gateway.complete(call.session, statement, position, user=call.user)})


# -- operations


@_failing("execute the statement")
def execute_statement(gateway: Gateway, call: Call) -> str:
    """Submits a statement."""
    return _submitted(call, _executing(gateway, call).result())


async def executing(gateway: Gateway, call: Call) -> str:
    """As ``execute_statement``."""
    with _failures("execute the statement"):
        return _submitted(call, await wrap_future(_executing(gateway, call)))


def _submitted(call: Call, handle: str) -> str:
    return _text(call.answer({"operationHandle": handle}))


def _executing(gateway: Gateway, call: Call) -> Future[str]:
    return gateway.executing(
        call.session,
        call.text("statement"),
        call.options("executionConfig"),
        timeout=call.timeout,
        user=call.user,
    )


@_refusing
def operation_status(gateway: Gateway, call: Call) -> str:
    """Where the operation stands. Clients take PENDING for an end: until there is one it runs."""
    status = gateway.operation_info(call.session, call.operation, user=call.user).status
    return _text({"status": (status if status.is_terminal else OperationStatus.RUNNING).value})


@_refusing
def cancel_operation(gateway: Gateway, call: Call) -> str:
    """Stops the operation."""
    return _text({"status": gateway.cancel(call.session, call.operation, user=call.user).value})


@_refusing
def close_operation(gateway: Gateway, call: Call) -> str:
    """Stops the operation and frees its result."""
    gateway.close_operation(call.session, call.operation, user=call.user)
    return _text({"status": "CLOSED"})


def is_light(gateway: Gateway, call: Call) -> bool:
    """Whether to close the operation takes no time."""
    with _refusals():
        found = gateway.sessions.get(call.session, call.user).operations.get(call.operation)
        return found is None or found.is_light


@_failing("fetchResults")
def fetch_results(gateway: Gateway, call: Call) -> str | Binary:
    """The rows of a token, and where the next ones are: JSON, or Arrow's stream format for who accepts it."""
    gateway.wait_rows(call.session, call.operation, call.token, EMPTY_WAIT, user=call.user)
    return fetch_what_is_there(gateway, call)


def operation_of(gateway: Gateway, call: Call) -> Operation:
    """Whose results are wanted."""
    _ = call.session, call.operation, call.token, call.row_format  # what cannot be read is said first
    with _failures("fetchResults"):
        return gateway.operation(call.session, call.operation, call.user)


@_failing("fetchResults")
def fetch_what_is_there(gateway: Gateway, call: Call) -> str | Binary:
    """As ``fetch_results``, without waiting."""
    session, operation, token, row_format = call.session, call.operation, call.token, call.row_format
    page = gateway.fetch(session, operation, token, user=call.user)
    headers = _warnings(page.info) if token == 0 else {}
    if ARROW in call.accept and page.info is not None and page.rows is not None:
        base = f"/v{call.version}/sessions/{session}/operations/{operation}/result"
        return _in_arrow(page, page.info, page.rows, base, headers)
    parts = {"resultType": page.type.value, **_result_facts(page.info)}
    text = _text(call.answer(parts))[:-1]
    if page.info is not None:
        text += f',"results":{_results(page, page.info, row_format, call.is_snake)}'
    if page.next_token is not None:
        text += f",{_next(call, page.next_token)[1:-1]}"
    text += "}"
    return Binary(text.encode(), JSON, headers) if headers else text


def _warnings(info: ResultInfo | None) -> dict[str, str]:
    return {_WARNINGS: json.dumps(info.warnings)} if info is not None and info.warnings else {}


def _in_arrow(
    page: ResultPage, info: ResultInfo, rows: pa.Table, base: str, headers: Mapping[str, str]
) -> Binary:
    facts = {**_result_facts(info), "columns": [_column(field) for field in info.fields]}
    following = {} if page.next_token is None else {"X-Next-Result-Uri": f"{base}/{page.next_token}"}
    return Binary(written(rows, facts), ARROW, {**headers, "X-Result-Type": page.type.value, **following})


def _next(call: Call, token: int) -> str:
    uri = f"/v{call.version}/sessions/{call.session}/operations/{call.operation}/result/{token}"
    if call.version == 1:
        return _text(call.answer({"nextResultUri": uri}))
    format_ = f"{'row_format' if call.is_snake else 'rowFormat'}={call.row_format}"
    return _text(call.answer({"nextResultUri": f"{uri}?{format_}"}))


def _result_facts(info: ResultInfo | None) -> dict[str, Any]:
    if info is None:
        return {}
    job = {"jobID": info.job_id} if info.job_id else {}
    return {"isQueryResult": info.is_query, **job, "resultKind": info.result_kind}


def _results(page: ResultPage, info: ResultInfo, row_format: str, in_snake: bool) -> str:
    columns = _columns(info.fields, row_format, in_snake)
    empty = page.rows is None or page.type is ResultType.EOS
    data = "[]" if empty else rows_json(page.rows, info.fields, row_format, info.zone)
    return f'{columns},"data":{data}}}'


@lru_cache(maxsize=256)
def _columns(fields: tuple[Field, ...], row_format: str, in_snake: bool) -> str:
    """How ``results`` begins: SHOW and its like have the same columns each time."""
    shown = [_column(f) for f in fields]
    if in_snake:
        shown = [{**column, "logical_type": column["logicalType"]} for column in shown]
    formats = {"rowFormat": row_format, **({"row_format": row_format} if in_snake else {})}
    return _text({"columns": shown, **formats})[:-1]


def _column(field: Field) -> dict[str, Any]:
    return {"name": field.name, "logicalType": type_json(field.type), "comment": None}


# -- what belongs to parts of Flink that are not here: each says so as Flink does


@_failing("refresh the materialized table")
def refresh_table(gateway: Gateway, call: Call) -> str:
    """Refreshes a materialized table: there are none."""
    call.fields()
    path = call.parameters["identifier"]

    def work(control: Control) -> Outcome:
        catalog = gateway.catalog(call.session, user=call.user)
        parts = path.replace("`", "").split(".")
        if len(parts) == 3:
            with suppress(ValidationError):
                catalog.columns(ObjectPath(*parts))
                raise NotSupportedError(
                    f"Table '{path}' is not a materialized table, does not support materialized table "
                    "related operation."
                )
        raise ValidationError(f"Cannot find table '{path}' in any of the catalogs {catalog.catalogs()}.")

    return _submitted(call, gateway.submit(call.session, work, user=call.user))


@_failing("deploy the script")
def deploy_script(gateway: Gateway, call: Call) -> str:
    """Deploys a script to a cluster of its own: there are none."""
    gateway.heartbeat(call.session, user=call.user)
    script, uri = call.text("script"), call.text("scriptUri")
    if not script and not uri:
        raise ValidationError("Please specify script content or uri.")
    if script and uri:
        raise ValidationError("Please specify either the script uri or the script content, but not both.")
    raise NotSupportedError(
        "Failed to deploy script to cluster: there is no application mode.",
        hint="Send the script's statements, or run it with 'tidemill run'.",
    )


def no_workflow(gateway: Gateway, call: Call) -> str:
    """Changes a workflow of the embedded scheduler: there are none."""
    call.fields()
    raise HttpError(500, "java.lang.UnsupportedOperationException: There is no embedded scheduler.")


def delete_workflow(gateway: Gateway, call: Call) -> str:
    """Deletes a workflow of the embedded scheduler; one that is gone is fine."""
    call.fields()
    return "{}"
