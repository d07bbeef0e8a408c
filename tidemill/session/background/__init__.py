"""Beside the running jobs of a session: audits, and the number of partitions by load."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from tidemill.config.execution_options import CHECKPOINT_DIRECTORY
from tidemill.config.job_options import AUDIT_EVERY, AUTOSCALER_ENABLED, AUTOSCALER_INTERVAL
from tidemill.config.option import Configuration
from tidemill.runtime.restarts.job import RestartingJob
from tidemill.session.background.audit import Auditor
from tidemill.session.background.autoscaler import Autoscaler
from tidemill.session.context import SessionContext

_ENDS: dict[str, threading.Event] = {}
"""By the id of a running job: set when what runs beside the job is to end."""


def accompany(job: RestartingJob, context: SessionContext, config: Configuration) -> None:
    """Starts what the options ``config`` of a job want beside it, in place of what runs there. It ends with
    the job."""
    former = _ENDS.pop(job.job_id, None)
    if former is not None:
        former.set()
    every = config.read(AUDIT_EVERY).seconds
    auditor = Auditor.of(job, context) if every else None
    if auditor is not None:
        _repeat(job, every, lambda _: auditor.act(), "audits")
    if not config.read(AUTOSCALER_ENABLED):
        return
    if not job.directory:
        context.warn(
            f"'{AUTOSCALER_ENABLED.key}' has no effect on job {job.job_id}: "
            f"'{CHECKPOINT_DIRECTORY.key}' is not set."
        )
    else:
        scaler = Autoscaler.of(job)
        _repeat(job, config.read(AUTOSCALER_INTERVAL).seconds, scaler.act, "autoscaler")


def _repeat(job: RestartingJob, every: float, act: Callable[[float], None], what: str) -> None:
    """Calls ``act`` with the seconds since the last call, in a thread, until the job has ended."""

    ends = _ENDS.setdefault(job.job_id, threading.Event())

    def run() -> None:
        begun = time.monotonic()
        while not _ends(job, every) and not ends.is_set():
            now = time.monotonic()
            act(now - begun)
            begun = time.monotonic()
        if not ends.is_set():
            _ENDS.pop(job.job_id, None)

    threading.Thread(target=run, name=f"tidemill-{what}-{job.name}", daemon=True).start()


def _ends(job: RestartingJob, seconds: float) -> bool:
    """Whether the job ends within ``seconds``, in any way."""
    try:
        job.wait(seconds)
    except TimeoutError:
        return not job.is_running()
    except BaseException:
        return True
    return True
