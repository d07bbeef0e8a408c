"""The handles of Spark's Java objects, for the other files of this package alone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from pyspark import SparkContext
from pyspark.sql import DataFrame, SparkSession

SPARK = "org.apache.spark"
SQL = f"{SPARK}.sql"


def jvm(context: SparkContext) -> Any:
    """py4j's view of the driver's JVM, which has classes by their names."""
    view: Any = context._jvm
    return view


def java_class(context: SparkContext, name: str) -> Any:
    """The class of that full name; a call makes an object of it."""
    return getattr(jvm(context), name)


def scala_object(context: SparkContext, name: str) -> Any:
    """Scala's singleton of that full name."""
    return getattr(java_class(context, f"{name}$"), "MODULE$")


def java_context(context: SparkContext) -> Any:
    """The ``org.apache.spark.SparkContext``."""
    java: Any = context._jsc
    return java.sc()


def java_session(spark: SparkSession) -> Any:
    """The ``org.apache.spark.sql.classic.SparkSession``."""
    java: Any = spark._jsparkSession
    return java


def java_frame(frame: DataFrame) -> Any:
    """The ``org.apache.spark.sql.classic.Dataset``."""
    java: Any = frame._jdf
    return java


def executed_plan(frame: DataFrame) -> Any:
    """The ``SparkPlan`` of a frame; once it has run, the plan that ran in the end."""
    return java_frame(frame).queryExecution().executedPlan()


def python_frame(java: Any, spark: SparkSession) -> DataFrame:
    """PySpark's frame for a Dataset of ``spark``."""
    return DataFrame(java, spark)


def sequence(context: SparkContext, values: Iterable[Any]) -> Any:
    """A ``scala.collection.Seq``."""
    return java_class(context, f"{SPARK}.api.python.PythonUtils").toSeq(list(values))


def each(found: Any) -> Iterator[Any]:
    """The elements of a Seq: a call into the JVM for each."""
    return map(found.apply, range(found.size()))
