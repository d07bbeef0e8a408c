"""Reads from Spark's status store how the stages of a job ran: what Spark's own history server and event log
tell, too. Nothing of them is turned on or off here, and no job is run.

The store forgets: of all jobs the last stages are there (``spark.ui.retainedStages``, ``retainedTasks``).
Cost: a few calls into the JVM for each stage, after the job.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark import SparkContext

from tidemill.runtime.stage_runs import QUANTILES, Json, SlowTask, StageRun, slow_tasks, stage_run

MOST_STAGES = 200
"""Of a job, the last."""
_WAIT_MILLIS = 200
_SLOWEST = 5
_LATEST = 200
"""So many of a stage's last attempts are looked at for copies, which come late."""
_RAN = ("COMPLETE", "FAILED", "ACTIVE")
_DESCRIPTION = "spark.job.description"


@contextmanager
def tagged(context: SparkContext, tag: str, name: str) -> Iterator[None]:
    """What this thread runs within bears ``tag``, and is called ``name`` where Spark shows it."""
    before = context.getLocalProperty(_DESCRIPTION)
    context.addJobTag(tag)
    if not before:
        context.setJobDescription(name)
    try:
        yield
    finally:
        context.removeJobTag(tag)
        if not before:
            _forget_description(context)


def _forget_description(context: SparkContext) -> None:
    java: Any = context._jsc
    java.setLocalProperty(_DESCRIPTION, None)


def stage_runs(context: SparkContext, tag: str) -> tuple[tuple[StageRun, ...], tuple[SlowTask, ...]]:
    """Of what has run under ``tag``: the stages in their order, and the slow tasks of each."""
    store = _Store(context)
    stages = [stage for number in store.stages(tag)[-MOST_STAGES:] for stage in store.runs(number)]
    slow = [task for stage in stages if stage.is_uneven for task in store.slow(stage)]
    return tuple(stages), tuple(slow)


class _Store:
    def __init__(self, context: SparkContext) -> None:
        jvm: Any = context._jvm
        java: Any = context._jsc
        gateway: Any = context._gateway
        self._spark = java.sc()
        with suppress(Py4JJavaError):  # others are at work, and it is not empty in time
            self._spark.listenerBus().waitUntilEmpty(_WAIT_MILLIS)
        self._store = self._spark.statusStore()
        self._speculates = self._spark.getConf().getBoolean("spark.speculation", False)
        self._api = jvm.org.apache.spark.status.api.v1
        self._lists = jvm.java.util
        self._mapper = self._api.JacksonMessageWriter().mapper()
        self._quantiles = gateway.new_array(jvm.double, len(QUANTILES))
        for place, quantile in enumerate(QUANTILES):
            self._quantiles[place] = quantile

    def stages(self, tag: str) -> list[int]:
        jobs = self._spark.statusTracker().getJobIdsForTag(tag)
        return sorted({stage for job in jobs for stage in self._read(self._store.job(job))["stageIds"]})

    def runs(self, stage: int) -> list[StageRun]:
        """Its attempts; none of a stage that was not needed, or has been forgotten."""
        try:
            found = self._read(self._store.stageData(stage, False, None, True, self._quantiles))
        except Py4JJavaError:
            return []
        ran = [{**one, **self._copies(one)} for one in found if one["status"] in _RAN]
        return [stage_run(one, self._excluded(one)) for one in ran]

    def _copies(self, found: Json) -> Json:
        """Spark leaves them out of a stage's data where not all of its tasks are asked for."""
        if not self._speculates:
            return {}
        summary = self._store.speculationSummary(found["stageId"], found["attemptId"])
        return {"speculationSummary": self._read(summary)}

    def _excluded(self, found: Json) -> tuple[str, ...]:
        if not found["numFailedTasks"]:
            return ()
        executors = self._read(self._store.executorSummary(found["stageId"], found["attemptId"]))
        return tuple(sorted(name for name, run in executors.items() if run["isExcludedForStage"]))

    def slow(self, stage: StageRun) -> tuple[SlowTask, ...]:
        """Spark sorts what was killed, or is still to end, behind all that has ended, however long it ran;
        and a copy that came first may have been the shortest of all."""
        found = self._tasks(stage, _SLOWEST)
        if stage.copies:
            statuses = self._api.TaskStatus
            found += self._tasks(stage, 2 * stage.copies, statuses.KILLED, statuses.RUNNING)
            latest = self._store.taskList(stage.stage, stage.attempt, _LATEST + 2 * stage.copies)
            found += [task for task in self._read(latest) if task["speculative"]]
        return slow_tasks(stage, {task["taskId"]: task for task in found}.values())

    def _tasks(self, stage: StageRun, most: int, *statuses: Any) -> list[Json]:
        """Those that took longest, in one of ``statuses`` where there are any."""
        order, chosen = self._api.TaskSorting.DECREASING_RUNTIME, None
        if statuses:
            chosen = self._lists.ArrayList()
            for status in statuses:
                chosen.add(status)
        found = self._store.taskList(stage.stage, stage.attempt, 0, most, order, chosen)
        return list(self._read(found))

    def _read(self, found: Any) -> Any:
        return json.loads(self._mapper.writeValueAsString(found))
