"""Sources that can only be read whole: one range, once."""

from __future__ import annotations

from abc import ABC, abstractmethod

from pyspark.sql import DataFrame, SparkSession

from tidemill.connectors.api import Offset, ReadLimit

_READ: Offset = {"read": True}


class WholeSource(ABC):
    """A bounded ``Source`` with two offsets: nothing read, all read. Limits do not apply."""

    __slots__ = ()

    @property
    def is_bounded(self) -> bool:
        return True

    def next_offset(self, start: Offset | None, limit: ReadLimit) -> Offset:
        return _READ

    def is_empty(self, start: Offset | None, end: Offset) -> bool:
        return bool(start)

    def is_finished(self, offset: Offset | None) -> bool:
        return bool(offset)

    @abstractmethod
    def read(self, spark: SparkSession, start: Offset | None, end: Offset) -> DataFrame:
        """As of ``Source``: everything, or nothing behind ``start``."""

    def read_all(self, spark: SparkSession) -> DataFrame:
        return self.read(spark, None, _READ)
