"""What a task of Spark's says it is (``pyspark.TaskContext``)."""

from __future__ import annotations

from typing import Any

from pyspark import TaskContext

from tidemill.spark_internals.versions import needed


@needed
def act_as(partition: int) -> None:
    """From now on the task of this process says that it is the ``partition``-th of its stage."""
    context: Any = TaskContext.get()
    if not isinstance(context._partitionId, int):
        raise AttributeError("the task's context has no attribute '_partitionId'")
    context._partitionId = partition
