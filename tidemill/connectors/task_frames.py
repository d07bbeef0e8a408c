"""Frames with one partition per task, whose only row holds the task's description."""

from __future__ import annotations

import base64
import pickle
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

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
