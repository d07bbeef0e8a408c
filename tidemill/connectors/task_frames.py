"""A frame with a partition for each task: what a task is to do travels with it, and to no other."""

from __future__ import annotations

import base64
import pickle
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

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
