"""SHOW, DESCRIBE, ALTER, STOP and VERIFY JOB: the INSERTs of this session or of its gateway."""

from __future__ import annotations

from dataclasses import astuple
from typing import Any

from tidemill.config.epoch_options import MAX_BYTES, MAX_ROWS, SMALL
from tidemill.config.execution_options import CHECKPOINT_DIRECTORY, PARALLELISM, SAVEPOINT_DIRECTORY
from tidemill.config.mini_batch_options import MINI_BATCH_SIZE
from tidemill.errors import NotSupportedError, ValidationError
from tidemill.runtime.job.start import InsertsStart
from tidemill.runtime.restarts.job import RestartingJob
from tidemill.session import binding, inserts
from tidemill.session.context import SessionContext
from tidemill.session.jobs.started import StartedJob
from tidemill.session.jobs.verification import verified
from tidemill.session.mode import is_batch
from tidemill.session.result import TableResult, listing, ok
from tidemill.sql import statements as s
from tidemill.types.logical import STRING, Field, LocalZonedTimestampType

_FINDINGS = tuple(Field(name, STRING) for name in ("part", "result", "key", "value"))
_ALTERABLE = frozenset(option.key for option in (PARALLELISM, MAX_ROWS, MAX_BYTES, SMALL, MINI_BATCH_SIZE))
"""Options that a job may have others of from one epoch to the next."""
NamesJob = s.StopJob | s.AlterJob | s.VerifyJob | s.DescribeJob | s.CreateSavepoint
_COLUMNS = (
    Field("job id", STRING),
    Field("job name", STRING),
    Field("status", STRING),
    Field("start time", LocalZonedTimestampType(precision=6)),
)


def show_jobs(statement: s.Show, context: SessionContext) -> TableResult:
    """In the order in which they were started, ended ones too."""
    return listing(_COLUMNS, map(_row, context.jobs.all()))


def describe_job(statement: s.DescribeJob, context: SessionContext) -> TableResult:
    return listing(_COLUMNS, [_row(named_job(statement, context))])


def stop_job(statement: s.StopJob, context: SessionContext) -> TableResult:
    """Returns when the job has stopped, after the epoch it was in; with a savepoint, where that lies."""
    started = named_job(statement, context)
    if not statement.savepoint:
        if statement.drain:
            raise ValidationError(
                "WITH DRAIN could only be used after WITH SAVEPOINT.", position=statement.position
            )
        context.jobs.cancel(started)
        return ok()
    directory = savepoint_directory(statement, context)
    path = context.jobs.stop_with_savepoint(started, directory, drain=statement.drain)
    return listing((Field("savepoint path", STRING),), [(path,)])


def alter_job(statement: s.AlterJob, context: SessionContext) -> TableResult:
    """Returns when the job goes on as the new query, or with other options, after its epoch; if it cannot, it
    goes on as it was."""
    job = altered_job(statement.job_id, statement, context)
    target = statement.target
    if target is None:
        _set(job, statement)
        context.on_altered(job)
    else:
        written = target.inserts if isinstance(target, s.StatementSet) else (target,)
        sinks = [binding.bind_insert(context, insert) for insert in written]
        inserts.alter_job(context, job, sinks, written)
    return ok()


def altered_job(job_id: str, statement: s.Statement, context: SessionContext) -> RestartingJob:
    """The job of that id, which runs and keeps its state; ValidationError for another one."""
    job = job_by_id(job_id, statement, context).job
    if not isinstance(job, RestartingJob) or not job.is_running():
        raise ValidationError(
            f"Job {job.job_id} does not run: it is {job.status}.", position=statement.position
        )
    if not job.directory or is_batch(context):
        raise ValidationError(
            "Only a streaming job that keeps its state can be altered",
            position=statement.position,
            hint=f"Start it with '{CHECKPOINT_DIRECTORY.key}' set, and alter it in a streaming session.",
        )
    return job


def _set(job: RestartingJob, statement: s.AlterJob) -> None:
    for key, _ in statement.options:
        if key not in _ALTERABLE:
            raise NotSupportedError(
                f"ALTER JOB ... SET of '{key}' is not supported",
                position=statement.position,
                expected=tuple(sorted(_ALTERABLE)),
            )
    assert isinstance(job.restart, InsertsStart)
    job.alter(job.restart.with_options(dict(statement.options)))


def verify_job(statement: s.VerifyJob, context: SessionContext) -> TableResult:
    """One row for a part that is equal, else the rows that differ."""
    job = named_job(statement, context).job
    try:
        findings = verified(job, context)
    except ValidationError as e:
        e.position = e.position or statement.position
        raise
    return listing(_FINDINGS, map(astuple, findings))


def savepoint_directory(statement: s.Statement, context: SessionContext) -> str:
    """ValidationError where it is not set."""
    directory = context.configuration.read(SAVEPOINT_DIRECTORY)
    if not directory:
        raise ValidationError(
            f"A savepoint needs a place: '{SAVEPOINT_DIRECTORY.key}' is not set.", position=statement.position
        )
    return directory


def named_job(statement: NamesJob, context: SessionContext) -> StartedJob:
    return job_by_id(statement.job_id, statement, context)


def job_by_id(job_id: str, statement: s.Statement, context: SessionContext) -> StartedJob:
    job = context.jobs.find(job_id)
    if job is None:
        raise ValidationError(
            f"There is no job '{job_id}'.",
            position=statement.position,
            expected=tuple(s.job.job_id for s in context.jobs.all() if s.job.is_running()),
        )
    return job


def _row(started: StartedJob) -> tuple[Any, ...]:
    return started.job.job_id, started.job.name, started.job.status, started.started
