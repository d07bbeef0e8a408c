"""Work that is given up ends, whenever that is said: before it begins, or between two stages."""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from tidemill.runtime.spark.job_groups import give_up, grouped, has_tasks, wait_for_tasks

LONG = 60.0


def endless(spark: SparkSession, group: str, begun: threading.Event) -> None:
    """A query whose first stage adaptive execution submits by itself, and never ends."""
    session = spark.newSession()
    session.conf.set("spark.sql.adaptive.enabled", "true")
    frame = session.range(1 << 50).groupBy((F.col("id") % 7).alias("k")).count()
    with grouped(spark.sparkContext, group, "endless"):
        begun.set()
        frame.collect()


@pytest.mark.parametrize("seconds", [None, 0.0, 0.1, 0.5, 2.0])
def test_given_up_work_ends(spark: SparkSession, seconds: float | None) -> None:
    group, begun = uuid.uuid4().hex, threading.Event()
    failed: list[Exception] = []

    def work() -> None:
        try:
            endless(spark, group, begun)
        except Exception as e:
            failed.append(e)

    if seconds is None:
        give_up(spark.sparkContext, group)
    thread = threading.Thread(target=work)
    thread.start()
    if seconds is not None:
        begun.wait(LONG)
        threading.Event().wait(seconds)
        give_up(spark.sparkContext, group)
    thread.join(LONG)
    assert not thread.is_alive()
    assert len(failed) == 1


def test_tasks_that_end_after_their_job_are_waited_for(spark: SparkSession, tmp_path: Path) -> None:
    """The one that is under way does not hear of it: it ends when there is a file."""
    group, gate, begun = uuid.uuid4().hex, tmp_path / "gate", tmp_path / "begun"

    def waits(rows: Iterable[int]) -> Iterable[int]:
        begun.touch()
        while not gate.exists():
            time.sleep(0.01)
        yield from rows

    def work() -> None:
        # Without the right to interrupt it, as where a stage fails.
        spark.sparkContext.setLocalProperty("spark.jobGroup.id", group)
        with suppress(Exception):
            spark.sparkContext.parallelize([1], 1).mapPartitions(waits).collect()

    thread = threading.Thread(target=work)
    thread.start()
    while not begun.exists():
        time.sleep(0.01)
    spark.sparkContext.cancelJobGroup(group)
    thread.join(LONG)
    assert has_tasks(spark.sparkContext, group)
    assert not wait_for_tasks(spark.sparkContext, group, 0.1)
    gate.touch()
    assert wait_for_tasks(spark.sparkContext, group, LONG)
    assert not has_tasks(spark.sparkContext, group)


def test_other_work_goes_on(spark: SparkSession) -> None:
    for _ in range(3):
        group = uuid.uuid4().hex
        give_up(spark.sparkContext, group)
        with grouped(spark.sparkContext, uuid.uuid4().hex, "other"):
            assert spark.range(10).groupBy().count().collect()[0][0] == 10


def test_a_users_own_group_is_there_again(spark: SparkSession) -> None:
    """Of a notebook that has set one for its thread."""
    context = spark.sparkContext
    names = ("spark.jobGroup.id", "spark.job.description", "spark.scheduler.pool")
    context.setJobGroup("mine", "my work", interruptOnCancel=True)
    context.setLocalProperty("spark.scheduler.pool", "my-pool")
    try:
        with grouped(context, uuid.uuid4().hex, "other"):
            assert context.getLocalProperty("spark.jobGroup.id") != "mine"
        assert [context.getLocalProperty(name) for name in names] == ["mine", "my work", "my-pool"]
    finally:
        setter: Any = context.setLocalProperty
        for name in (*names, "spark.job.interruptOnCancel"):
            setter(name, None)
