"""Records how a job runs, and sends the record when the job has ended, if a listener keeps it."""

from __future__ import annotations

import logging
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from pyspark import SparkContext

from tidemill.runtime.events import JobEnded, JobEvent, PartitionsRead
from tidemill.runtime.job.plan_nodes import PlanNode
from tidemill.runtime.spark.slow_nodes import slow_nodes
from tidemill.runtime.spark.stage_runs import stage_runs, tagged
from tidemill.runtime.stage_runs import OperatorRows, SlowNode, SlowTask, StageRun

_LOGGER = logging.getLogger("tidemill.history")


@dataclass(frozen=True, slots=True)
class Seen:
    """What a running job knows about itself. ``notes``: messages to the user. ``rows_out``: its rows, once
    known."""

    partitions: list[PartitionsRead] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    rows_out: list[int] = field(default_factory=list)
    operators: list[OperatorRows] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class Recording:
    """``begun``: when it was created, in seconds since 1970."""

    context: SparkContext
    job_id: str
    name: str
    mode: str
    tell: Callable[[JobEvent], None]
    plan: tuple[PlanNode, ...] = ()
    statement: str = ""
    options: Mapping[str, str] = field(default_factory=dict)
    seen: Seen = field(default_factory=Seen)
    begun: float = field(default_factory=time.time)
    _tag: str = field(default_factory=lambda: f"tidemill-{uuid.uuid4().hex}")

    @contextmanager
    def running(self) -> Iterator[None]:
        """Spark's work of this thread, within the block, belongs to the job."""
        with tagged(self.context, self._tag, self.name):
            yield

    def end(self, status: str, error: str = "") -> None:
        """Reads what Spark knows of the job. If that fails, the record lacks it: a job never fails for its
        record."""
        try:
            self.tell(self._ended(status, error))
        except Exception:
            _LOGGER.exception("the end of job %s could not be told", self.job_id)

    def _ended(self, status: str, error: str) -> JobEnded:
        ended = time.time()
        stages, slow = self._stages()
        return JobEnded(
            job_id=self.job_id,
            name=self.name,
            mode=self.mode,
            status=status,
            error=error,
            begun=self.begun,
            ended=ended,
            plan=self.plan,
            stages=stages,
            slow=slow,
            partitions=tuple(self.seen.partitions),
            notes=tuple(self.seen.notes),
            slow_nodes=self._slow_nodes(ended),
            statement=self.statement,
            options=self.options,
            rows_out=sum(self.seen.rows_out[-1:]),
            operators=tuple(self.seen.operators),
        )

    def _stages(self) -> tuple[tuple[StageRun, ...], tuple[SlowTask, ...]]:
        try:
            return stage_runs(self.context, self._tag)
        except Exception as e:  # Spark has ended, or is another one: a job does not fail for its history
            _LOGGER.info("the stages of job %s are not known: %s", self.job_id, e)
            return (), ()

    def _slow_nodes(self, ended: float) -> tuple[SlowNode, ...]:
        try:
            return slow_nodes(self.context, self.begun, ended)
        except Exception as e:  # as above
            _LOGGER.info("what hosts job %s was kept from is not known: %s", self.job_id, e)
            return ()
