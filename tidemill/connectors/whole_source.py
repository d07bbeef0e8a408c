"""Sources that can only be read whole: one range, once."""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession

from tidemill.connectors.api import Offset, ReadLimit, Source

_READ: Offset = {"read": True}


class WholeSource(Source):
    """A bounded ``Source`` with two offsets: nothing read, all read. Limits do not apply. ``read`` gives
    everything, or nothing after ``start``."""

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

    def read_all(self, spark: SparkSession) -> DataFrame:
        return self.read(spark, None, _READ)
