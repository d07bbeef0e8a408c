"""What the jobs of one user do: their plans, what each node of a plan has done, their last epochs.

Told by the jobs' own threads, asked by anybody; a look gives what does not change any more. Bounded: of each
job the last ``EPOCHS`` epochs and ``FAILURES`` failures, of all jobs those that did something last.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from tidemill.runtime.events import (
    EpochBegun,
    ExchangesBlocked,
    JobBegun,
    JobEnded,
    JobEvent,
    JobFailed,
    JobResumed,
    PartitionsRead,
    SavepointWritten,
)
from tidemill.runtime.job.plan_nodes import PlanNode
from tidemill.runtime.progress import EpochProgress, NodeProgress

EPOCHS = 300
JOBS = 200
FAILURES = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeTotals:
    """Rows and late rows since the gateway has seen the job, ``partitions``: the rows of each; the state of
    the partitions touched last; the largest key of the last epoch that had rows."""

    rows_in: int = 0
    rows_out: int = 0
    late: int = 0
    state_rows: int = 0
    state_bytes: int = 0
    largest_key: int = 0
    partitions: Mapping[str, int] = field(default_factory=dict)

    @property
    def skew(self) -> float:
        """The rows of the fullest partition, relative to the average partition; 0 without rows."""
        if not self.partitions:
            return 0.0
        return max(self.partitions.values()) * len(self.partitions) / max(sum(self.partitions.values()), 1)

    def after(self, epoch: NodeProgress) -> NodeTotals:
        """The totals after another epoch. A node that the epoch does not touch keeps its state sizes."""
        touched = epoch if epoch.state_bytes else self
        return NodeTotals(
            rows_in=self.rows_in + epoch.rows_in,
            rows_out=self.rows_out + epoch.rows_out,
            late=self.late + epoch.late,
            state_rows=touched.state_rows,
            state_bytes=touched.state_bytes,
            largest_key=epoch.largest_key or self.largest_key,
            partitions={
                **self.partitions,
                **{key: self.partitions.get(key, 0) + rows for key, rows in epoch.partitions.items()},
            },
        )


@dataclass(frozen=True, slots=True)
class Failure:
    """``at``: in seconds since 1970."""

    at: float
    event: JobFailed


@dataclass(frozen=True, slots=True, kw_only=True)
class JobLook:
    """A view of a job at one time. ``running``: the current epoch. ``rows_in``, ``rows_out`` and ``late``
    count all ``epochs_done``; ``epochs`` has only the last ones, without their nodes. ``resumed``: the epoch
    after which the job resumed, None if it started without a checkpoint. ``statement`` to ``directory``: as
    in JobBegun."""

    name: str = ""
    statement: str = ""
    options: Mapping[str, str] = field(default_factory=dict)
    directory: str = ""
    plan: tuple[PlanNode, ...] = ()
    nodes: Mapping[str, NodeTotals] = field(default_factory=dict)
    epochs: tuple[EpochProgress, ...] = ()
    epochs_done: int = 0
    rows_in: int = 0
    rows_out: int = 0
    late: int = 0
    resumed: int | None = None
    running: EpochBegun | None = None
    failures: tuple[Failure, ...] = ()
    savepoints: tuple[SavepointWritten, ...] = ()


@dataclass(slots=True)
class _Job:
    name: str = ""
    statement: str = ""
    options: Mapping[str, str] = field(default_factory=dict)
    directory: str = ""
    plan: tuple[PlanNode, ...] = ()
    nodes: dict[str, NodeTotals] = field(default_factory=dict)
    epochs: deque[EpochProgress] = field(default_factory=lambda: deque(maxlen=EPOCHS))
    done: int = 0
    rows_in: int = 0
    rows_out: int = 0
    late: int = 0
    resumed: int | None = None
    running: EpochBegun | None = None
    failures: deque[Failure] = field(default_factory=lambda: deque(maxlen=FAILURES))
    savepoints: deque[SavepointWritten] = field(default_factory=lambda: deque(maxlen=FAILURES))
    changes: int = 0

    def begin(self, event: JobBegun) -> None:
        self.name, self.plan, self.running = event.name, event.plan, None
        self.statement, self.options, self.directory = event.statement, event.options, event.directory

    def add(self, epoch: EpochProgress) -> None:
        self.done += 1
        self.changes += 1
        self.rows_in += epoch.rows_in
        self.rows_out += epoch.rows_out
        self.late += epoch.late
        self.running = None
        self.epochs.append(replace(epoch, nodes={}))
        for key, progress in epoch.nodes.items():
            self.nodes[key] = self.nodes.get(key, NodeTotals()).after(progress)

    def look(self) -> JobLook:
        return JobLook(
            name=self.name,
            statement=self.statement,
            options=self.options,
            directory=self.directory,
            plan=self.plan,
            nodes=dict(self.nodes),
            epochs=tuple(self.epochs),
            epochs_done=self.done,
            rows_in=self.rows_in,
            rows_out=self.rows_out,
            late=self.late,
            resumed=self.resumed,
            running=self.running,
            failures=tuple(self.failures),
            savepoints=tuple(self.savepoints),
        )


@dataclass(slots=True)
class JobWatch:
    """Collects the events and epochs of jobs. ``clock``: seconds since 1970."""

    clock: Callable[[], float] = time.time
    _jobs: OrderedDict[str, _Job] = field(default_factory=OrderedDict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def event(self, event: JobEvent) -> None:
        if isinstance(event, PartitionsRead | ExchangesBlocked):
            return  # of a batch statement, which is no job here
        with self._lock:
            if isinstance(event, JobEnded) and event.job_id not in self._jobs:
                return
            job = self._job(event.job_id)
            job.changes += 1
            match event:
                case JobBegun():
                    job.begin(event)
                case JobResumed():
                    job.resumed = event.epoch
                case EpochBegun():
                    job.running = event
                case JobFailed():
                    job.running = None
                    job.failures.append(Failure(self.clock(), event))
                case SavepointWritten():
                    job.savepoints.append(event)
                case JobEnded():
                    job.running = None

    def epoch(self, progress: EpochProgress) -> None:
        with self._lock:
            self._job(progress.job_id).add(progress)

    def changes(self, job_id: str) -> int:
        """The number of epochs and events of a job so far; 0 for an unknown job."""
        with self._lock:
            job = self._jobs.get(job_id)
            return 0 if job is None else job.changes

    def put_back(self, job_id: str, look: JobLook) -> None:
        """Restores the view that an earlier process had of a job."""
        with self._lock:
            job = self._job(job_id)
            job.name, job.plan, job.nodes = look.name, look.plan, dict(look.nodes)
            job.statement, job.options, job.directory = look.statement, look.options, look.directory
            job.savepoints.extend(look.savepoints)
            job.epochs.extend(look.epochs)
            job.failures.extend(look.failures)
            job.done, job.resumed = look.epochs_done, look.resumed
            job.rows_in, job.rows_out, job.late = look.rows_in, look.rows_out, look.late

    def look(self, job_id: str) -> JobLook | None:
        """The current view of a job; None for an unknown job."""
        with self._lock:
            job = self._jobs.get(job_id)
            return None if job is None else job.look()

    def _job(self, job_id: str) -> _Job:
        job = self._jobs.setdefault(job_id, _Job())
        self._jobs.move_to_end(job_id)
        if len(self._jobs) > JOBS:
            self._jobs.popitem(last=False)
        return job
