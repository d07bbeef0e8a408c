"""What a catalog of Spark's session has, as Spark says it."""

from __future__ import annotations

from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import Row, SparkSession

from tidemill.errors import ConnectorError
from tidemill.session.frames.dataframe_types import flink_fields
from tidemill.types.logical import Field
from tidemill.types.physical import quote

_BUILT_IN = "spark_catalog"


def databases(spark: SparkSession, catalog: str) -> tuple[str, ...]:
    """ConnectorError if Spark has no such catalog, or if the catalog cannot be reached."""
    if catalog != _BUILT_IN and not spark.conf.get(f"spark.sql.catalog.{catalog}", ""):
        raise ConnectorError(
            f"Spark has no catalog '{catalog}': 'spark.sql.catalog.{catalog}' is not set",
            hint="Name one of Spark's catalogs in option 'catalog'.",
        )
    return tuple(row[0] for row in _asked(spark, f"SHOW NAMESPACES IN {quote(catalog)}", catalog))


def tables(spark: SparkSession, catalog: str, database: str) -> tuple[str, ...]:
    """Tables and views without temporary views."""
    rows = _asked(spark, f"SHOW TABLES IN {quote(catalog)}.{quote(database)}", catalog)
    return tuple(row["tableName"] for row in rows if not row["isTemporary"])


def columns(spark: SparkSession, catalog: str, path: str) -> tuple[Field, ...] | None:
    """The columns of the table or view; None if there is none."""
    try:
        frame = spark.table(path)
    except AnalysisException as e:
        if not spark.catalog.tableExists(path):
            return None
        raise _refused(catalog, e) from e
    return flink_fields(frame)


def _asked(spark: SparkSession, sql: str, catalog: str) -> list[Row]:
    try:
        return spark.sql(sql).collect()
    except PySparkException as e:
        raise _refused(catalog, e) from e


def _refused(catalog: str, error: PySparkException) -> ConnectorError:
    return ConnectorError(f"Spark's catalog '{catalog}': {str(error).splitlines()[0]}")
