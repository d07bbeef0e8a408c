"""The kinds of the rows that DELETE, UPDATE and MERGE INTO hand to a sink."""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from tidemill.changelog.rowkind import INSERT_ONLY, KIND_COLUMN, RowKind
from tidemill.plan import nodes as n
from tidemill.types.physical import quote

_ROWS = "$rows"


def with_kinds(frame: DataFrame, target: n.Sink) -> DataFrame:
    """The rows as the sink takes them. The job fails if two rows of a MERGE have the same key."""
    if target.merges:
        frame = _unique(frame, target)
        return frame.drop(KIND_COLUMN) if target.kinds == INSERT_ONLY else frame
    if target.kinds == INSERT_ONLY:
        return frame
    return frame.withColumn(KIND_COLUMN, F.lit(int(RowKind.DELETE)).cast("tinyint"))


def _unique(frame: DataFrame, target: n.Sink) -> DataFrame:
    keys = [F.col(quote(name)) for name in target.table.primary_key]
    if not keys:
        return frame  # The sink has rules of its own for what is one row, and checks them.
    what = f"MERGE INTO '{target.table.path}': two source rows match or insert the same target row: "
    said = [F.lit(what)]
    for number, (name, key) in enumerate(zip(target.table.primary_key, keys, strict=True)):
        said += [F.lit(f"{', ' * bool(number)}{name} = "), key.cast("string")]
    frame = frame.withColumn(_ROWS, F.count(F.lit(1)).over(Window.partitionBy(*keys)))
    alone = F.col(quote(_ROWS)) == 1
    failure = F.raise_error(F.concat(*said)).cast("boolean")
    # A filter: Spark would leave out a column that nobody reads, and its check.
    return frame.filter(F.when(alone, True).otherwise(failure)).drop(_ROWS)
