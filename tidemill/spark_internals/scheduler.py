"""Jobs and tasks in the driver (``org.apache.spark.SparkContext``)."""

from __future__ import annotations

from contextlib import suppress

from pyspark import SparkContext

from tidemill.spark_internals.errors import JavaException
from tidemill.spark_internals.java import java_context
from tidemill.spark_internals.versions import needed


@needed
def cancel_group(context: SparkContext, group: str, reason: str) -> None:
    """Ends the jobs of ``group``, and those that it begins from now on."""
    java_context(context).cancelJobGroupAndFutureJobs(group, reason)


@needed
def wait_for_events(context: SparkContext, millis: int) -> None:
    """Until all that has happened so far is known to Spark's trackers, or ``millis`` are over: other jobs may
    go on to tell of themselves."""
    with suppress(JavaException):  # not within that time
        java_context(context).listenerBus().waitUntilEmpty(millis)


def is_set(context: SparkContext, key: str) -> bool:
    """Whether a setting of the application is true; false if nobody has set it."""
    return bool(java_context(context).getConf().getBoolean(key, False))


def slots(context: SparkContext) -> int:
    """How many tasks of the default resource profile can run at once."""
    spark = java_context(context)
    return int(spark.maxNumConcurrentTasks(spark.resourceProfileManager().defaultResourceProfile()))


def remove_idle_pool(context: SparkContext, name: str) -> bool:
    """Makes the scheduler forget a pool; False if tasks of the pool wait or are under way. A pool that does
    not exist is as good as removed. Cost: four calls into the JVM."""
    pools = java_context(context).taskScheduler().rootPool()
    pool = pools.getSchedulableByName(name)
    if pool is None:
        return True
    if not pool.schedulableQueue().isEmpty():
        return False
    pools.removeSchedulable(pool)
    return True
