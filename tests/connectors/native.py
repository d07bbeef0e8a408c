"""Tables of files that Spark's own readers read, and how what they give is compared."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

from tests.connectors import sources
from tidemill.catalog.table import CatalogTable
from tidemill.config.option import Configuration
from tidemill.connectors.filesystem.source import FileSource
from tidemill.errors import ConnectorError
from tidemill.runtime.spark.adaptive import batch_settings
from tidemill.runtime.spark.failures import translated
from tidemill.runtime.spark.settings import RUNTIME
from tidemill.types.logical import LogicalType


def batch_session(spark: SparkSession) -> SparkSession:
    """With the settings that a batch job has."""
    made = spark.newSession()
    for key, value in {**RUNTIME, **batch_settings(Configuration(), 2, None)}.items():
        made.conf.set(key, value)
    return made


def files(columns: Mapping[str, LogicalType], path: Path, form: str = "parquet", **also: Any) -> CatalogTable:
    """A table of what lies there."""
    return sources.table(columns, {"connector": "filesystem", "path": str(path), "format": form}, **also)


def written(tables: Sequence[pa.Table], folder: Path, **options: Any) -> None:
    for number, table in enumerate(tables):
        pq.write_table(table, folder / f"{number}.parquet", **options)


def both(spark: SparkSession, declared: Any, **asked: Any) -> tuple[FileSource, FileSource]:
    """A table read natively, and by our decoders."""
    native = sources.source(declared, **asked)
    assert isinstance(native, FileSource)
    assert native.native is not None
    return native, replace(native, native=None)


def shown(frame: DataFrame) -> list[str]:
    """The rows as text that tells apart what equality does not, in a common order."""
    table = frame.toArrow()
    plain = [
        c.cast(pa.int64())
        if pa.types.is_timestamp(c.type)
        else c.cast(pa.int32())
        if pa.types.is_date(c.type)
        else c
        for c in table.columns
    ]
    return sorted(repr(row) for row in zip(*(c.to_pylist() for c in plain), strict=True))


def is_native(frame: DataFrame) -> bool:
    return "MapInArrow" not in frame._jdf.queryExecution().toString()


def failing(action: Callable[[], object]) -> str:
    try:
        action()
    except Exception as e:  # whichever it is: the translation is what is tested
        found = translated(e)
        assert isinstance(found, ConnectorError), found
        return str(found)
    raise AssertionError("it did not fail")
