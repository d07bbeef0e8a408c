"""Blocks without rows: every partition is run, whatever comes."""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession

from tidemill.runtime.spark.exchange import (
    BLOCK_COLUMN,
    FORM_COLUMN,
    PARTITION_COLUMN,
    PORT_COLUMN,
    TASK_COLUMN,
    Form,
)
from tidemill.types.physical import quote

_VALUES = (
    ("CAST(id AS INT)", PARTITION_COLUMN),
    ("0", PORT_COLUMN),
    (f"{int(Form.TICK)}Y", FORM_COLUMN),
    ("0", TASK_COLUMN),
    ("X''", BLOCK_COLUMN),
)


def ticks(spark: SparkSession, partitions: int) -> DataFrame:
    """A tick for every partition, as exchange blocks. Cost: one small task."""
    return spark.range(0, partitions, 1, 1).selectExpr(
        *(f"{text} AS {quote(name)}" for text, name in _VALUES)
    )
