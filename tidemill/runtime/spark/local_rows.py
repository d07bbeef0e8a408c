"""Frames that Spark's optimizer computes by itself: literal rows, and what is made of each of them.

Their plan is a table in the driver. To collect it as Arrow data Spark would run a job all the same; here its
rows are taken as they lie there.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame

from tidemill.runtime.spark.arrow_schema import arrow_schema

_LOCAL = "LocalTableScan"
_CONVERTERS = "org.apache.spark.sql.execution.arrow.ArrowConverters$"
_ROWS, _BYTES = 1 << 20, 1 << 30
"""Of one batch: nothing that is computed in the driver comes near."""


def local_rows(frame: DataFrame) -> pa.Table | None:
    """The rows of ``frame``, in order; None where they take a job. Errors of what it computes are Spark's."""
    java: Any = frame._jdf
    plan = java.queryExecution().executedPlan()
    if plan.nodeName() != _LOCAL:
        return None
    converters = getattr(getattr(frame.sparkSession._jvm, _CONVERTERS), "MODULE$")
    batches = converters.toBatchWithSchemaIterator(
        plan.rows().iterator(), plan.schema(), _ROWS, _BYTES, "UTC", True, False
    )
    schema = arrow_schema(frame)
    if not batches.hasNext():
        return schema.empty_table()
    with pa.ipc.open_stream(batches.next()) as stream:
        return stream.read_all().cast(schema)
