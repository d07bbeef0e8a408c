"""A host that was slow gets no tasks until its time is over, and as long as there is another one."""

from __future__ import annotations

from typing import Any

from pyspark.sql import SparkSession

from tidemill.spark_internals.slow_nodes import made

MILLIS, BEGAN = 60_000, 1_000_000
STAGE, TASK = 7, 3


def test_a_block_ends_with_its_time(spark: SparkSession) -> None:
    cluster = Cluster(spark, {"1": "fast", "2": "slow", "3": "slow"})
    assert cluster.excluded() == set()
    cluster.block("slow")
    assert cluster.excluded() == {"2", "3"}
    cluster.clock.advance(MILLIS - 1)
    assert cluster.excluded() == {"2", "3"}
    cluster.clock.advance(1)
    assert cluster.excluded() == set()
    told = f"slow {BEGAN} {BEGAN + MILLIS} {STAGE} {TASK}"
    assert cluster.nodes.told().splitlines() == [told]


def test_who_is_slow_again_waits_from_then_on(spark: SparkSession) -> None:
    cluster = Cluster(spark, {"1": "fast", "2": "slow"})
    cluster.block("slow")
    cluster.clock.advance(MILLIS // 2)
    cluster.block("slow")
    cluster.clock.advance(MILLIS - 1)
    assert cluster.excluded() == {"2"}
    cluster.clock.advance(1)
    assert cluster.excluded() == set()


def test_the_last_host_gets_tasks(spark: SparkSession) -> None:
    cluster = Cluster(spark, {"1": "fast", "2": "slow"})
    cluster.block("slow")
    cluster.block("fast")
    assert cluster.excluded() == {"2"}
    cluster.hosts.remove("1")
    assert cluster.excluded() == set()


class Cluster:
    """A scheduler of its own, with executors by their hosts, that is given no work."""

    def __init__(self, spark: SparkSession, hosts: dict[str, str]) -> None:
        jvm: Any = spark._jvm
        java: Any = spark.sparkContext._jsc
        self._scheduling = jvm.org.apache.spark.scheduler
        locality = getattr(jvm, "org.apache.spark.scheduler.TaskLocality$")
        self._anywhere = getattr(locality, "MODULE$").ANY()
        scheduler = self._scheduling.TaskSchedulerImpl(java.sc())
        self.hosts = scheduler.executorIdToHost()
        for executor, host in hosts.items():
            self.hosts.put(executor, host)
        self.clock = jvm.org.apache.spark.util.ManualClock(BEGAN)
        self.nodes = made(spark.sparkContext, "tidemill.SlowNodes", java.sc(), scheduler, MILLIS, self.clock)

    def block(self, host: str) -> None:
        task = self._scheduling.TaskInfo(1, TASK, 0, TASK, BEGAN, "1", host, self._anywhere, False)
        self.nodes.block(task, STAGE)

    def excluded(self) -> set[str]:
        keys = self.hosts.keysIterator()
        every = set()
        while keys.hasNext():
            every.add(keys.next())
        return {executor for executor in every if self.nodes.isExecutorExcluded(executor)}
