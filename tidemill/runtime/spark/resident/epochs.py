"""Decides for each epoch of a job whether it runs in resident workers, and handles failures.

An epoch runs there unless it is very large or something else needs the slots. If it fails for any reason, the
job forgets it: no commit names the files of its tasks. The caller runs the epoch as a Spark job and reports
the errors of that job.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from functools import partial

import pyarrow as pa
from pyspark.sql import SparkSession

from tidemill.config.epoch_options import RESIDENT
from tidemill.config.option import Configuration
from tidemill.connectors.api import BatchMap
from tidemill.errors import InternalError
from tidemill.runtime import graph as g
from tidemill.runtime.outputs import CollectOutput, Made, Output, SinkOutput, stager_of
from tidemill.runtime.spark.epoch.arrow_steps import ArrowSteps
from tidemill.runtime.spark.epoch.facts import EpochFacts
from tidemill.runtime.spark.epoch.reads import Reads
from tidemill.runtime.spark.job_groups import group_of, was_given_up
from tidemill.runtime.spark.resident.asked import Asked
from tidemill.runtime.spark.resident.connection import Batches
from tidemill.runtime.spark.resident.fitness import rows_of_frames, unfit
from tidemill.runtime.spark.resident.steps import StepRunner, flat
from tidemill.runtime.spark.resident.worker import Told
from tidemill.runtime.spark.resident.workers import GivenUp, ResidentWorkers, resident_workers
from tidemill.runtime.spark.settings import SOCKET_FOLDER
from tidemill.spark_internals.pickling import Kept

LARGEST = 512 << 20
"""Bytes that an epoch reads: two sources of the usual size. While a larger one runs, other queries would wait
long for their slots; Spark shares the slots task by task, and tries a single task again."""
MOST_FAILURES = 3
"""Epochs in a row that failed here and came to their end as Spark jobs."""
_LOGGER = logging.getLogger("tidemill")


@dataclass(slots=True, kw_only=True)
class ResidentEpochs:
    """``outputs`` and ``parallelism``: of the job; ``stopping``: it is to end with its current epoch."""

    spark: SparkSession
    outputs: Mapping[str, Output]
    parallelism: int
    workers: ResidentWorkers
    stopping: threading.Event
    _kept: Kept = field(init=False)
    _failures: int = 0

    def __post_init__(self) -> None:
        self._kept = Kept(_constants(output.node for output in self.outputs.values()))

    def run(self, facts: EpochFacts, reads: Reads, discard: Callable[[], None]) -> Made | None:
        """Runs the epoch; None if it is to be a Spark job. What the tasks report goes to the report of the
        ``facts`` at the end. ``discard`` removes what sinks have staged so far."""
        return None if self._failures >= MOST_FAILURES else self._run(facts, reads, discard)

    def beside(self) -> AbstractContextManager[None]:
        """While an epoch runs as a Spark job."""
        return self.workers.beside(self.stopping.is_set)

    def _run(self, facts: EpochFacts, reads: Reads, discard: Callable[[], None]) -> Made | None:
        told = Told()
        steps = ArrowSteps(replace(facts, report=told))
        made = [steps.mapped(o.node, _through(o, facts.epoch), "") for o in self.outputs.values()]
        if next(rows_of_frames(made), None) is not None:
            return None  # the kernels of an expression could not treat its rows
        if reads.size is None or reads.size > LARGEST:
            return None
        given_up = partial(was_given_up, group_of(self.spark.sparkContext))
        try:
            with self.workers.lent(max(self.parallelism, reads.tasks), self.stopping.is_set) as job:
                if job is None:
                    return None
                asked = Asked(told=told, kept=self._kept, run=partial(job.run, given_up=given_up))
                if facts.is_small:
                    found = asked.epoch(made, reads.all)
                else:
                    found = flat(StepRunner(reads=reads.of, run=asked.tasks).results(made))
        except GivenUp:
            discard()
            return None
        except Exception as e:
            self._failed(e, facts.epoch)
            discard()
            return None
        self._failures = 0
        facts.report.add(asked.report)
        return self._made(found)

    def _made(self, found: list[Batches]) -> Made:
        rows: pa.Table | None = None
        tokens: dict[str, list[str]] = {}
        for (key, output), batches in zip(self.outputs.items(), found, strict=True):
            if isinstance(output, CollectOutput):
                rows = collected(batches, output.schema)
            else:
                tokens[key] = [token for b in batches for token in b.column(0).to_pylist()]
        return rows, tokens

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


def collected(batches: Batches, schema: pa.Schema) -> pa.Table:
    """The rows as the reader of a SELECT gets them of a Spark job."""
    return pa.Table.from_batches(batches).cast(schema) if batches else schema.empty_table()


def _through(output: Output, epoch: int) -> BatchMap:
    if isinstance(output, CollectOutput):
        return iter
    stager = stager_of(output, epoch)
    if stager is None:
        raise InternalError("a sink takes its rows elsewhere than where they are made")
    return stager


def resident_epochs(
    spark: SparkSession,
    outputs: Mapping[str, Output],
    parallelism: int,
    stopping: threading.Event,
    config: Configuration,
) -> ResidentEpochs | None:
    """For a job with these ``outputs``; None if its epochs are Spark jobs, with a warning if the option is
    set."""
    if not config.read(RESIDENT):
        return None
    context = spark.sparkContext
    why = unfit({key: o.node for key, o in outputs.items()}, context.master or "")
    if any(isinstance(o, SinkOutput) and stager_of(o, 1) is None for o in outputs.values()):
        why = why or "a sink takes its rows elsewhere than where they are made"
    if not context.getConf().get(SOCKET_FOLDER):
        why = why or f"Spark's '{SOCKET_FOLDER}' is not set"
    if why:
        level = logging.WARNING if RESIDENT.key in config else logging.DEBUG
        _LOGGER.log(level, "'%s' has no effect on this job: %s.", RESIDENT.key, why)
        return None
    return ResidentEpochs(
        spark=spark,
        outputs=outputs,
        parallelism=parallelism,
        workers=resident_workers(context),
        stopping=stopping,
    )


def _constants(outputs: Iterable[g.ExecNode]) -> Iterator[object]:
    """What is large in the programs of the tasks and the same in all epochs."""
    for node in (node for output in outputs for node in output.walk()):
        match node:
            case g.Keyed():
                yield node.spec
                yield from (port.schema for port in node.ports if port.schema is not None)
            case g.Select(arrays=g.Arrays(projection=projection)):
                yield from projection.columns
                yield projection.condition
            case g.Generate() if node.attached is not None:
                yield node.attached
            case g.Lookup():
                yield node.asking
