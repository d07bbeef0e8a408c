"""Full names of Spark's classes that settings and tables carry."""

from __future__ import annotations

ORC = "org.apache.spark.sql.execution.datasources.orc.OrcFileFormat"
PARQUET = "org.apache.spark.sql.execution.datasources.parquet.ParquetFileFormat"
PUSH_PROJECTION_THROUGH_UNION = "org.apache.spark.sql.catalyst.optimizer.PushProjectionThroughUnion"
"""A rule of Spark's optimizer, as ``spark.sql.optimizer.excludedRules`` names it."""
PYTHON_WORKER = "pyspark.worker"
"""The module that runs tasks in Spark's Python processes."""
