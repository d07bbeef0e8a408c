"""Spark's status store (``org.apache.spark.status.AppStatusStore``): what is known of jobs, stages and tasks.

Its entries come as JSON, with the names of Spark's REST interface. The store forgets old ones. Cost: a call
into the JVM or two for each question.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from pyspark import SparkContext

from tidemill.spark_internals.errors import JavaException
from tidemill.spark_internals.java import java_context, jvm
from tidemill.spark_internals.scheduler import is_set, wait_for_events

Json = dict[str, Any]
_WAIT_MILLIS = 200


class StatusStore:
    """As it is now. ``quantiles``: between 0 and 1, those of a stage's metrics that ``attempts`` gives."""

    def __init__(self, context: SparkContext, quantiles: Sequence[float]) -> None:
        wait_for_events(context, _WAIT_MILLIS)
        gateway: Any = context._gateway
        self._jvm = jvm(context)
        self._spark = java_context(context)
        self._store = self._spark.statusStore()
        self._api = self._jvm.org.apache.spark.status.api.v1
        self._mapper = self._api.JacksonMessageWriter().mapper()
        self._quantiles = gateway.new_array(self._jvm.double, len(quantiles))
        for place, quantile in enumerate(quantiles):
            self._quantiles[place] = quantile
        self.speculates = is_set(context, "spark.speculation")

    def stages(self, tag: str) -> list[int]:
        """Of all jobs that bear ``tag``, in their order."""
        jobs = self._spark.statusTracker().getJobIdsForTag(tag)
        return sorted({stage for job in jobs for stage in self._read(self._store.job(job))["stageIds"]})

    def attempts(self, stage: int) -> list[Json]:
        """The attempts at a stage; none of one that was not needed, or has been forgotten."""
        try:
            return list(self._read(self._store.stageData(stage, False, None, True, self._quantiles)))
        except JavaException:
            return []

    def speculation(self, stage: int, attempt: int) -> Json:
        """How many copies of tasks there were, as ``speculationSummary``."""
        return {"speculationSummary": self._read(self._store.speculationSummary(stage, attempt))}

    def executors(self, stage: int, attempt: int) -> Json:
        """What each executor has done for a stage, by its name."""
        return dict(self._read(self._store.executorSummary(stage, attempt)))

    def longest_tasks(self, stage: int, attempt: int, most: int, *statuses: str) -> list[Json]:
        """Those that ran longest, in one of ``statuses`` (as 'KILLED') where there are any."""
        order, chosen = self._api.TaskSorting.DECREASING_RUNTIME, None
        if statuses:
            chosen = self._jvm.java.util.ArrayList()
            for status in statuses:
                chosen.add(getattr(self._api.TaskStatus, status))
        return list(self._read(self._store.taskList(stage, attempt, 0, most, order, chosen)))

    def latest_tasks(self, stage: int, attempt: int, most: int) -> list[Json]:
        """Those that began last."""
        return list(self._read(self._store.taskList(stage, attempt, most)))

    def _read(self, found: Any) -> Any:
        return json.loads(self._mapper.writeValueAsString(found))
