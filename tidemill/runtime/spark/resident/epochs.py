"""Decides for each epoch of a job whether it runs in resident workers, and handles failures.

An epoch runs there unless it is very large or something else needs the slots. If it fails for any reason, the
job forgets it: no commit names the files of its tasks. The caller runs the epoch as a Spark job and reports
the errors of that job.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial

from pyspark import SparkContext
from pyspark.sql import SparkSession

from tidemill.config.epoch_options import RESIDENT
from tidemill.config.option import Configuration
from tidemill.runtime.outputs import Made
from tidemill.runtime.spark.epoch.arrow_epochs import ArrowEpochs
from tidemill.runtime.spark.epoch.facts import EpochFacts
from tidemill.runtime.spark.epoch.programs import Told
from tidemill.runtime.spark.epoch.reads import Reads
from tidemill.runtime.spark.epoch.runner import StepRunner, flat
from tidemill.runtime.spark.job_groups import group_of_this_thread, was_given_up
from tidemill.runtime.spark.resident.asked import Asked
from tidemill.runtime.spark.resident.workers import GivenUp, ResidentWorkers, resident_workers
from tidemill.runtime.spark.settings import SOCKET_FOLDER, is_within_machine

LARGEST = 512 << 20
"""Bytes that an epoch reads: two sources of the usual size. While a larger one runs, other queries would wait
long for their slots; Spark shares the slots task by task, and tries a single task again."""
MOST_FAILURES = 3
"""Epochs in a row that failed here and came to their end as Spark jobs."""
_LOGGER = logging.getLogger("tidemill")


@dataclass(slots=True, kw_only=True)
class ResidentEpochs:
    """``arrow`` and ``parallelism``: of the job; ``stopping``: it is to end with its current epoch."""

    context: SparkContext
    arrow: ArrowEpochs
    parallelism: int
    workers: ResidentWorkers
    stopping: threading.Event
    _failures: int = 0

    def run(self, facts: EpochFacts, reads: Reads, discard: Callable[[], None]) -> Made | None:
        """Runs the epoch; None if it is to be a Spark job. What the tasks report goes to the report of the
        ``facts`` at the end. ``discard`` removes what sinks have staged so far."""
        return None if self._failures >= MOST_FAILURES else self._run(facts, reads, discard)

    def beside(self) -> AbstractContextManager[None]:
        """While an epoch runs as a Spark job."""
        return self.workers.beside(self.stopping.is_set)

    def _run(self, facts: EpochFacts, reads: Reads, discard: Callable[[], None]) -> Made | None:
        told = Told()
        steps = self.arrow.steps(facts, told)
        if steps is None or reads.size is None or reads.size > LARGEST:
            return None
        given_up = partial(was_given_up, group_of_this_thread())
        try:
            with self.workers.lent(max(self.parallelism, reads.tasks), self.stopping.is_set) as job:
                if job is None:
                    return None
                asked = Asked(told=told, kept=self.arrow.kept, run=partial(job.run, given_up=given_up))
                if facts.is_small:
                    found = asked.whole(self.arrow.program(steps, reads, told))
                else:
                    found = flat(StepRunner(reads=reads.of, run=asked.tasks).results(steps))
        except GivenUp:
            discard()
            return None
        except Exception as e:
            self._failed(e, facts.epoch)
            discard()
            return None
        self._failures = 0
        facts.report.add(asked.report)
        return self.arrow.made(found)

    def _failed(self, error: Exception, epoch: int) -> None:
        self._failures += 1
        if self._failures < MOST_FAILURES:
            _LOGGER.info("Epoch %s runs as a Spark job, as it failed in resident workers: %s", epoch, error)
            return
        _LOGGER.warning(
            "Epochs run as Spark jobs from now on: %s in a row failed in resident workers and not as Spark"
            " jobs; the last one: %s",
            self._failures,
            error,
        )


def unfit(lacking: str, master: str) -> str:
    """Why epochs are Spark jobs where rows do not stay in Arrow for a reason, or Spark has this ``master``;
    '' if they need not be."""
    return lacking if is_within_machine(master) else f"Spark's master is '{master}', not within one machine"


def resident_epochs(
    spark: SparkSession,
    arrow: ArrowEpochs,
    parallelism: int,
    stopping: threading.Event,
    config: Configuration,
) -> ResidentEpochs | None:
    """For a job; None if its epochs are Spark jobs, with a warning if the option is set."""
    if not config.read(RESIDENT):
        return None
    context = spark.sparkContext
    why = unfit(arrow.lacking, context.master or "")
    if not context.getConf().get(SOCKET_FOLDER):
        why = why or f"Spark's '{SOCKET_FOLDER}' is not set"
    if why:
        level = logging.WARNING if RESIDENT.key in config else logging.DEBUG
        _LOGGER.log(level, "'%s' has no effect on this job: %s.", RESIDENT.key, why)
        return None
    return ResidentEpochs(
        context=context,
        arrow=arrow,
        parallelism=parallelism,
        workers=resident_workers(context),
        stopping=stopping,
    )
