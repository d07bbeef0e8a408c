"""SHOW JOBS, DESCRIBE JOB and STOP JOB: the INSERTs of this session, or of all sessions of its gateway."""

from __future__ import annotations

from typing import Any

from tidemill.errors import NotSupportedError, ValidationError
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
    return listing(_COLUMNS, [_row(_found(statement, context))])


def stop_job(statement: s.StopJob, context: SessionContext) -> TableResult:
    """Returns when the job has stopped, after the epoch it was in."""
    if statement.savepoint or statement.drain:
        raise NotSupportedError(
            "STOP JOB WITH SAVEPOINT or WITH DRAIN is not supported",
            position=statement.position,
            hint="Every epoch is a checkpoint: a job with an execution.checkpointing.dir resumes from there.",
        )
    _found(statement, context).job.cancel()
    return ok()


def _found(statement: s.StopJob | s.DescribeJob, context: SessionContext) -> StartedJob:
    found = context.jobs.find(statement.job_id)
    if found is None:
        raise ValidationError(
            f"There is no job '{statement.job_id}'.",
            position=statement.position,
            expected=tuple(s.job.job_id for s in context.jobs.all() if s.job.is_running()),
        )
    return found


def _row(started: StartedJob) -> tuple[Any, ...]:
    return started.job.job_id, started.job.name, started.job.status, started.started
