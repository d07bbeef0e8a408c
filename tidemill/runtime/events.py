"""The events of a job, for people and metrics: it began, it resumed, an epoch began, it ended."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tidemill.runtime.job.plan_nodes import PlanNode
    from tidemill.runtime.stage_runs import OperatorRows, SlowNode, SlowTask, StageRun


@dataclass(frozen=True, slots=True, kw_only=True)
class JobBegun:
    """A job is about to run, with this plan. ``statement`` and ``options`` contain no secrets.
    ``directory``: its checkpoint directory, or '' if the checkpoint is temporary."""

    job_id: str
    name: str
    plan: tuple[PlanNode, ...]
    statement: str = ""
    options: Mapping[str, str] = field(default_factory=dict)
    directory: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobResumed:
    """A job found its records, and continues after ``epoch``."""

    job_id: str
    epoch: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SavepointWritten:
    """A savepoint of a job lies at ``path``; ``at``: in seconds since 1970."""

    job_id: str
    path: str
    at: float


@dataclass(frozen=True, slots=True)
class SoFar:
    """The current epoch: the tasks of its running stages, and the rows that ended tasks of operators took."""

    tasks_done: int
    tasks: int
    rows: int


@dataclass(frozen=True, slots=True, kw_only=True)
class EpochBegun:
    """``so_far`` may be called while the epoch runs."""

    job_id: str
    epoch: int
    so_far: Callable[[], SoFar]


@dataclass(frozen=True, slots=True, kw_only=True)
class JobFailed:
    """A job failed for a reason outside of its query. ``wait``: the seconds until it restarts; None if it
    has failed too often, and has ended."""

    job_id: str
    error: str
    wait: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionsRead:
    """An ended batch job read so many partitions of ``table``, of those that exist."""

    job_id: str
    table: str
    read: int
    of: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ExchangesBlocked:
    """A batch job should have had pipelined exchanges, but has blocking exchanges, for this reason."""

    job_id: str
    reason: str

    @property
    def text(self) -> str:
        return f"Exchanges of {self.job_id} are blocking: {self.reason}."


@dataclass(frozen=True, slots=True, kw_only=True)
class JobEnded:
    """A run of a job has ended: FINISHED, CANCELED, or FAILED with ``error``.

    ``mode``: batch or streaming. Times are in seconds since 1970. ``notes``: the messages to the user.
    ``rows_out``: the rows of a batch job. Only sent if a listener keeps it.
    """

    job_id: str
    name: str
    mode: str
    status: str
    error: str
    begun: float
    ended: float
    plan: tuple[PlanNode, ...]
    stages: tuple[StageRun, ...]
    slow: tuple[SlowTask, ...]
    partitions: tuple[PartitionsRead, ...]
    slow_nodes: tuple[SlowNode, ...] = ()
    notes: tuple[str, ...] = ()
    statement: str = ""
    options: Mapping[str, str] = field(default_factory=dict)
    rows_out: int = 0
    operators: tuple[OperatorRows, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class StateTakenOver:
    """A job begins with the state of another query; ``changes`` as EXPLAIN EVOLUTION has them."""

    job_id: str
    changes: tuple[str, ...]

    @property
    def text(self) -> str:
        return f"Another query has left the state that this one takes over: {'; '.join(self.changes)}."


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionsChanged:
    """A job takes up state that functions of other code have made."""

    job_id: str
    functions: tuple[str, ...]

    @property
    def text(self) -> str:
        names = ", ".join(self.functions)
        return (
            f"The code of {names} is another one than when the state was made: results before and after may "
            "differ. Give a function whose meaning changed another version."
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class JobAudited:
    """A job was verified beside its run. ``differences``: the rows that differ; ``first``: one of them as
    text; ``error``: why it could not be verified now."""

    job_id: str
    differences: int = 0
    first: str = ""
    error: str = ""

    @property
    def text(self) -> str:
        """A warning; '' if all rows are equal."""
        if self.error:
            return f"Job {self.job_id} could not be audited: {self.error}."
        if not self.differences:
            return ""
        return (
            f"An audit of job {self.job_id} found {self.differences} rows that differ, such as {self.first}. "
            f"VERIFY JOB '{self.job_id}' shows all."
        )


JobEvent = (
    JobBegun
    | JobResumed
    | EpochBegun
    | JobFailed
    | SavepointWritten
    | PartitionsRead
    | ExchangesBlocked
    | FunctionsChanged
    | StateTakenOver
    | JobAudited
    | JobEnded
)


def unheard(event: JobEvent) -> None:
    """The listener that ignores all events."""
