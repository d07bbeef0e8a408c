"""Whose tasks come first goes by who began first, and Spark keeps no pool of what is done."""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

from pyspark.sql import SparkSession

from tidemill.runtime.spark import pools
from tidemill.runtime.spark.pools import POOL, Pools, in_turn
from tidemill.spark_internals.java import java_class, java_context, scala_object

_SCHEDULER = "org.apache.spark.scheduler"


def root(spark: SparkSession) -> Any:
    return java_context(spark.sparkContext).taskScheduler().rootPool()


def pool(spark: SparkSession, name: str) -> Any:
    """As Spark's fair scheduler makes one for the first tasks of a name."""
    context = spark.sparkContext
    fifo = scala_object(context, f"{_SCHEDULER}.SchedulingMode").FIFO()
    return java_class(context, f"{_SCHEDULER}.Pool")(name, fifo, 0, 1)


def is_known(spark: SparkSession, name: str) -> bool:
    return root(spark).getSchedulableByName(name) is not None


def test_names_go_up() -> None:
    made = Pools()
    names = [made.take() for _ in range(2000)]
    assert names == sorted(set(names))


def test_a_pool_goes_with_its_work(spark: SparkSession) -> None:
    context, names = spark.sparkContext, list[str]()
    for _ in range(3):
        with in_turn(context):
            names.append(context.getLocalProperty(POOL) or "")
            root(spark).addSchedulable(pool(spark, names[-1]))
            assert is_known(spark, names[-1])
        assert context.getLocalProperty(POOL) is None
        assert not is_known(spark, names[-1])
    assert names == sorted(set(names))


def test_a_pool_stays_while_a_task_of_it_is_under_way(spark: SparkSession) -> None:
    made = Pools()
    name = made.take()
    busy, tasks = pool(spark, name), pool(spark, "tasks")
    busy.addSchedulable(tasks)
    root(spark).addSchedulable(busy)
    made.give_back(spark.sparkContext, name)
    assert is_known(spark, name)
    busy.removeSchedulable(tasks)
    made.give_back(spark.sparkContext, made.take())
    assert not is_known(spark, name)


def test_an_application_that_has_ended_is_no_error(spark: SparkSession) -> None:
    def ended(*_: object) -> bool:
        raise OSError("the JVM is gone")

    with patch.object(pools, "remove_idle_pool", ended), in_turn(spark.sparkContext):
        pass
