"""OVER in batch: ranking and shifts are Spark's window functions, aggregates are the streaming kernel's.

Spark has no DISTINCT in windows and other result types, so aggregates run where each partition's rows
are brought together: one exchange per partitioning, the rows of a task in memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from tidemill.changelog.rowkind import SEQUENCE_COLUMN
from tidemill.connectors.arrow_maps import map_batches
from tidemill.functions.values import is_positive, marked
from tidemill.operators.over.operator import OverSpec, with_results
from tidemill.operators.over.window import check_supported
from tidemill.plan.expressions import OverCall, SortKey
from tidemill.runtime.compile.over import over_function
from tidemill.runtime.compile.schemas import columns_of
from tidemill.runtime.spark.batch_frames.relation import Relation
from tidemill.types.logical import APPROXIMATE_TYPES, Field
from tidemill.types.physical import quote, spark_schema, spark_type

RANKING = ("ROW_NUMBER", "RANK", "DENSE_RANK", "PERCENT_RANK", "CUME_DIST")
"""Spark's names, too."""


def over_rows(
    calls: tuple[OverCall, ...],
    inputs: tuple[Field, ...],
    fields: tuple[Field, ...],
    below: Relation,
    last_first: bool,
) -> Relation | DataFrame:
    """``below`` (of ``inputs``, perhaps hidden columns) with a column per call; ``fields`` is all of them.

    The calls share their partition and order. With ``$seq`` below, rows that are equal in a ROW_NUMBER's
    order are numbered as they came, with ``last_first`` the other way round.
    """
    made = list(zip(calls, fields[len(inputs) :], strict=True))
    ranked = [(call, field) for call, field in made if call.function in RANKING]
    if ranked:
        texts = [f"{ranking(c, inputs, below, last_first)} AS {quote(f.name)}" for c, f in ranked]
        below = below.with_columns(texts, tuple(f.name for _, f in ranked))
    others = [(call, field) for call, field in made if call.function not in RANKING]
    return _aggregated(others, inputs, below.frame()) if others else below


def sort_texts(key: SortKey, fields: tuple[Field, ...]) -> list[str]:
    """What ORDER BY says for ``key``, NULLs where Flink puts them; of FLOATs -0.0 is below 0.0."""
    field = fields[key.index]
    order = f"{'ASC' if key.ascending else 'DESC'} NULLS {'FIRST' if key.nulls_first else 'LAST'}"
    found = [f"{quote(field.name)} {order}"]
    if isinstance(field.type, APPROXIMATE_TYPES):
        found.append(f"{is_positive(quote(field.name))} {order}")
    return found


def ranking(call: OverCall, inputs: tuple[Field, ...], below: Relation, last_first: bool) -> str:
    """The rank as the function's own type."""
    keys = [marked(quote(inputs[i].name), inputs[i].type) for i in call.partition]
    order = [text for k in call.order for text in sort_texts(k, inputs)]
    if call.function == "ROW_NUMBER" and SEQUENCE_COLUMN in below.columns:
        order.append(f"{quote(SEQUENCE_COLUMN)} {'DESC' if last_first else 'ASC'}")
    parts = [f"PARTITION BY {', '.join(keys)}"] * bool(keys) + [f"ORDER BY {', '.join(order)}"] * bool(order)
    return f"CAST({call.function}() OVER ({' '.join(parts)}) AS {spark_type(call.type)})"


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
