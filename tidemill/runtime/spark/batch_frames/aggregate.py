"""Aggregates in batch: the functions' own Spark translations, FILTER, DISTINCT and order included."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from tidemill.changelog.rowkind import SEQUENCE_COLUMN
from tidemill.errors import InternalError, NotSupportedError
from tidemill.functions import registry
from tidemill.functions.api import AggregateFunction, SparkAggregateCall
from tidemill.physical.batch.nodes import Aggregate
from tidemill.plan.expressions import AggregateCall
from tidemill.runtime.spark.batch_frames.kernel import kernel_frame
from tidemill.types.physical import quote


def function_of(call: AggregateCall) -> AggregateFunction:
    function = registry.aggregate(call.function)
    if function is None:
        raise InternalError(f"aggregate {call.function} is bound but not registered")
    return function


def needs_order(node: Aggregate) -> bool:
    """Whether any call depends on arrival order."""
    return any(c.user or function_of(c).ordered for c in node.calls)


def aggregate_frame(node: Aggregate, below: DataFrame, zone: str) -> DataFrame:
    """``below`` (with ``$seq`` where needs_order) grouped; the columns are the node's fields."""
    if any(c.user for c in node.calls):
        return kernel_frame(node, below)
    names = [f.name for f in node.source.fields]
    keys = [F.col(quote(names[k])).alias(f.name) for k, f in zip(node.keys, node.fields, strict=False)]
    if not node.calls:
        return below.select(*keys).distinct()
    return below.groupBy(*keys).agg(*_columns(node, zone))


def _columns(node: Aggregate, zone: str) -> list[Column]:
    fields = node.fields[len(node.keys) :]
    ordered = needs_order(node)
    return [
        F.expr(_text(node, call, zone, ordered)).alias(f.name)
        for call, f in zip(node.calls, fields, strict=True)
    ]


def _text(node: Aggregate, call: AggregateCall, zone: str, ordered: bool) -> str:
    function = function_of(call)
    if function.spark is None:
        raise NotSupportedError(f"{call.function} in batch mode is not supported")
    inputs = node.source.fields
    return function.spark(
        SparkAggregateCall(
            args=tuple(quote(inputs[a].name) for a in call.args),
            arg_types=tuple(inputs[a].type for a in call.args),
            literals=(None,) * len(call.args),
            result=call.type,
            options=dict(call.options),
            zone=zone,
            distinct=call.distinct,
            where="" if call.filter is None else quote(inputs[call.filter].name),
            sequence=quote(SEQUENCE_COLUMN) if ordered else "",
        )
    )
