"""What sources give to be read once more up to an offset (``api.JobSource.remembered``)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from pyspark.sql import DataFrame, SparkSession

from tidemill.connectors.api import ArrowSource, Offset, ReadTasks, Source


class ReadSource(Source, ArrowSource, Protocol):
    """A source that makes its rows as Arrow batches."""


S = TypeVar("S", bound=ReadSource)


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceHistory(Generic[S]):
    """The rows of ``source`` up to an offset, read as ``source`` reads them. ``is_bounded``: none follow."""

    source: S
    is_bounded: bool

    def is_empty(self, start: Offset | None, end: Offset) -> bool:
        return self.source.is_empty(start, end)

    def read(self, spark: SparkSession, start: Offset | None, end: Offset) -> DataFrame:
        return self.source.read(spark, start, end)

    def read_tasks(self, spark: SparkSession, start: Offset | None, end: Offset) -> ReadTasks:
        return self.source.read_tasks(spark, start, end)
