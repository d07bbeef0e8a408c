"""``tidemill jobs``, ``stop`` and ``cancel``: the jobs of a gateway from the command line."""

from __future__ import annotations

import argparse
import sys

from tidemill.client.gateway_client import GatewayClient
from tidemill.config.execution_options import SAVEPOINT_DIRECTORY


def list_jobs(parsed: argparse.Namespace) -> int:
    """One line a job: id, status, start time, name."""
    with GatewayClient(parsed.gateway) as client:
        for _, (job_id, name, status, started) in client.execute("SHOW JOBS").rows:
            sys.stdout.write(f"{job_id}  {status:<9}  {started}  {name}\n")
    return 0


def stop_job(parsed: argparse.Namespace) -> int:
    """With a savepoint, whose place is printed."""
    drain = " WITH DRAIN" if parsed.drain else ""
    options = {SAVEPOINT_DIRECTORY.key: parsed.savepoint_dir} if parsed.savepoint_dir else {}
    with GatewayClient(parsed.gateway).open(options) as client:
        for _, (path,) in client.execute(f"STOP JOB '{_id(parsed)}' WITH SAVEPOINT{drain}").rows:
            sys.stdout.write(f"{path}\n")
    return 0


def cancel_job(parsed: argparse.Namespace) -> int:
    """Without one; returns when the job has stopped, after its epoch."""
    with GatewayClient(parsed.gateway) as client:
        list(client.execute(f"STOP JOB '{_id(parsed)}'").rows)
    return 0


def _id(parsed: argparse.Namespace) -> str:
    return str(parsed.job_id).replace("'", "''")
