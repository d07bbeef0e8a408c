"""SHOW JOBS and STOP JOB: the INSERTs that this session, or any session of its gateway, has started."""

from __future__ import annotations

from tidemill.errors import NotSupportedError, ValidationError
from tidemill.session.context import SessionContext
from tidemill.session.result import TableResult, listing, ok
from tidemill.sql import statements as s
from tidemill.types.logical import STRING, Field, LocalZonedTimestampType

_COLUMNS = (
    Field("job id", STRING),
    Field("job name", STRING),
    Field("status", STRING),
    Field("start time", LocalZonedTimestampType(precision=3)),
)


def show_jobs(statement: s.Show, context: SessionContext) -> TableResult:
    """In the order in which they were started, ended ones too."""
    rows = [(s.job.job_id, s.job.name, s.job.status, s.started) for s in context.jobs.all()]
    return listing(_COLUMNS, rows)


def stop_job(statement: s.StopJob, context: SessionContext) -> TableResult:
    """Returns when the job has stopped, after the epoch it was in."""
    if statement.savepoint or statement.drain:
        raise NotSupportedError(
            "STOP JOB WITH SAVEPOINT or WITH DRAIN is not supported",
            position=statement.position,
            hint="Every epoch is a checkpoint: a job with an execution.checkpointing.dir resumes from there.",
        )
    found = context.jobs.find(statement.job_id)
    if found is None:
        raise ValidationError(
            f"There is no job '{statement.job_id}'.",
            position=statement.position,
            expected=tuple(s.job.job_id for s in context.jobs.all() if s.job.is_running()),
        )
    found.job.cancel()
    return ok()
