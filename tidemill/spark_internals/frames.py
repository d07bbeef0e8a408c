"""Frames that PySpark's interface does not make (``org.apache.spark.sql.classic.Dataset``)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from py4j.java_collections import ListConverter
from pyspark.sql import DataFrame, SparkSession

from tidemill.spark_internals.java import (
    SQL,
    java_class,
    java_frame,
    java_session,
    python_frame,
)
from tidemill.spark_internals.versions import UNKNOWN_SIZES, is_on, needed


@needed
def text_frame(spark: SparkSession, texts: Sequence[str]) -> DataFrame:
    """``texts`` as a column, each in a partition of its own, in order. The JVM hands them out itself, without
    a pass through Python."""
    context: Any = spark.sparkContext
    listed = ListConverter().convert(texts, context._gateway._gateway_client)
    rows = context._jsc.parallelize(listed, max(len(texts), 1)).rdd()
    encoders = java_class(spark.sparkContext, f"{SQL}.Encoders")
    return python_frame(java_session(spark).createDataset(rows, encoders.STRING()).toDF(), spark)


@needed
def frame_in(spark: SparkSession, frame: DataFrame) -> DataFrame:
    """``frame``, of another session of the application, in ``spark``."""
    return _of_plan(spark, java_frame(frame).logicalPlan())


def analysed_plan(frame: DataFrame) -> Any:
    """What Spark made of the text of ``frame``: ``of_analysed`` makes a frame of it again."""
    return java_frame(frame).queryExecution().analyzed()


def of_analysed(spark: SparkSession, plan: Any) -> DataFrame:
    """A frame of ``spark`` for an ``analysed_plan``, whose text Spark need not read again."""
    return _of_plan(spark, plan)


def _of_plan(spark: SparkSession, plan: Any) -> DataFrame:
    dataset = java_class(spark.sparkContext, f"{SQL}.classic.Dataset")
    return python_frame(dataset.ofRows(java_session(spark), plan), spark)


def of_unknown_size(frame: DataFrame) -> DataFrame:
    """The rows of ``frame``, which are computed and kept, without Spark's guess of their size."""
    if not is_on(UNKNOWN_SIZES):
        return frame
    java, spark = java_frame(frame), frame.sparkSession
    rows = java.queryExecution().toRdd()
    return python_frame(java_session(spark).internalCreateDataFrame(rows, java.schema(), False), spark)
