"""Chooses a job's number of partitions by its load.

A job that spends more than the target of its time in epochs gets more partitions, in proportion::

    2 partitions, 95 % of the time in epochs, target 70 %: ceil(2 * 0.95 / 0.7) = 3

If a job then reads no more rows per second of its epochs than before, the partitions are taken back until its
load has fallen. A job that spends less than a third of the target in epochs gets half of its partitions: each
partition costs every epoch a task.
"""

from __future__ import annotations

import logging
import math
from dataclasses import dataclass, field

from tidemill.config import job_options
from tidemill.config.execution_options import PARALLELISM
from tidemill.errors import TidemillError
from tidemill.runtime.job.request import parallelism
from tidemill.runtime.job.start import InsertsStart
from tidemill.runtime.progress import EpochProgress
from tidemill.runtime.restarts.job import RestartingJob
from tidemill.state.slices import KEY_GROUPS

_LOGGER = logging.getLogger("tidemill")
_GAIN = 1.1
"""More partitions are kept if the rows per second of an epoch are this many times the rows before."""
_QUIET = 1 / 3
"""The part of the target below which partitions are removed."""


@dataclass(frozen=True, slots=True)
class Load:
    """What a job did in ``wall`` seconds; ``busy``: the seconds of its epochs."""

    rows: int
    busy: float
    wall: float

    @property
    def utilization(self) -> float:
        return self.busy / self.wall if self.wall > 0 else 0.0

    @property
    def rate(self) -> float:
        """Rows per second of the epochs."""
        return self.rows / self.busy if self.busy > 0 else 0.0


@dataclass(slots=True, kw_only=True)
class Policy:
    """Partitions between ``least`` and ``most``. ``target``: the part of its time that a job should spend in
    epochs."""

    least: int
    most: int
    target: float
    _ceiling: int = KEY_GROUPS
    _before: tuple[int, float] | None = None
    """Partitions and rate before partitions were added."""

    def choose(self, partitions: int, load: Load) -> int:
        """The partitions from now on."""
        before, self._before = self._before, None
        if load.utilization > self.target:
            if before is not None and load.rate < _GAIN * before[1]:
                self._ceiling = before[0]
                return self._within(before[0])
            wanted = self._within(math.ceil(partitions * load.utilization / self.target))
            if wanted > partitions:
                self._before = partitions, load.rate
            return wanted
        if load.utilization < _QUIET * self.target:
            self._ceiling = KEY_GROUPS
            return self._within(partitions // 2)
        return self._within(partitions)

    def _within(self, partitions: int) -> int:
        return max(self.least, min(partitions, self.most, self._ceiling))


@dataclass(slots=True)
class Autoscaler:
    """Of one job. ``hear`` is told of each epoch by the job's thread; ``act`` is called once per interval."""

    job: RestartingJob
    policy: Policy
    _epochs: list[tuple[int, float]] = field(default_factory=list)

    @classmethod
    def of(cls, job: RestartingJob) -> Autoscaler:
        start = job.restart
        assert isinstance(start, InsertsStart)
        config = start.request.config
        cores = start.request.application.sparkContext.defaultParallelism
        policy = Policy(
            least=config.read(job_options.AUTOSCALER_LEAST),
            most=min(config.read(job_options.AUTOSCALER_MOST) or cores, KEY_GROUPS),
            target=config.read(job_options.AUTOSCALER_TARGET),
        )
        made = cls(job, policy)
        job.listen(made.hear)
        return made

    def hear(self, progress: EpochProgress) -> None:
        self._epochs.append((progress.rows_in, progress.seconds))

    def act(self, seconds: float) -> None:
        """Alters the job, if it should have another number of partitions; ``seconds``: since the last call. A
        job that cannot be altered now is looked at again later."""
        epochs, self._epochs = self._epochs, []
        start = self.job.restart
        assert isinstance(start, InsertsStart)
        load = Load(sum(rows for rows, _ in epochs), sum(busy for _, busy in epochs), seconds)
        now = parallelism(start.request)
        wanted = self.policy.choose(now, load)
        if wanted == now:
            return
        try:
            self.job.alter(start.with_options({PARALLELISM.key: str(wanted)}))
        except TidemillError as e:
            _LOGGER.warning("Job %s keeps %d partitions: %s", self.job.job_id, now, e.message)
        else:
            _LOGGER.info(
                "Job %s has %d partitions now, and had %d: it spent %.0f %% of its time in epochs.",
                *(self.job.job_id, wanted, now, 100 * load.utilization),
            )
