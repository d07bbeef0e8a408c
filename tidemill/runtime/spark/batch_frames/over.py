"""OVER in batch: ranks and exact aggregates are Spark's window functions, all else is the streaming kernel's.

Spark has no DISTINCT in windows, nor spans of values that are no numbers; sums of doubles and the two zeros
go by the kernel's order. The kernel runs where each partition's rows are brought together: one exchange per
partitioning, the rows of a task in memory, a Python worker.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from tidemill.changelog.rowkind import SEQUENCE_COLUMN
from tidemill.connectors.arrow_maps import map_batches, type_text
from tidemill.functions import registry
from tidemill.functions.api import SparkAggregateCall
from tidemill.functions.decimal_sums import needs_kernel
from tidemill.functions.values import is_positive, marked
from tidemill.operators.over.operator import OverSpec, with_results
from tidemill.operators.over.window import check_supported
from tidemill.physical.batch.nodes import OverAggregate
from tidemill.plan.expressions import FrameBound, OverCall, SortKey
from tidemill.runtime.compile.over import over_function
from tidemill.runtime.compile.schemas import columns_of
from tidemill.runtime.spark.batch_frames.relation import Relation, aliased
from tidemill.types.logical import APPROXIMATE_TYPES, Field
from tidemill.types.physical import quote, spark_schema, spark_type
from tidemill.types.values import has_floats

RANKING = ("ROW_NUMBER", "RANK", "DENSE_RANK", "PERCENT_RANK", "CUME_DIST")
"""Spark's names, too."""
EXACT = ("COUNT", "SUM", "$SUM0", "AVG", "MIN", "MAX")
"""What Spark aggregates over a window as over a group, but for approximate numbers."""
_FARTHEST = (1 << 31) - 1
"""So many rows Spark counts; no partition of a task has more."""


def over_rows(node: OverAggregate, below: Relation, zone: str, quick: bool) -> Relation | DataFrame:
    """``below`` (the node's source, perhaps hidden columns) with a column per call.

    The calls share their partition and order. With ``$seq`` below, rows that are equal in a ROW_NUMBER's
    order are numbered as they came, or the other way round (``last_first``).
    """
    inputs = node.input.fields
    added = list(zip(node.calls, node.fields[len(inputs) :], strict=True))
    texts = {f.name: _in_spark(call, node, below, zone, quick) for call, f in added}
    known = {name: text for name, text in texts.items() if text is not None}
    if known:
        below = below.with_columns(aliased([*known.values()], [*known]), tuple(known))
    others = [(call, field) for call, field in added if field.name not in known]
    return _aggregated(others, inputs, below.frame()) if others else below


def _in_spark(call: OverCall, node: OverAggregate, below: Relation, zone: str, quick: bool) -> str | None:
    """The call as Spark's window function; None where the kernel has to compute it."""
    inputs = node.input.fields
    if call.function in RANKING:
        return ranking(call, inputs, below, node.last_first)
    types = tuple(inputs[a].type for a in call.args)
    function = registry.aggregate(call.function) if call.function in EXACT else None
    if function is None or function.spark is None or call.distinct or not _has_spark_frame(call):
        return None
    if any(has_floats(kind) or needs_kernel(kind, False) for kind in types):
        return None
    frame = f" {_frame(call)}" if call.order else ""
    return function.spark(
        SparkAggregateCall(
            args=tuple(quote(inputs[a].name) for a in call.args),
            arg_types=types,
            literals=(None,) * len(types),
            result=call.type,
            options=dict(call.options),
            zone=zone,
            quick=quick,
            over=_window(call, inputs) + frame,
        )
    )


def _has_spark_frame(call: OverCall) -> bool:
    """Rows that nothing orders, spans of values, frames that are empty or out of reach are the kernel's."""
    lower, upper = call.lower.offset, call.upper.offset
    if not call.rows:
        return not (lower or upper)
    first, last = (-math.inf if lower is None else lower), (math.inf if upper is None else upper)
    return bool(call.order) and first <= min(last, _FARTHEST) and last >= -_FARTHEST


def _frame(call: OverCall) -> str:
    return f"{'ROWS' if call.rows else 'RANGE'} BETWEEN {_bound(call.lower)} AND {_bound(call.upper)}"


def _bound(bound: FrameBound) -> str:
    side = "PRECEDING" if bound.preceding else "FOLLOWING"
    if bound.offset is None or abs(bound.offset) > _FARTHEST:
        return f"UNBOUNDED {side}"
    return f"{abs(bound.offset)} {side}" if bound.offset else "CURRENT ROW"


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
    arrival = ""
    if call.function == "ROW_NUMBER" and SEQUENCE_COLUMN in below.columns:
        arrival = f"{quote(SEQUENCE_COLUMN)} {'DESC' if last_first else 'ASC'}"
    elif not call.order:
        # Spark numbers no rows without an order, be it one of which all are equal.
        arrival = "1"
    return f"CAST({call.function}() OVER ({_window(call, inputs, arrival)}) AS {spark_type(call.type)})"


def _window(call: OverCall, inputs: tuple[Field, ...], arrival: str = "") -> str:
    """The call's partition and order, ``arrival`` behind it."""
    keys = [marked(quote(inputs[i].name), inputs[i].type) for i in call.partition]
    order = [text for k in call.order for text in sort_texts(k, inputs)] + [arrival] * bool(arrival)
    parts = [f"PARTITION BY {', '.join(keys)}"] * bool(keys) + [f"ORDER BY {', '.join(order)}"] * bool(order)
    return " ".join(parts)


def _aggregated(made: list[tuple[OverCall, Field]], inputs: tuple[Field, ...], frame: DataFrame) -> DataFrame:
    functions = tuple(over_function(call, inputs, field.name) for call, field in made)
    for function in functions:
        check_supported(function.call)
    partition = tuple(inputs[i].name for i in made[0][0].partition)
    spec = OverSpec(columns=columns_of(inputs), partition=partition, functions=functions)
    keys = [F.col(quote(k)) for k in spec.partition]
    together = frame.repartition(*keys) if keys else frame.coalesce(1)
    columns = [f"{quote(f.name)} {type_text(f.dataType)}" for f in frame.schema.fields]
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
