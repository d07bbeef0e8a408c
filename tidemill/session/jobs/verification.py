"""Verifies a job of this session: VERIFY JOB, and audits."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial

from tidemill.config.execution_options import CHECKPOINT_DIRECTORY
from tidemill.config.option import Configuration
from tidemill.errors import ValidationError
from tidemill.files.storage import Storage
from tidemill.runtime.checkpoint.directory import CheckpointDirectory
from tidemill.runtime.checkpoint.ownership import undisturbed
from tidemill.runtime.checkpoint.savepoint import Savepoint
from tidemill.runtime.job.start import InsertsStart
from tidemill.runtime.replay.captured import KeptRows
from tidemill.runtime.replay.verify import Finding, check_verifiable, compared, copied
from tidemill.runtime.restarts.job import RestartingJob
from tidemill.session.context import SessionContext
from tidemill.session.execution import table_now
from tidemill.session.jobs.job import JobHandle


def verifiable(job: JobHandle) -> tuple[RestartingJob, InsertsStart]:
    """The job, and its start. ValidationError or NotSupportedError if it cannot be verified."""
    start = job.restart if isinstance(job, RestartingJob) else None
    if not isinstance(job, RestartingJob) or not isinstance(start, InsertsStart) or not job.directory:
        raise ValidationError(
            f"Job {job.job_id} cannot be verified: its query or its state is not at hand",
            hint=f"Start it, with '{CHECKPOINT_DIRECTORY.key}' set.",
        )
    check_verifiable(start)
    return job, start


def verified(job: JobHandle, context: SessionContext) -> list[Finding]:
    """What ``compared`` finds. A running job waits while the tables of its sinks are copied. StateError
    if a part of the history is gone."""
    job, start = verifiable(job)
    request = start.request
    place = Storage.configured(request.shared.temporary_directory(), request.config, durable=False)
    try:
        copy = partial(copied, start, partial(table_now, context), place)
        with _after_epoch(job, request.config, copy) as (savepoint, copies):
            return list(compared(start, savepoint, copies, place))
    finally:
        place.remove_directory("")


@contextmanager
def _after_epoch(
    job: RestartingJob, config: Configuration, copy: Callable[[], list[KeptRows | str]]
) -> Iterator[tuple[Savepoint, list[KeptRows | str]]]:
    """The job's records after its last epoch, whose files stay meanwhile, and a copy of its sinks then."""
    storage = Storage.configured(job.directory, config)
    if not job.is_running():
        with undisturbed(storage):
            savepoint = Savepoint.open(storage)
            CheckpointDirectory(storage).check_published(savepoint.commit)
            yield savepoint, copy()
        return
    held = job.rest()
    try:
        # Nothing of the directory changes before the job goes on.
        savepoint = replace(Savepoint.open(storage), commit=held.commit)
        copies = copy()
        held.rested.set()
        yield savepoint, copies
    finally:
        held.rested.set()
        held.release()
