"""Spark's work under a name, so that another thread can give it up."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from pyspark import SparkContext

_GROUP = ("spark.jobGroup.id", "spark.job.description", "spark.job.interruptOnCancel")
_POOL = "spark.scheduler.pool"


@contextmanager
def grouped(context: SparkContext, group: str, name: str) -> Iterator[None]:
    """What this thread runs within belongs to ``group``, which is its scheduler pool, too. '' is no group."""
    if not group:
        yield
        return
    begin_group(context, group, name)
    try:
        yield
    finally:
        for key in (*_GROUP, _POOL):
            _set(context, key, None)


def begin_group(context: SparkContext, group: str, name: str) -> None:
    """As ``grouped``, for the rest of the thread's life."""
    context.setJobGroup(group, name, interruptOnCancel=True)
    _set(context, _POOL, group)


def give_up(context: SparkContext, group: str) -> None:
    """Ends the group's Spark jobs, those that are about to start among them; returns at once. A group that
    was given up runs nothing any more."""
    java: Any = context._jsc
    java.sc().cancelJobGroupAndFutureJobs(group, "it was cancelled")


def give_up_here(group: str) -> None:
    """As ``give_up``, in this process's Spark; nothing where none runs."""
    context = SparkContext._active_spark_context
    if context is not None:
        give_up(context, group)


def _set(context: SparkContext, key: str, value: str | None) -> None:
    setter: Any = context.setLocalProperty
    setter(key, value)
