"""``tidemill jobs``, ``stop`` and ``cancel``: jobs from the command line, those of a gateway and those that
this user's ``tidemill run`` and ``tidemill sql`` have started."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterable
from typing import Any

from tidemill.client.gateway_client import GatewayClient
from tidemill.client.own_jobs import OwnJob, own_jobs
from tidemill.config.execution_options import SAVEPOINT_DIRECTORY
from tidemill.errors import ConnectorError, ValidationError

DEFAULT_GATEWAY = "http://127.0.0.1:8083"


def list_jobs(parsed: argparse.Namespace) -> int:
    """One line a job: id, status, start time, name."""
    for job in () if parsed.gateway else own_jobs():
        _show(job.job_id, job.status, job.started, job.name)
    try:
        with GatewayClient(_gateway(parsed)) as client:
            for _, (job_id, name, status, started) in client.execute("SHOW JOBS").rows:
                _show(job_id, status, started, name)
    except ConnectorError:
        if _is_named(parsed):
            raise
    return 0


def stop_job(parsed: argparse.Namespace) -> int:
    """With a savepoint, whose place is printed."""
    own = own_job(parsed)
    if own is not None:
        if not parsed.savepoint_dir:
            raise ValidationError("A savepoint of this job needs a directory: --savepoint-dir.")
        sys.stdout.write(f"{own.stop(parsed.savepoint_dir, drain=parsed.drain)}\n")
        return 0
    drain = " WITH DRAIN" if parsed.drain else ""
    options = {SAVEPOINT_DIRECTORY.key: parsed.savepoint_dir} if parsed.savepoint_dir else {}
    for (path,) in _at_gateway(parsed, f" WITH SAVEPOINT{drain}", options):
        sys.stdout.write(f"{path}\n")
    return 0


def cancel_job(parsed: argparse.Namespace) -> int:
    """Without one; returns when the job has stopped, after its epoch."""
    own = own_job(parsed)
    if own is not None:
        own.cancel()
        return 0
    _at_gateway(parsed, "", {})
    return 0


def _show(job_id: str, status: str, started: str, name: str) -> None:
    sys.stdout.write(f"{job_id}  {status:<10}  {started}  {name}\n")


def own_job(parsed: argparse.Namespace) -> OwnJob | None:
    """A job of another process of this user; None if there is none, or a gateway is named."""
    jobs = [] if parsed.gateway else own_jobs()
    job_id = whole_id(parsed.job_id, [job.job_id for job in jobs])
    return next((job for job in jobs if job.job_id == job_id), None)


def _at_gateway(parsed: argparse.Namespace, how: str, options: dict[str, str]) -> list[list[Any]]:
    """The rows of STOP JOB."""
    with opened(parsed, options) as client:
        ids = [row[0] for _, row in client.execute("SHOW JOBS").rows]
        job_id = whole_id(parsed.job_id, ids).replace("'", "''")
        return [row for _, row in client.execute(f"STOP JOB '{job_id}'{how}").rows]


def opened(parsed: argparse.Namespace, options: dict[str, str]) -> GatewayClient:
    """ConnectorError if the gateway does not answer; if nobody named it, with this user's jobs."""
    try:
        return GatewayClient(_gateway(parsed)).open(options)
    except ConnectorError as e:
        if _is_named(parsed):
            raise
        raise ConnectorError(
            f"No process of this user has a job '{parsed.job_id}'. {e.message}",
            hint="'tidemill jobs' lists running jobs, 'tidemill history' lists ended jobs.",
        ) from e


def whole_id(prefix: str, ids: Iterable[str]) -> str:
    """The only one of ``ids`` that begins with ``prefix``; ``prefix`` itself if no id does. ValidationError
    if several ids do."""
    matching = sorted({job_id for job_id in ids if prefix and job_id.startswith(prefix)})
    if len(matching) > 1 and prefix not in matching:
        raise ValidationError(f"The ids of several jobs begin with '{prefix}'", expected=tuple(matching))
    return matching[0] if len(matching) == 1 else prefix


def _gateway(parsed: argparse.Namespace) -> str:
    return parsed.gateway or os.environ.get("TIDEMILL_GATEWAY", DEFAULT_GATEWAY)


def _is_named(parsed: argparse.Namespace) -> bool:
    """Whether a gateway is named, which then must answer."""
    return bool(parsed.gateway or os.environ.get("TIDEMILL_GATEWAY"))
