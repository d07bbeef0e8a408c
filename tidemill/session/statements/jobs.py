"""SHOW JOBS, DESCRIBE JOB and STOP JOB: the INSERTs of this session, or of all sessions of its gateway."""

from __future__ import annotations

from typing import Any

from tidemill.config.execution_options import SAVEPOINT_DIRECTORY
from tidemill.errors import ValidationError
from tidemill.session.context import SessionContext
from tidemill.session.jobs import StartedJob
from tidemill.session.result import TableResult, listing, ok
from tidemill.sql import statements as s
from tidemill.types.logical import STRING, Field, LocalZonedTimestampType

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
    return listing(_COLUMNS, [_row(found(statement, context))])


def stop_job(statement: s.StopJob, context: SessionContext) -> TableResult:
    """Returns when the job has stopped, after the epoch it was in; with a savepoint, where that lies."""
    started = found(statement, context)
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


def savepoint_directory(statement: s.Statement, context: SessionContext) -> str:
    """ValidationError where it is not set."""
    directory = context.configuration.read(SAVEPOINT_DIRECTORY)
    if not directory:
        raise ValidationError(
            f"A savepoint needs a place: '{SAVEPOINT_DIRECTORY.key}' is not set.", position=statement.position
        )
    return directory


def found(statement: s.StopJob | s.DescribeJob | s.CreateSavepoint, context: SessionContext) -> StartedJob:
    job = context.jobs.find(statement.job_id)
    if job is None:
        raise ValidationError(
            f"There is no job '{statement.job_id}'.",
            position=statement.position,
            expected=tuple(s.job.job_id for s in context.jobs.all() if s.job.is_running()),
        )
    return job


def _row(started: StartedJob) -> tuple[Any, ...]:
    return started.job.job_id, started.job.name, started.job.status, started.started
