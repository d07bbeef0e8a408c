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
from tidemill.connectors.arrow_maps import map_batches
from tidemill.functions.values import is_positive, marked
from tidemill.operators.over.operator import OverSpec, with_results
from tidemill.operators.over.window import check_supported
from tidemill.plan.expressions import OverCall, SortKey
from tidemill.runtime.compile.over import over_function
from tidemill.runtime.compile.rank import columns_of
from tidemill.types.logical import APPROXIMATE_TYPES, Field
from tidemill.types.physical import quote, spark_schema

RANKING: dict[str, Callable[[], Column]] = {
    "ROW_NUMBER": F.row_number,
    "RANK": F.rank,
    "DENSE_RANK": F.dense_rank,
    "PERCENT_RANK": F.percent_rank,
    "CUME_DIST": F.cume_dist,
}


def over_frame(
    calls: tuple[OverCall, ...],
    inputs: tuple[Field, ...],
    fields: tuple[Field, ...],
    frame: DataFrame,
    last_first: bool,
) -> DataFrame:
    """``frame`` (of ``inputs``, perhaps hidden columns) with a column per call; ``fields`` is all of them.

    The calls share their partition and order. With ``$seq`` in the frame, rows that are equal in a
    ROW_NUMBER's order are numbered as they came, with ``last_first`` the other way round.
    """
    made = list(zip(calls, fields[len(inputs) :], strict=True))
    for call, field in made:
        if call.function in RANKING:
            frame = _ranked(call, field, inputs, frame, last_first)
    others = [(call, field) for call, field in made if call.function not in RANKING]
    return _aggregated(others, inputs, frame) if others else frame


def sort_columns(key: SortKey, fields: tuple[Field, ...]) -> list[Column]:
    """The Spark sort columns of ``key``, NULLs where Flink puts them; of FLOATs -0.0 is below 0.0."""
    field = fields[key.index]
    found = [_placed(F.col(quote(field.name)), key)]
    if isinstance(field.type, APPROXIMATE_TYPES):
        found.append(_placed(F.expr(is_positive(quote(field.name))), key))
    return found


def _placed(column: Column, key: SortKey) -> Column:
    if key.ascending:
        return column.asc_nulls_first() if key.nulls_first else column.asc_nulls_last()
    return column.desc_nulls_first() if key.nulls_first else column.desc_nulls_last()


def _ranked(
    call: OverCall, field: Field, inputs: tuple[Field, ...], frame: DataFrame, last_first: bool
) -> DataFrame:
    partition = [F.expr(marked(quote(inputs[i].name), inputs[i].type)) for i in call.partition]
    order = [column for k in call.order for column in sort_columns(k, inputs)]
    if call.function == "ROW_NUMBER" and SEQUENCE_COLUMN in frame.columns:
        arrival = F.col(quote(SEQUENCE_COLUMN))
        order.append(arrival.desc() if last_first else arrival.asc())
    window = Window.partitionBy(*partition).orderBy(*order)
    kind = spark_schema((field,)).removeprefix(quote(field.name)).strip()
    return frame.withColumn(field.name, RANKING[call.function]().over(window).cast(kind))


def _aggregated(made: list[tuple[OverCall, Field]], inputs: tuple[Field, ...], frame: DataFrame) -> DataFrame:
    functions = tuple(over_function(call, inputs, field.name) for call, field in made)
    for function in functions:
        check_supported(function.call)
    partition = tuple(inputs[i].name for i in made[0][0].partition)
    spec = OverSpec(columns=columns_of(inputs), partition=partition, functions=functions)
    keys = [F.col(quote(k)) for k in spec.partition]
    together = frame.repartition(*keys) if keys else frame.coalesce(1)
    columns = [f"{quote(f.name)} {f.dataType.simpleString()}" for f in frame.schema.fields]
    fields = tuple(field for _, field in made)
    task = _WindowTask(spec=spec, names=tuple(f.name for f in fields))
    return map_batches(together, task, ", ".join([*columns, spark_schema(fields)]))


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
