"""A frame with a partition for each task: what a task is to do travels with it, and to no other."""

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
    """One row per task in a partition of its own, in order; ``assigned`` reads it. Plain values only: they
    are pickled."""
    return text_frame(spark, [base64.b64encode(pickle.dumps(task)).decode() for task in tasks])


def assigned(batches: Iterable[pa.RecordBatch]) -> Iterator[Any]:
    """The tasks in a partition of a ``task_frame``."""
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
