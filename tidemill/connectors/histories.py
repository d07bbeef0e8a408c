"""What sources give to be read once more up to an offset (``api.Source.remembered``)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

from pyspark.sql import DataFrame, SparkSession

from tidemill.connectors.api import ArrowSource, Offset, ReadTasks

S = TypeVar("S", bound=ArrowSource)


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceHistory(ArrowSource, Generic[S]):
    """The rows of ``source`` up to an offset, read as ``source`` reads them. ``bounded``: none follow."""

    source: S
    bounded: bool

    @property
    def is_bounded(self) -> bool:
        return self.bounded

    def is_empty(self, start: Offset | None, end: Offset) -> bool:
        return self.source.is_empty(start, end)

    def read(self, spark: SparkSession, start: Offset | None, end: Offset) -> DataFrame:
        return self.source.read(spark, start, end)

    def read_tasks(self, spark: SparkSession, start: Offset | None, end: Offset) -> ReadTasks:
        return self.source.read_tasks(spark, start, end)
