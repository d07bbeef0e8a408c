"""``tidemill jobs``, ``stop`` and ``cancel``: jobs from the command line, those of a gateway and those that
this user's ``tidemill run`` and ``tidemill sql`` have started."""

from __future__ import annotations

import argparse
import os
import sys

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
    own = _own(parsed)
    if own is not None:
        if not parsed.savepoint_dir:
            raise ValidationError("A savepoint of this job needs a place: --savepoint-dir.")
        sys.stdout.write(f"{own.stop(parsed.savepoint_dir, drain=parsed.drain)}\n")
        return 0
    drain = " WITH DRAIN" if parsed.drain else ""
    options = {SAVEPOINT_DIRECTORY.key: parsed.savepoint_dir} if parsed.savepoint_dir else {}
    with GatewayClient(_gateway(parsed)).open(options) as client:
        for _, (path,) in client.execute(f"STOP JOB '{_id(parsed)}' WITH SAVEPOINT{drain}").rows:
            sys.stdout.write(f"{path}\n")
    return 0


def cancel_job(parsed: argparse.Namespace) -> int:
    """Without one; returns when the job has stopped, after its epoch."""
    own = _own(parsed)
    if own is not None:
        own.cancel()
        return 0
    with GatewayClient(_gateway(parsed)) as client:
        list(client.execute(f"STOP JOB '{_id(parsed)}'").rows)
    return 0


def _show(job_id: str, status: str, started: str, name: str) -> None:
    sys.stdout.write(f"{job_id}  {status:<10}  {started}  {name}\n")


def _own(parsed: argparse.Namespace) -> OwnJob | None:
    """A job of another process of this user's, unless a gateway is asked for."""
    found = [] if parsed.gateway else own_jobs()
    return next((job for job in found if job.job_id == parsed.job_id), None)


def _gateway(parsed: argparse.Namespace) -> str:
    return parsed.gateway or os.environ.get("TIDEMILL_GATEWAY", DEFAULT_GATEWAY)


def _is_named(parsed: argparse.Namespace) -> bool:
    """Whether somebody has said which gateway: it must answer."""
    return bool(parsed.gateway or os.environ.get("TIDEMILL_GATEWAY"))


def _id(parsed: argparse.Namespace) -> str:
    return str(parsed.job_id).replace("'", "''")
