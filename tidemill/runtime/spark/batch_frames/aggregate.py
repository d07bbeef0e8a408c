"""Aggregates in batch: the functions' own Spark translations, FILTER, DISTINCT and order included."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from tidemill.changelog.rowkind import SEQUENCE_COLUMN
from tidemill.errors import InternalError, NotSupportedError
from tidemill.functions import registry
from tidemill.functions.api import AggregateFunction, SparkAggregateCall
from tidemill.functions.decimal_sums import needs_kernel
from tidemill.functions.values import marked, unmarked
from tidemill.physical.batch.nodes import Aggregate
from tidemill.plan.expressions import AggregateCall
from tidemill.runtime.spark.batch_frames.kernel import kernel_frame
from tidemill.types.physical import quote
from tidemill.types.values import has_floats


def function_of(call: AggregateCall) -> AggregateFunction:
    function = registry.aggregate(call.function)
    if function is None:
        raise InternalError(f"aggregate {call.function} is bound but not registered")
    return function


def needs_order(node: Aggregate) -> bool:
    """Whether any call depends on arrival order."""
    return _by_kernel(node) or any(function_of(c).ordered for c in node.calls)


def _by_kernel(node: Aggregate) -> bool:
    """Whether some call cannot be said in Spark SQL: one of the user's, a DISTINCT sum of long decimals."""
    return any(c.user or _is_long_sum(c, node) for c in node.calls)


def _is_long_sum(call: AggregateCall, node: Aggregate) -> bool:
    if call.function not in ("SUM", "$SUM0", "AVG"):
        return False
    return needs_kernel(node.source.fields[call.args[0]].type, call.distinct)


def aggregate_frame(node: Aggregate, below: DataFrame, zone: str) -> DataFrame:
    """``below`` (with ``$seq`` where needs_order) grouped; the columns are the node's fields."""
    if _by_kernel(node):
        return kernel_frame(node, below)
    inputs = node.source.fields
    grouped = tuple(zip((inputs[k] for k in node.keys), node.fields, strict=False))
    keys = [F.expr(marked(quote(own.name), own.type)).alias(f.name) for own, f in grouped]
    calls = _columns(node, zone)
    found = below.groupBy(*keys).agg(*calls) if calls else below.select(*keys).distinct()
    if not any(has_floats(own.type) for own, _ in grouped):
        return found
    shown = [F.expr(unmarked(quote(f.name), own.type)).alias(f.name) for own, f in grouped]
    return found.select(*shown, *(F.col(quote(f.name)) for f in node.fields[len(grouped) :]))


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
