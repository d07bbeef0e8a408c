"""Tables out of changes, and the difference between two tables, in Spark.

Columns go by their places (``c0``, ``c1``, ...), as names may repeat. Equality is that of Spark's GROUP BY:
NULLs are equal, as are NaNs and signed zeros; maps are compared by their entries, which are in order.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import DataType

from tidemill.changelog.rowkind import KIND_COLUMN, RowKind
from tidemill.connectors.arrow_maps import map_batches
from tidemill.connectors.task_frames import assigned, task_frame
from tidemill.files.storage import Storage
from tidemill.runtime.replay.captured import EPOCH_COLUMN, TASK_COLUMN, KeptRows
from tidemill.types.logical import Field
from tidemill.types.physical import quote, spark_type

_COUNT, _ROW, _BEFORE, _NOW = "count", "row", "before", "now"


@dataclass(frozen=True, slots=True, kw_only=True)
class Content:
    """``frame``: ``c0``... of each row, and of a table without ``keys`` the number of equal ones. ``keys``:
    places of the columns of the primary key."""

    frame: DataFrame
    width: int
    keys: tuple[int, ...]


def column_names(fields: Sequence[Field]) -> list[str]:
    return [f"c{place}" for place in range(len(fields))]


def content(spark: SparkSession, kept: KeptRows) -> Content:
    """The table that the changes make."""
    names = column_names(kept.fields)
    keys = tuple(i for i, f in enumerate(kept.fields) if f.name in kept.keys)
    types = ", ".join(f"{name} {spark_type(f.type)}" for name, f in zip(names, kept.fields, strict=True))
    beside = f"{quote(KIND_COLUMN)} TINYINT, {quote(EPOCH_COLUMN)} BIGINT, {quote(TASK_COLUMN)} BIGINT"
    reader = _Reader(kept.storage, len(names))
    changes = map_batches(task_frame(spark, kept.files), reader, f"{types}, {beside}")
    stays = F.col(quote(KIND_COLUMN)) == int(RowKind.INSERT)
    if not keys:
        return _counted(changes.withColumn(_COUNT, F.when(stays, 1).otherwise(-1)), len(names))
    wins = [F.col(quote(EPOCH_COLUMN)), *([] if kept.ordered else [stays]), F.col(quote(TASK_COLUMN))]
    row = F.struct(*names, stays.alias("stays"))
    last = changes.groupBy(*(names[i] for i in keys)).agg(F.max_by(row, F.struct(*wins)).alias(_ROW))
    frame = last.where(f"{_ROW}.stays").select(*(f"{_ROW}.{name}" for name in names))
    return Content(frame=frame, width=len(names), keys=keys)


def content_of(frame: DataFrame, fields: Sequence[Field], keys: Sequence[str]) -> Content:
    """Of the rows of a table as they are."""
    named = frame.toDF(*column_names(fields))
    found = tuple(i for i, f in enumerate(fields) if f.name in keys)
    if found:
        return Content(frame=named, width=len(fields), keys=found)
    return _counted(named.withColumn(_COUNT, F.lit(1)), len(fields))


def nothing(like: Content) -> Content:
    return Content(frame=like.frame.where(F.lit(False)), width=like.width, keys=like.keys)


def difference(before: Content, now: Content, *, pairs: bool) -> DataFrame:
    """The changes that turn one table into the other: its columns, then ``$kind``. ``pairs``: a row that is
    replaced comes as it was, too."""
    return (_by_key if now.keys else _by_count)(before, now, pairs)


def _by_key(before: Content, now: Content, pairs: bool) -> DataFrame:
    names = [f"c{place}" for place in range(now.width)]
    sides = [
        side.frame.select(F.struct(*names).alias(_ROW), F.lit(name).alias("side"))
        for side, name in ((before, _BEFORE), (now, _NOW))
    ]
    keys = [F.col(f"{_ROW}.c{place}").alias(f"k{place}") for place in now.keys]
    both = sides[0].unionAll(sides[1]).groupBy(*keys)
    rows = both.agg(
        *(
            F.first(F.when(F.col("side") == s, F.col(_ROW)), ignorenulls=True).alias(s)
            for s in (_BEFORE, _NOW)
        )
    )
    same = _all(
        _comparable(F.col(f"{_BEFORE}.{f.name}"), f.dataType).eqNullSafe(
            _comparable(F.col(f"{_NOW}.{f.name}"), f.dataType)
        )
        for f in now.frame.select(*names).schema
    )
    new = F.array(_change(_NOW, RowKind.INSERT))
    gone = F.array(_change(_BEFORE, RowKind.DELETE))
    after = _change(_NOW, RowKind.UPDATE_AFTER)
    replaced = F.array(_change(_BEFORE, RowKind.UPDATE_BEFORE), after) if pairs else F.array(after)
    changes = F.when(F.col(_BEFORE).isNull(), new).when(F.col(_NOW).isNull(), gone).otherwise(replaced)
    is_other = F.col(_BEFORE).isNull() | F.col(_NOW).isNull() | ~same
    return _exploded(rows.where(is_other), changes, names)


def _by_count(before: Content, now: Content, pairs: bool) -> DataFrame:
    names = [f"c{place}" for place in range(now.width)]
    taken = before.frame.withColumn(_COUNT, -F.col(_COUNT))
    left = _counted(now.frame.select(*names, _COUNT).unionAll(taken.select(*names, _COUNT)), now.width).frame
    row = F.struct(*names)
    kind = F.when(F.col(_COUNT) > 0, int(RowKind.INSERT)).otherwise(int(RowKind.DELETE)).cast("tinyint")
    one = F.struct(row.alias(_ROW), kind.alias("kind"))
    return _exploded(left, F.array_repeat(one, F.abs(F.col(_COUNT)).cast("int")), names)


def _counted(rows: DataFrame, width: int) -> Content:
    """Equal rows as one, with their number; none where it is 0."""
    names = [f"c{place}" for place in range(width)]
    by = [_comparable(F.col(f.name), f.dataType).alias(f"k{f.name}") for f in rows.select(*names).schema]
    made = rows.groupBy(*by).agg(*(F.first(name).alias(name) for name in names), F.sum(_COUNT).alias(_COUNT))
    return Content(frame=made.where(f"{_COUNT} <> 0").select(*names, _COUNT), width=width, keys=())


def _change(side: str, kind: RowKind) -> Column:
    return F.struct(F.col(side).alias(_ROW), F.lit(int(kind)).cast("tinyint").alias("kind"))


def _exploded(rows: DataFrame, changes: Column, names: Sequence[str]) -> DataFrame:
    each = rows.select(F.explode(changes).alias("change"))
    columns = [F.col(f"change.{_ROW}.{name}").alias(name) for name in names]
    return each.select(*columns, F.col("change.kind").alias(KIND_COLUMN))


def _comparable(column: Column, kind: DataType) -> Column:
    """Spark has no equality of maps."""
    return F.to_json(F.struct(column)) if "map<" in kind.simpleString() else column


def _all(conditions: Iterable[Column]) -> Column:
    found = F.lit(True)
    for condition in conditions:
        found = found & condition
    return found


@dataclass(frozen=True, slots=True)
class _Reader:
    """The rows of a task's files; ``width``: of columns that go by place."""

    storage: Storage
    width: int

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for name in assigned(batches):
            with self.storage.open(name) as file, pa.ipc.open_stream(file) as reader:
                for batch in reader:
                    beside = batch.schema.names[self.width :]
                    yield batch.rename_columns([*(f"c{place}" for place in range(self.width)), *beside])
