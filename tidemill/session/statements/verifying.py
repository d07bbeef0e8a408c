"""VERIFY JOB: what a job has, beside what its query gives over the same rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import astuple, replace
from functools import partial

from tidemill.config.execution_options import CHECKPOINT_DIRECTORY
from tidemill.config.option import Configuration
from tidemill.errors import ValidationError
from tidemill.files.storage import Storage
from tidemill.runtime.checkpoint.directory import CheckpointDirectory
from tidemill.runtime.checkpoint.ownership import undisturbed
from tidemill.runtime.checkpoint.savepoint import Savepoint
from tidemill.runtime.job_start import InsertsStart
from tidemill.runtime.replay.captured import KeptRows
from tidemill.runtime.replay.verify import check_verifiable, compared, copied
from tidemill.runtime.restarts.job import RestartingJob
from tidemill.session import inserts
from tidemill.session.context import SessionContext
from tidemill.session.result import TableResult, listing
from tidemill.session.statements.jobs import found
from tidemill.sql import statements as s
from tidemill.types.logical import STRING, Field

_COLUMNS = tuple(Field(name, STRING) for name in ("part", "result", "key", "value"))


def verify_job(statement: s.VerifyJob, context: SessionContext) -> TableResult:
    """One row for a part that is equal, else the rows that differ. A job that runs waits while the tables of
    its sinks are copied."""
    job = found(statement, context).job
    start = job.restart if isinstance(job, RestartingJob) else None
    if not isinstance(job, RestartingJob) or not isinstance(start, InsertsStart) or not job.directory:
        raise ValidationError(
            f"Job {job.job_id} cannot be verified: its query or its state is not at hand",
            position=statement.position,
            hint=f"Start it, with '{CHECKPOINT_DIRECTORY.key}' set.",
        )
    check_verifiable(start)
    request = start.request
    place = Storage.configured(request.shared.temporary_directory(), request.config, durable=False)
    try:
        copy = partial(copied, start, partial(inserts.table_now, context), place)
        with _after_epoch(job, request.config, copy) as (savepoint, copies):
            rows = [astuple(finding) for finding in compared(start, savepoint, copies, place)]
    finally:
        place.remove_directory("")
    return listing(_COLUMNS, rows)


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
