"""Frames with one partition per task, whose only row holds the task's description."""

from __future__ import annotations

import base64
import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from tidemill.connectors.api import BatchMap, ReadTasks
from tidemill.connectors.arrow_maps import map_batches
from tidemill.spark_internals.frames import text_frame


def task_frame(spark: SparkSession, tasks: Sequence[Any]) -> DataFrame:
    """A frame with one row and one partition per task, in order; ``assigned`` reads it. Tasks have plain
    values: they are pickled."""
    return text_frame(spark, [base64.b64encode(pickle.dumps(task)).decode() for task in tasks])


def assigned(batches: Iterable[pa.RecordBatch]) -> Iterator[Any]:
    """The tasks in the batches of a ``task_frame``'s partition."""
    for batch in batches:
        for text in batch.column(0).to_pylist():
            yield pickle.loads(base64.b64decode(text))


def read_frame(
    spark: SparkSession, made: ReadTasks, schema: str, through: BatchMap | None = None
) -> DataFrame:
    """The rows of the tasks in order, or what ``through`` makes of the batches of each, in the worker that
    makes these. ``schema``: of the result, as Spark DDL."""
    return map_batches(task_frame(spark, made.tasks), _Reading(read=made.read, through=through), schema)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Reading:
    read: Callable[[Any], Iterator[pa.RecordBatch]]
    through: BatchMap | None

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for task in assigned(batches):
            read = self.read(task)
            yield from read if self.through is None else self.through(read)
