"""OVER in batch: ranking and shifts are Spark's window functions, aggregates are the streaming kernel's.

Spark has no DISTINCT in windows and other result types, so aggregates run where each partition's rows
are brought together: one exchange per partitioning, the rows of a task in memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.window import Window

from tidemill.changelog.rowkind import SEQUENCE_COLUMN
from tidemill.operators.over.operator import OverSpec, with_results
from tidemill.operators.over.window import check_supported
from tidemill.plan import nodes as n
from tidemill.plan.expressions import OverCall, SortKey
from tidemill.runtime.compile.over import over_function
from tidemill.runtime.compile.rank import columns_of
from tidemill.types.logical import Field
from tidemill.types.physical import quote, spark_schema

RANKING: dict[str, Callable[[], Column]] = {
    "ROW_NUMBER": F.row_number,
    "RANK": F.rank,
    "DENSE_RANK": F.dense_rank,
    "PERCENT_RANK": F.percent_rank,
    "CUME_DIST": F.cume_dist,
}


def over_frame(node: n.Over, frame: DataFrame, *, last_first: bool = False) -> DataFrame:
    """``frame`` (the input's fields, perhaps hidden columns) with a column per call.

    With ``$seq`` in it, rows that are equal in a ROW_NUMBER's order are numbered as they came, with
    ``last_first`` the other way round.
    """
    windows: dict[tuple[object, ...], list[int]] = {}
    for i, call in enumerate(node.calls):
        ranking = call.function in RANKING
        windows.setdefault((ranking, call.partition, call.order if ranking else ()), []).append(i)
    for members in windows.values():
        calls = tuple(node.calls[i] for i in members)
        fields = tuple(node.fields[len(node.input.fields) + i] for i in members)
        if calls[0].function in RANKING:
            frame = _ranked(node, calls, fields, frame, last_first)
        else:
            frame = _aggregated(node, calls, fields, frame)
    return frame


def sort_column(key: SortKey, fields: tuple[Field, ...]) -> Column:
    """The Spark sort column of ``key``, NULLs where Flink puts them."""
    column = F.col(quote(fields[key.index].name))
    if key.ascending:
        return column.asc_nulls_first() if key.nulls_first else column.asc_nulls_last()
    return column.desc_nulls_first() if key.nulls_first else column.desc_nulls_last()


def _ranked(
    node: n.Over,
    calls: tuple[OverCall, ...],
    fields: tuple[Field, ...],
    frame: DataFrame,
    last_first: bool,
) -> DataFrame:
    inputs = node.input.fields
    partition = [F.col(quote(inputs[i].name)) for i in calls[0].partition]
    order = [sort_column(k, inputs) for k in calls[0].order]
    ties = [F.col(quote(SEQUENCE_COLUMN))] if SEQUENCE_COLUMN in frame.columns else []
    for call, field in zip(calls, fields, strict=True):
        decided = [c.desc() if last_first else c.asc() for c in ties] if call.function == "ROW_NUMBER" else []
        window = Window.partitionBy(*partition).orderBy(*order, *decided)
        kind = spark_schema((field,)).removeprefix(quote(field.name)).strip()
        frame = frame.withColumn(field.name, RANKING[call.function]().over(window).cast(kind))
    return frame


def _aggregated(
    node: n.Over, calls: tuple[OverCall, ...], fields: tuple[Field, ...], frame: DataFrame
) -> DataFrame:
    inputs = node.input.fields
    functions = tuple(over_function(c, inputs, f.name) for c, f in zip(calls, fields, strict=True))
    for function in functions:
        check_supported(function.call)
    partition = tuple(inputs[i].name for i in calls[0].partition)
    spec = OverSpec(columns=columns_of(inputs), partition=partition, functions=functions)
    keys = [F.col(quote(k)) for k in spec.partition]
    together = frame.repartition(*keys) if keys else frame.coalesce(1)
    made = frame.schema.fields
    columns = [f"{quote(f.name)} {f.dataType.simpleString()}" for f in made]
    task = _WindowTask(spec=spec, names=tuple(f.name for f in fields))
    return together.mapInArrow(task, ", ".join([*columns, spark_schema(fields)]))


@dataclass(frozen=True, slots=True, kw_only=True)
class _WindowTask:
    """All rows of a Spark partition with the calls' results behind them."""

    spec: OverSpec
    names: tuple[str, ...]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        pieces = [b for b in batches if b.num_rows]
        if not pieces:
            return
        table = pa.Table.from_batches(pieces)
        results = with_results(self.spec, table)
        for name, values in zip(self.names, results, strict=True):
            table = table.append_column(name, values)
        yield from table.combine_chunks().to_batches()
