"""Literal rows as a bounded source. An offset is the number of rows read."""

from __future__ import annotations

from dataclasses import dataclass, replace

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from tidemill.changelog.rowkind import SEQUENCE_COLUMN
from tidemill.connectors.api import Offset, ReadLimit, Source
from tidemill.types.physical import quote

ROWS = "rows"


@dataclass(frozen=True, slots=True, kw_only=True)
class ValuesSource(Source):
    """``rows``: typed Spark SQL literals. ``columns``: their names. ``bounded``: nothing comes after them."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    schema: str
    sequence: bool
    bounded: bool = True

    @property
    def is_bounded(self) -> bool:
        return self.bounded

    def next_offset(self, start: Offset | None, limit: ReadLimit) -> Offset:
        done = _done(start)
        take = len(self.rows) - done
        return {ROWS: done + (take if limit.rows is None else min(take, limit.rows))}

    def is_empty(self, start: Offset | None, end: Offset) -> bool:
        return _done(start) == _done(end)

    def is_finished(self, offset: Offset | None) -> bool:
        return _done(offset) >= len(self.rows)

    def remembered(self, end: Offset, *, ended: bool) -> ValuesSource:
        return self if ended else replace(self, rows=self.rows[: _done(end)], bounded=False)

    def read(self, spark: SparkSession, start: Offset | None, end: Offset) -> DataFrame:
        first, last = _done(start), _done(end)
        names = [*self.columns, SEQUENCE_COLUMN]
        if first == last:
            frame = spark.createDataFrame([], f"{self.schema}, {quote(SEQUENCE_COLUMN)} BIGINT")
        else:
            rows = ", ".join(
                "(" + ", ".join((*row, f"{n}L")) + ")" for n, row in enumerate(self.rows[first:last], first)
            )
            alias = ", ".join(map(quote, names))
            frame = spark.sql(f"SELECT * FROM VALUES {rows} AS v({alias})").coalesce(1)
        return frame if self.sequence else frame.drop(SEQUENCE_COLUMN)

    def read_all(self, spark: SparkSession) -> DataFrame:
        return self.read(spark, None, {ROWS: len(self.rows)})


@dataclass(frozen=True, slots=True, kw_only=True)
class FrameSource(Source):
    """A Spark DataFrame as a bounded, insert-only source, which one epoch reads completely.

    The frame must give the same rows each time it runs. It decides their order.
    """

    frame: DataFrame
    expressions: tuple[str, ...]
    sequence: bool

    @property
    def is_bounded(self) -> bool:
        return True

    def next_offset(self, start: Offset | None, limit: ReadLimit) -> Offset:
        return {ROWS: 1}

    def is_empty(self, start: Offset | None, end: Offset) -> bool:
        return _done(start) == _done(end)

    def is_finished(self, offset: Offset | None) -> bool:
        return _done(offset) == 1

    def read(self, spark: SparkSession, start: Offset | None, end: Offset) -> DataFrame:
        frame = self.frame.selectExpr(*self.expressions)
        if _done(start) == _done(end):
            frame = frame.where(F.lit(False))
        if self.sequence:
            frame = frame.withColumn(SEQUENCE_COLUMN, F.monotonically_increasing_id())
        return frame

    def read_all(self, spark: SparkSession) -> DataFrame:
        return self.read(spark, None, {ROWS: 1})


def _done(offset: Offset | None) -> int:
    return 0 if offset is None else int(offset[ROWS])
