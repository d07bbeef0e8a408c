"""The Arrow schema in which Spark hands over the rows of a frame."""

from __future__ import annotations

from inspect import signature

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import to_arrow_schema

_ZONE = {"timezone": "UTC"} if "timezone" in signature(to_arrow_schema).parameters else {}
"""Spark before 4.2 takes UTC without being told."""


def arrow_schema(frame: DataFrame) -> pa.Schema:
    """Instants have the zone UTC."""
    return to_arrow_schema(
        frame.schema, error_on_duplicated_field_names_in_struct=True, prefers_large_types=False, **_ZONE
    )
