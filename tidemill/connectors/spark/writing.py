"""Any Spark batch sink as a table.

Spark's sinks have no two steps, so an epoch is staged as Parquet files in a spool directory and
written with ``DataFrame.write`` when it is published. A marker keeps a repeated publish from writing
twice; only a crash between the write and its marker does (at least once).
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from tidemill.connectors.api import Sink
from tidemill.connectors.filesystem.sink import FileSink
from tidemill.errors import ConnectorError
from tidemill.types.logical import Field
from tidemill.types.physical import spark_schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True, slots=True, kw_only=True)
class SparkSink(Sink):
    """``spool``: a file sink whose root is ``place``; its files have the carriers' types. ``table``: one of
    Spark's catalogs, instead of a ``format``."""

    format: str
    options: Mapping[str, str]
    fields: tuple[Field, ...]
    partitioned_by: tuple[str, ...]
    mode: str
    place: Path
    spool: FileSink
    table: str = ""

    def stage(self, frame: DataFrame, epoch: int) -> DataFrame:
        return self.spool.stage(frame, epoch)

    def publish(self, epoch: int, tokens: list[str]) -> None:
        """ConnectorError when Spark cannot write; the epoch stays staged."""
        marker = self.place / f"published-{epoch}"
        if marker.exists():
            return
        self.spool.publish(epoch, tokens)
        files = [self.place / name for token in tokens for name, _ in json.loads(token)["files"]]
        if files or self.mode == "overwrite":
            self._write(files)
        marker.touch()
        for data in files:
            data.unlink()
        (self.place / f"published-{epoch - 2}").unlink(missing_ok=True)

    def discard(self, epoch: int) -> None:
        self.spool.discard(epoch)

    def finish(self) -> None:
        shutil.rmtree(self.place, ignore_errors=True)

    def _write(self, files: list[Path]) -> None:
        session = SparkSession.getActiveSession() or SparkSession.builder.getOrCreate()
        schema = spark_schema(self.fields)
        frame = (
            session.read.schema(schema).parquet(*map(str, files))
            if files
            else session.createDataFrame([], schema)
        )
        try:
            if self.table:
                frame.write.insertInto(self.table, overwrite=self.mode == "overwrite")
                return
            writer = frame.write.format(self.format).options(**self.options).mode(self.mode)
            if self.partitioned_by:
                writer = writer.partitionBy(*self.partitioned_by)
            writer.save()
        except PySparkException as e:
            shown = self.format or self.table
            raise ConnectorError(f"Spark sink '{shown}': {str(e).splitlines()[0]}") from None
