"""The console's API beyond Flink's protocol, under ``/console/api``: users, sessions, jobs, names for
completion.

Each user sees only his own sessions and jobs. Numbers that may have more digits than a browser's are texts.
"""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Mapping
from importlib.metadata import version
from typing import Any

from tidemill.catalog.table import Column, ObjectPath
from tidemill.config.secrets import masked
from tidemill.errors import SqlSyntaxError, TidemillError
from tidemill.gateway.api import OperationInfo, SessionInfo
from tidemill.gateway.endpoints.rest.call import Call
from tidemill.gateway.endpoints.rest.errors import HttpError
from tidemill.gateway.endpoints.rest.handlers import Handler, complete_statement
from tidemill.gateway.endpoints.rest.lineage import Flow, lineage
from tidemill.gateway.service.service import Gateway
from tidemill.runtime.events import EpochBegun
from tidemill.runtime.job.plan_nodes import PlanNode, PlanRole
from tidemill.runtime.progress import EpochProgress
from tidemill.session.history.watch import Failure, JobLook, NodeTotals
from tidemill.session.jobs.job import EndedJob, JobHandle
from tidemill.session.jobs.started import StartedJob
from tidemill.sql.redaction import redacted_statement
from tidemill.sql.splitter import Piece, split

Json = dict[str, Any]
_LAST, _MOST = 50, 1000
_IN_LINEAGE = 200
"""The most ended jobs in the lineage; each is a file to read."""
_OF_THE_GATEWAY = ("tidemill.gateway.", "sql-gateway.", "rest.server.")
_BEGINNING = 200
"""Characters of a statement in a list, for the search."""
_IN_LIST = ("id", "name", "mode", "status", "error", "begun", "ended")


def hello(gateway: Gateway, call: Call) -> str:
    """The user, the gateway's version, and ``sql``: whether the gateway runs statements."""
    runs = gateway.new_session is not None
    return json.dumps({"user": call.user, "version": version("tidemill"), "sql": runs})


def split_script(gateway: Gateway, call: Call) -> str:
    """The statements of a script, each with its position and with a text with masked secrets."""
    script = call.text("script")
    try:
        return json.dumps({"statements": [_piece(piece) for piece in split(script)]})
    except SqlSyntaxError as e:
        raise HttpError(400, str(e), cause=e) from e


def sessions(gateway: Gateway, call: Call) -> str:
    """The user's sessions with their operations, newest first."""
    newest_first = sorted(gateway.list_sessions(user=call.user), key=lambda s: s.opened, reverse=True)
    return json.dumps({"sessions": [_session(s) for s in newest_first]})


def jobs(gateway: Gateway, call: Call) -> str:
    """The user's jobs, newest first, without queries, which are operations of sessions."""
    watch = gateway.watch(call.user)
    own = [s for s in gateway.jobs(call.user).all() if not s.query]
    started = sorted(own, key=lambda s: s.started, reverse=True)
    return json.dumps({"jobs": [_job(s) | _brief(watch.look(s.job.job_id)) for s in started]})


def job(gateway: Gateway, call: Call) -> str:
    """One job or query: its plan with the counts of each node, and its last epochs."""
    job_id = call.parameters["job_id"]
    started, look = gateway.jobs(call.user).find(job_id), gateway.watch(call.user).look(job_id)
    if started is None and look is None:
        raise HttpError(404, f"There is no job '{job_id[:64]}'.")
    facts = {"id": job_id, "status": "", "error": ""} if started is None else _job(started)
    return json.dumps(facts | _brief(look) | _whole(look or JobLook(), facts["status"]))


def stop_job(gateway: Gateway, call: Call) -> str:
    """Stops a job after its current epoch, or at once with ``now``. With ``savepointDirectory`` it answers
    once the savepoint is written."""
    job_id = call.parameters["job_id"]
    jobs = gateway.jobs(call.user)
    started = jobs.find(job_id)
    if started is None:
        raise HttpError(404, f"There is no job '{job_id[:64]}'.")
    directory = call.text("savepointDirectory")
    try:
        if directory:
            gateway.permissions(call.user).check_place(directory, "'savepointDirectory'")
            drain = call.fields().get("drain") is True
            return json.dumps({"savepoint": jobs.stop_with_savepoint(started, directory, drain=drain)})
        if call.fields().get("now") is True:
            started.job.abort()
        else:
            started.job.stop()
    except TidemillError as e:
        raise HttpError(500, masked(str(e))) from e
    return "{}"


def make_savepoint(gateway: Gateway, call: Call) -> str:
    """Writes a savepoint of a running job below ``savepointDirectory``; answers once it is written."""
    job_id, directory = call.parameters["job_id"], call.text("savepointDirectory")
    jobs = gateway.jobs(call.user)
    started = jobs.find(job_id)
    if started is None:
        raise HttpError(404, f"There is no job '{job_id[:64]}'.")
    if not directory:
        raise HttpError(400, "'savepointDirectory' is missing.")
    try:
        gateway.permissions(call.user).check_place(directory, "'savepointDirectory'")
        return json.dumps({"savepoint": jobs.create_savepoint(started, directory, "")})
    except TidemillError as e:
        raise HttpError(500, masked(str(e))) from e


def history(gateway: Gateway, call: Call) -> str:
    """Summaries of the ``last`` ended jobs of the user, newest first."""
    try:
        last = int(call.query.get("last", "") or _LAST)
    except ValueError as e:
        raise HttpError(400, "'last' is not a whole number.") from e
    records = gateway.records(call.user).last(min(max(last, 0), _MOST))
    return json.dumps({"jobs": [_listed(record) for record in records]})


def _listed(record: Json) -> Json:
    """A summary. Records of earlier versions lack the statement, and for batch jobs the counts: they are
    null."""
    counted = "statement" in record or record["mode"] != "batch"
    counts = {key: str(record.get(key, 0)) if counted else None for key in ("rows_in", "rows_out")}
    statement = record.get("statement", "")[:_BEGINNING]
    return {**{key: record[key] for key in _IN_LIST}, **counts, "statement": statement}


def past_job(gateway: Gateway, call: Call) -> str:
    """The record of the last run of a job."""
    job_id = call.parameters["job_id"]
    record = gateway.records(call.user).find(job_id)
    if record is None:
        raise HttpError(404, f"There is no history of a job '{job_id[:64]}'.")
    return json.dumps(record | {"options": _chosen(record.get("options", {}))})


def tables_and_jobs(gateway: Gateway, call: Call) -> str:
    """The tables that the user's running and ended jobs read and write."""
    watch = gateway.watch(call.user)
    own = sorted(gateway.jobs(call.user).all(), key=lambda s: s.started, reverse=True)
    flows = [_flow(s.job, watch.look(s.job.job_id)) for s in own if not s.query]
    running_ids = {flow.job_id for flow in flows}
    past = [
        record for record in gateway.records(call.user).last(_IN_LINEAGE) if record["id"] not in running_ids
    ]
    return json.dumps(lineage([*flows, *map(_past_flow, past)]))


def _flow(job: JobHandle, look: JobLook | None) -> Flow:
    plan = [] if look is None else [(node.role.value, node.table) for node in look.plan]
    return Flow.of(job.job_id, job.name, job.status, plan, past=False)


def _past_flow(record: Json) -> Flow:
    plan = [(node["role"], node.get("table", "")) for node in record.get("plan", ())]
    return Flow.of(record["id"], record["name"], record["status"], plan, past=True)


def names(gateway: Gateway, call: Call) -> str:
    """The session's names, one level per call: the catalogs; the databases of a ``catalog``; the tables of a
    ``database``; the columns of a ``table``."""
    levels = [call.query.get(level, "") for level in ("catalog", "database", "table")]
    try:
        return json.dumps(_names(gateway, call, *levels))
    except TidemillError as e:
        raise HttpError(400, str(e)) from e


def _names(gateway: Gateway, call: Call, catalog: str, database: str, table: str) -> Json:
    session_catalog = gateway.catalog(call.session, user=call.user)
    if table:
        path = ObjectPath(catalog, database, table)
        key = session_catalog.primary_key(path)
        columns = session_catalog.columns(path)
        return {"columns": [_column(c, is_key=c.name in key) for c in columns]}
    if database:
        table_infos = session_catalog.tables(catalog, database)
        tables = [{"name": t.path.name, "view": t.is_view, "comment": t.comment} for t in table_infos]
        return {"tables": tables}
    if catalog:
        return {"databases": session_catalog.databases(catalog)}
    current, current_database = session_catalog.current
    return {"catalogs": session_catalog.catalogs(), "current": current, "database": current_database}


API = "/console/api"
HANDLERS: Mapping[tuple[str, str], Handler] = {
    ("GET", "/hello"): hello,
    ("POST", "/split"): split_script,
    ("GET", "/sessions"): sessions,
    ("GET", "/sessions/{session_handle}/names"): names,
    ("POST", "/sessions/{session_handle}/complete"): complete_statement,
    ("GET", "/jobs"): jobs,
    ("GET", "/jobs/{job_id}"): job,
    ("POST", "/jobs/{job_id}/stop"): stop_job,
    ("POST", "/jobs/{job_id}/savepoint"): make_savepoint,
    ("GET", "/lineage"): tables_and_jobs,
    ("GET", "/history"): history,
    ("GET", "/history/{job_id}"): past_job,
}
"""Handlers by method and path below ``API``. Completion is a POST, because a browser's GET has no body."""


def _column(column: Column, *, is_key: bool) -> Json:
    return {"name": column.name, "type": str(column.type), "key": is_key, "comment": column.comment}


def _piece(piece: Piece) -> Json:
    return {
        "text": piece.text,
        "shown": redacted_statement(piece.text),
        "line": piece.position.line,
        "column": piece.position.column,
    }


def _session(session: SessionInfo) -> Json:
    return {
        "handle": session.handle,
        "name": session.name,
        "opened": _millis(session.opened),
        "used": _millis(session.last_used),
        "operations": [_operation(o) for o in reversed(session.operations)],
    }


def _operation(operation: OperationInfo) -> Json:
    return {
        "handle": operation.handle,
        "status": operation.status.value,
        "submitted": _millis(operation.submitted),
        "statement": operation.statement,
        "job": operation.job_id,
        "error": "" if operation.error is None else masked(str(operation.error)),
    }


def _job(started: StartedJob) -> Json:
    handle = started.job
    error = handle.error if isinstance(handle, EndedJob) else ""
    return {
        "id": handle.job_id,
        "name": handle.name,
        "status": handle.status,
        "started": _millis(started.started),
        "error": masked(error),
    }


def _brief(look: JobLook | None) -> Json:
    if look is None:
        return {"epochsDone": 0, "rowsIn": "0", "rowsOut": "0", "late": "0"}
    last = look.epochs[-1:]
    return {
        "epochsDone": look.epochs_done,
        "rowsIn": str(look.rows_in),
        "rowsOut": str(look.rows_out),
        "late": str(look.late),
        "last": _epoch(last[0]) if last else None,
    }


def _whole(look: JobLook, status: str) -> Json:
    """The details of a job. The current epoch is shown only while the job runs: a failure ends it."""
    runs = status in ("", "RUNNING")
    return {
        "statement": look.statement,
        "options": _chosen(look.options),
        "directory": look.directory,
        "savepoints": [{"path": s.path, "at": int(s.at * 1000)} for s in look.savepoints],
        "plan": [_node(node, look.nodes.get(node.id)) for node in look.plan],
        "epochs": [_epoch(epoch) for epoch in look.epochs],
        "resumed": look.resumed,
        "failures": [_failure(failure) for failure in look.failures],
        "running": None if look.running is None or not runs else _running(look.running),
    }


def _chosen(options: Mapping[str, str]) -> dict[str, str]:
    """The options of the job, without those of the gateway."""
    return {key: value for key, value in sorted(options.items()) if not key.startswith(_OF_THE_GATEWAY)}


def _failure(failure: Failure) -> Json:
    """A failure. ``wait``: seconds until the job was restarted, null if it was not."""
    return {
        "at": int(failure.at * 1000),
        "error": masked(failure.event.error),
        "wait": failure.event.wait,
    }


def _node(node: PlanNode, totals: NodeTotals | None) -> Json:
    counts = totals or NodeTotals()
    return {
        "id": node.id,
        "role": node.role.value,
        "name": node.name,
        "detail": node.detail,
        "inputs": node.inputs,
        "rowsIn": None if totals is None and node.role is PlanRole.SOURCE else str(counts.rows_in),
        "rowsOut": str(counts.rows_out),
        "late": str(counts.late),
        "largestKey": counts.largest_key,
        "partitions": [rows for _, rows in sorted(counts.partitions.items(), key=lambda p: int(p[0]))],
        "skew": counts.skew,
        "table": node.table,
        "stateRows": str(counts.state_rows),
        "stateBytes": counts.state_bytes,
    }


def _epoch(epoch: EpochProgress) -> Json:
    """Counts of one epoch have few enough digits for a browser's numbers."""
    return {
        "epoch": epoch.epoch,
        "time": epoch.time,
        "rowsIn": epoch.rows_in,
        "rowsOut": epoch.rows_out,
        "seconds": epoch.seconds,
        "late": epoch.late,
        "stateRows": epoch.state_rows,
        "stateBytes": epoch.state_bytes,
        "watermark": epoch.watermark,
        "behind": epoch.behind,
    }


def _running(epoch: EpochBegun) -> Json:
    return {"epoch": epoch.epoch}


def _millis(time: dt.datetime) -> int:
    return int(time.timestamp() * 1000)
