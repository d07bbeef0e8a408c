"""``mapInArrow`` by a schema that is read once: PySpark has the JVM parse its text for every frame."""

from __future__ import annotations

from functools import lru_cache

from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from tidemill.connectors.api import BatchMap


def map_batches(frame: DataFrame, function: BatchMap, schema: str) -> DataFrame:
    """``function`` over the frame's batches; ``schema``: as DDL, of what it gives."""
    return frame.mapInArrow(function, _parsed(schema))


@lru_cache(maxsize=4096)
def _parsed(schema: str) -> StructType:
    made = StructType.fromDDL(schema)
    assert isinstance(made, StructType)
    return made
