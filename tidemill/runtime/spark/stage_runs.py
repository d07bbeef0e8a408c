"""Reads from Spark's status store how the stages of a job ran: what Spark's own history server and event log
tell, too. Nothing of them is turned on or off here, and no job is run.

The store forgets: of all jobs the last stages are there (``spark.ui.retainedStages``, ``retainedTasks``).
Cost: a few calls into the JVM for each stage, after the job.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from pyspark import SparkContext

from tidemill.runtime.stage_runs import QUANTILES, Json, SlowTask, StageRun, slow_tasks, stage_run
from tidemill.spark_internals.status_store import StatusStore
from tidemill.spark_internals.versions import STAGE_RECORDS, is_on

MOST_STAGES = 200
"""Of a job, the last."""
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
            setter: Any = context.setLocalProperty
            setter(_DESCRIPTION, None)


def stage_runs(context: SparkContext, tag: str) -> tuple[tuple[StageRun, ...], tuple[SlowTask, ...]]:
    """Of what has run under ``tag``: the stages in their order, and the slow tasks of each."""
    if not is_on(STAGE_RECORDS):
        return (), ()
    store = StatusStore(context, QUANTILES)
    stages = [run for number in store.stages(tag)[-MOST_STAGES:] for run in _runs(store, number)]
    slow = [task for stage in stages if stage.is_uneven for task in _slow(store, stage)]
    return tuple(stages), tuple(slow)


def _runs(store: StatusStore, stage: int) -> list[StageRun]:
    """Its attempts; none of a stage that was not needed, or has been forgotten."""
    ran = [{**one, **_copies(store, one)} for one in store.attempts(stage) if one["status"] in _RAN]
    return [stage_run(one, _excluded(store, one)) for one in ran]


def _copies(store: StatusStore, found: Json) -> Json:
    """Spark leaves them out of a stage's data where not all of its tasks are asked for."""
    return store.speculation(found["stageId"], found["attemptId"]) if store.speculates else {}


def _excluded(store: StatusStore, found: Json) -> tuple[str, ...]:
    if not found["numFailedTasks"]:
        return ()
    executors = store.executors(found["stageId"], found["attemptId"])
    return tuple(sorted(name for name, run in executors.items() if run["isExcludedForStage"]))


def _slow(store: StatusStore, stage: StageRun) -> tuple[SlowTask, ...]:
    """Spark sorts killed and running tasks behind all tasks that have ended, independent of how long they
    ran. A copy of a task that came first may have been the shortest of all."""
    found = store.longest_tasks(stage.stage, stage.attempt, _SLOWEST)
    if stage.copies:
        found += store.longest_tasks(stage.stage, stage.attempt, 2 * stage.copies, "KILLED", "RUNNING")
        latest = store.latest_tasks(stage.stage, stage.attempt, _LATEST + 2 * stage.copies)
        found += [task for task in latest if task["speculative"]]
    return slow_tasks(stage, {task["taskId"]: task for task in found}.values())
