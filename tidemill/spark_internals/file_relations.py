"""Tables of files that we have listed, as relations that Spark's own readers of columnar files read
(``org.apache.spark.sql.execution.datasources.HadoopFsRelation``)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pyspark import SparkContext
from pyspark.sql import DataFrame, SparkSession

from tidemill.spark_internals.java import (
    SQL,
    executed_plan,
    java_class,
    java_session,
    jvm,
    python_frame,
    sequence,
)

_DATASOURCES = f"{SQL}.execution.datasources"


def partition_paths(values: DataFrame, directories: Sequence[str]) -> list[Any]:
    """A PartitionPath for each of ``directories``, absolute ones of this machine; the rows of ``values``, in
    their order, are the values of their partition columns. Any session of the application takes it."""
    rows = executed_plan(values).executeCollect()
    path_of = java_class(values.sparkSession.sparkContext, f"{_DATASOURCES}.PartitionPath")
    return [path_of.apply(row, f"file:{path}") for row, path in zip(rows, directories, strict=True)]


def partition_spec(spark: SparkSession, schema: str, paths: Sequence[Any]) -> Any:
    """The PartitionSpec of a table whose partition columns are ``schema`` (DDL), '' for none; ``paths``: its
    ``partition_paths``."""
    spec = java_class(spark.sparkContext, f"{_DATASOURCES}.PartitionSpec")
    if not schema:
        return spec.emptySpec()
    return spec(_struct_type(spark.sparkContext, schema), sequence(spark.sparkContext, paths))


def file_relation(
    spark: SparkSession, file_format: str, index: Any, schema: str, options: Mapping[str, str], session: Any
) -> DataFrame:
    """A frame of ``spark`` with the rows of the files of ``index`` (``file_index``).

    ``file_format``: the name of Spark's FileFormat (``class_names``); ``schema``: DDL of the columns in the
    files; ``session``: a ``copy_of`` a session by whose settings files are cut and put together for tasks,
    None for ``spark``.
    """
    context = spark.sparkContext
    own = java_session(spark)
    relation = java_class(context, f"{_DATASOURCES}.HadoopFsRelation")(
        index,
        index.partitionSchema(),
        _struct_type(context, schema),
        java_class(context, "scala.Option").empty(),
        java_class(context, file_format)(),
        jvm(context).PythonUtils.toScalaMap(dict(options)),
        own if session is None else session,
    )
    return python_frame(own.baseRelationToDataFrame(relation), spark)


def _struct_type(context: SparkContext, schema: str) -> Any:
    made = java_class(context, f"{SQL}.types.StructType")
    return made.fromDDL(schema) if schema else made()
