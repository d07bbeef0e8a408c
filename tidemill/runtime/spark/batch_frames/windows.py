"""Rows with their windows in batch mode: operators by window are then plain aggregations, rankings and joins.

TUMBLE, HOP and CUMULATE are a projection that gives a row for every window. SESSION and DYNAMIC_CUMULATE
need the rows of a key in order of time: a window begins at a row that is more than the gap behind the row
before it. Windows without a gap all end with the step of the last row, which a separate query finds.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from tidemill.functions.values import marked
from tidemill.operators.window.assigners.session import KIND as SESSION
from tidemill.physical.windows import window_of
from tidemill.plan import nodes as n
from tidemill.runtime.compile.window_text import (
    growing_rows,
    milliseconds,
    window_columns,
    window_rows,
)
from tidemill.types.logical import Field
from tidemill.types.physical import quote

_AT = "$at"
_SESSION = "$session"
_FIRST, _LAST = "$first", "$last"


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
    if not node.kind.is_data_driven:
        return frame.selectExpr(*kept, *hidden, window_rows(window, time, names))
    keys = [F.expr(marked(quote(fields[i].name), fields[i].type)) for i in node.partition]
    frame = frame.selectExpr(*kept, *hidden, f"{milliseconds(window, time)} AS {quote(_AT)}")
    bounds = _sessions(frame, keys, node.size) if node.size else _endless(frame, keys)
    if node.kind == SESSION:
        return bounds.selectExpr(*kept, *hidden, *window_columns(window, quote(_FIRST), quote(_LAST), names))
    rows = growing_rows(window, quote(_AT), (quote(_FIRST), quote(_LAST)), names)
    return bounds.selectExpr(*kept, *hidden, rows)


def _sessions(frame: DataFrame, keys: list[Column], gap: int) -> DataFrame:
    """Each row with the time of its session's first row, and the end of the session."""
    at = F.col(quote(_AT))
    by_time = Window.partitionBy(*keys).orderBy(at)
    begins = F.lag(at).over(by_time).isNull() | (at > F.lag(at).over(by_time) + F.lit(gap))
    count = F.sum(begins.cast("bigint")).over(by_time.rowsBetween(Window.unboundedPreceding, 0))
    frame = frame.withColumn(_SESSION, count)
    whole = Window.partitionBy(*keys, F.col(quote(_SESSION)))
    return frame.withColumns({_FIRST: F.min(at).over(whole), _LAST: F.max(at).over(whole) + F.lit(gap)})


def _endless(frame: DataFrame, keys: list[Column]) -> DataFrame:
    """Each row with the time of its key's first row, and the end of all time that rows tell of."""
    at = F.col(quote(_AT))
    last = frame.agg((F.max(at) + F.lit(1)).alias(_LAST))
    return frame.withColumn(_FIRST, F.min(at).over(Window.partitionBy(*keys))).crossJoin(F.broadcast(last))
