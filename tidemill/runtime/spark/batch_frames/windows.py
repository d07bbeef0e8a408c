"""Rows with their windows in batch: what works by window then is plain aggregation, ranking and joining.

TUMBLE, HOP and CUMULATE are a projection that gives a row for every window. SESSION needs the rows of a
key in order of time: a session begins where a row is more than the gap behind the one before it."""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from tidemill.physical.windows import window_of
from tidemill.plan import nodes as n
from tidemill.runtime.compile.window_text import milliseconds, window_columns, window_rows
from tidemill.types.logical import Field
from tidemill.types.physical import quote

_AT = "$at"
_SESSION = "$session"


def windowed(
    node: n.WindowTableFunction, frame: DataFrame, fields: tuple[Field, ...], hidden: list[str]
) -> DataFrame:
    """``frame`` has the input's fields, then ``hidden``; the result ``fields`` and ``hidden``."""
    width = len(fields) - 3
    kept = [quote(f.name) for f in fields[:width]]
    names = tuple(f.name for f in fields[width:])
    time = quote(fields[node.time].name)
    # A row without a time is in no window.
    frame = frame.where(F.col(time).isNotNull())
    window = window_of(node)
    if node.kind is not n.WindowKind.SESSION:
        return frame.selectExpr(*kept, *hidden, window_rows(window, time, names))
    keys = [F.col(quote(fields[i].name)) for i in node.partition]
    frame = frame.selectExpr(*kept, *hidden, f"{milliseconds(window, time)} AS {quote(_AT)}")
    at = F.col(quote(_AT))
    by_time = Window.partitionBy(*keys).orderBy(at)
    begins = F.lag(at).over(by_time).isNull() | (at > F.lag(at).over(by_time) + F.lit(node.size))
    count = F.sum(begins.cast("bigint")).over(by_time.rowsBetween(Window.unboundedPreceding, 0))
    frame = frame.withColumn(_SESSION, count)
    whole = Window.partitionBy(*keys, F.col(quote(_SESSION)))
    bounds = frame.withColumns(
        {"$first": F.min(at).over(whole), "$last": F.max(at).over(whole) + F.lit(node.size)}
    )
    return bounds.selectExpr(*kept, *hidden, *window_columns(window, "`$first`", "`$last`", names))
