"""The number of a Spark task, as the task itself sees it (``pyspark.TaskContext``)."""

from __future__ import annotations

from typing import Any

from pyspark import TaskContext

from tidemill.spark_internals.versions import needed


@needed
def act_as(partition: int) -> None:
    """Lets the task of this process report ``partition`` as its number in its stage."""
    context: Any = TaskContext.get()
    if not isinstance(context._partitionId, int):
        raise AttributeError("the task's context has no attribute '_partitionId'")
    context._partitionId = partition
