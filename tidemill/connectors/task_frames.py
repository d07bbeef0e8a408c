"""A frame with a partition for each task: what a task is to do travels with it, and to no other."""

from __future__ import annotations

import base64
import pickle
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import pyarrow as pa
from py4j.java_collections import ListConverter
from pyspark.sql import DataFrame, SparkSession


def task_frame(spark: SparkSession, tasks: Sequence[Any]) -> DataFrame:
    """One row per task in a partition of its own, in order; ``assigned`` reads it. Plain values only: they
    are pickled. The JVM hands the rows out itself, without a pass through Python."""
    context: Any = spark.sparkContext
    jvm: Any = spark._jvm
    texts = [base64.b64encode(pickle.dumps(task)).decode() for task in tasks]
    listed = ListConverter().convert(texts, context._gateway._gateway_client)
    rows = context._jsc.parallelize(listed, max(len(texts), 1)).rdd()
    made = spark._jsparkSession.createDataset(rows, getattr(jvm, "org.apache.spark.sql.Encoders").STRING())
    return DataFrame(made.toDF(), spark)


def assigned(batches: Iterable[pa.RecordBatch]) -> Iterator[Any]:
    """The tasks in a partition of a ``task_frame``."""
    for batch in batches:
        for text in batch.column(0).to_pylist():
            yield pickle.loads(base64.b64decode(text))
