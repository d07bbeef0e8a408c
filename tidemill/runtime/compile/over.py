"""OverAggregate -> the OVER kernel."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa

from tidemill.changelog.rowkind import INSERT_ONLY, RETRACTIONS, RowKind
from tidemill.errors import NotSupportedError
from tidemill.operators.aggregates.api import AggregateSpec
from tidemill.operators.aggregates.variance import IN_STEPS, VARIANCES
from tidemill.operators.over.by_time import OverByTimeSpec
from tidemill.operators.over.operator import OverFunction, OverSpec
from tidemill.operators.over.window import Frame, check_supported
from tidemill.operators.rows.ordering import OrderKey
from tidemill.physical import nodes as p
from tidemill.physical.conditions import constant
from tidemill.physical.digests import PASSING
from tidemill.physical.names import free_name
from tidemill.physical.operators.over_aggregate import share_operator
from tidemill.plan.expressions import FrameBound, OverCall
from tidemill.runtime import graph as g
from tidemill.runtime.compile.aggregate import plain_spec
from tidemill.runtime.compile.context import CompileContext
from tidemill.runtime.compile.keyed import keyed
from tidemill.runtime.compile.over_time import over_time
from tidemill.runtime.compile.rank import refuse_arrival_order
from tidemill.runtime.compile.row_names import NamedRows, named_rows, over_calls
from tidemill.runtime.compile.schemas import columns_of, names
from tidemill.runtime.compile.shared import build
from tidemill.types import logical as t
from tidemill.types.physical import arrow_type

MILLISECONDS_A_DAY = 86_400_000


@build.register
def _(node: p.OverAggregate, context: CompileContext, sequenced: bool) -> g.ExecNode:
    bottom, windows = _chain(node)
    rows = named_rows(context.state, "over", node, bottom.input)
    inputs = rows.fields[0]
    taken = names(inputs)
    for call in node.calls:
        refuse_arrival_order(bottom.input, call.order)
    functions = tuple(
        over_function(call, inputs, free_name(field.name, taken), arrival=window.time == "PROCTIME")
        for window, fields in windows
        for call, field in zip(window.calls, fields, strict=True)
    )
    for function in functions:
        check_supported(function.call)
    joined = replace(node, input=bottom.input)
    asked = [call for window, _ in windows for call in window.calls]
    rows = replace(rows, calls=over_calls(context.state, bottom.input, asked, rows))
    if node.time:
        by_time = _by_time(joined, node, functions, rows, context, sequenced)
        if node.time == "ROWTIME":
            return over_time(by_time, "over", joined, node, node.fields, context, rows)
        return keyed(joined, by_time, "over", by_time.partition, context, sequenced, rows=rows, whole=node)
    spec = OverSpec(
        columns=columns_of(inputs),
        partition=rows.keys(node.calls[0].partition),
        functions=functions,
        update_before=RowKind.UPDATE_BEFORE in node.traits.kinds,
        insert_only=node.traits.kinds == INSERT_ONLY,
        sequence=sequenced,
        state_ttl=node.state_ttl,
        late=rows.late_marked(rows.late) if bottom.input.traits.kinds & RETRACTIONS else rows.late,
    )
    return keyed(joined, spec, "over", spec.partition, context, sequenced, rows=rows, whole=node)


def _by_time(
    joined: p.OverAggregate,
    whole: p.OverAggregate,
    functions: tuple[OverFunction, ...],
    rows: NamedRows,
    context: CompileContext,
    sequenced: bool,
) -> OverByTimeSpec:
    """Windows by time; ``joined`` stands for all of ``whole`` over their common input."""
    call, inputs = joined.calls[0], rows.fields[0]
    return OverByTimeSpec(
        columns=columns_of(inputs),
        partition=rows.keys(call.partition),
        time=inputs[call.order[0].index].name,
        functions=functions,
        lag=_lag(functions, joined.input, names(inputs)),
        late=rows.late,
        by_clock=whole.time == "PROCTIME",
        state_ttl=whole.state_ttl,
        sequence=sequenced,
        keeps_time=whole.time == "ROWTIME" and context.digests.of(whole) in context.timed_digests,
    )


def _lag(functions: tuple[OverFunction, ...], source: p.PhysicalNode, columns: tuple[str, ...]) -> int | None:
    """The most rows that LAG looks back; None if the offset is not a constant. ``columns``: the functions'
    names for the columns of ``source``."""
    steps = [_steps(f, source, columns) for f in functions if f.call.function == "LAG"]
    known = [s for s in steps if s is not None]
    return max(known, default=0) if len(known) == len(steps) else None


def _steps(function: OverFunction, source: p.PhysicalNode, columns: tuple[str, ...]) -> int | None:
    if len(function.call.args) == 1:
        return 1
    while isinstance(source, PASSING):
        source = source.input
    if not isinstance(source, p.Calc):
        return None
    expr = source.projections[columns.index(function.call.args[1])]
    value = constant(expr)
    return value if isinstance(value, int) and value >= 0 else None


_Windows = list[tuple[p.OverAggregate, tuple[t.Field, ...]]]


def _chain(node: p.OverAggregate) -> tuple[p.OverAggregate, _Windows]:
    """The lowest of the OverAggregates below that share the partition, and all of them upwards with
    the fields they add: windows of one partition are one operator with one state."""
    windows: _Windows = []
    while True:
        windows.insert(0, (node, node.fields[len(node.input.fields) :]))
        below = node.input.input if isinstance(node.input, p.Exchange) else node.input
        if not isinstance(below, p.OverAggregate) or not share_operator(node, below):
            return node, windows
        node = below


def over_function(
    call: OverCall, inputs: tuple[t.Field, ...], name: str, *, arrival: bool = False
) -> OverFunction:
    """The call under the name of its column. ``arrival``: ordered by processing time."""
    order = tuple(
        OrderKey(name=inputs[k.index].name, ascending=k.ascending, nulls_first=k.nulls_first)
        for k in call.order
    )
    return OverFunction(
        call=_call(call, inputs, name),
        order=order,
        frame=_frame(call, inputs, arrival),
    )


def _call(call: OverCall, inputs: tuple[t.Field, ...], name: str) -> AggregateSpec:
    spec = plain_spec(call, inputs, name)
    return replace(spec, options=(*spec.options, IN_STEPS)) if _in_steps(call, inputs) else spec


def _in_steps(call: OverCall, inputs: tuple[t.Field, ...]) -> bool:
    """Whether Flink computes in whole numbers what GROUP BY computes in doubles."""
    return call.function in VARIANCES and isinstance(inputs[call.args[0]].type, t.INTEGER_TYPES)


def _frame(call: OverCall, inputs: tuple[t.Field, ...], arrival: bool) -> Frame:
    offsets = [b.offset for b in (call.lower, call.upper) if b.offset]
    if call.rows or not offsets:
        # By arrival a row's only peer is itself, but where a span of time is asked for.
        return Frame(rows=call.rows or arrival, lower=call.lower.offset, upper=call.upper.offset)
    if len(call.order) != 1:
        raise NotSupportedError("RANGE with an offset needs one numeric or time column in ORDER BY")
    kind = inputs[call.order[0].index].type
    return Frame(rows=False, lower=_scaled(call.lower, kind), upper=_scaled(call.upper, kind))


def _scaled(bound: FrameBound, kind: t.LogicalType) -> int | None:
    """The offset (milliseconds for times) in the units of the order column's carrier."""
    if not bound.offset:
        return bound.offset
    if isinstance(kind, t.TimestampType | t.LocalZonedTimestampType):
        return bound.offset * 1000
    if isinstance(kind, t.DateType):
        if bound.offset % MILLISECONDS_A_DAY:
            raise NotSupportedError("RANGE over a DATE needs an offset of whole days")
        return bound.offset // MILLISECONDS_A_DAY
    if isinstance(kind, t.DecimalType) and kind.precision <= 18:
        return bound.offset * int(10**kind.scale)
    if isinstance(kind, t.TimeType) or pa.types.is_integer(arrow_type(kind)):
        return bound.offset
    if pa.types.is_floating(arrow_type(kind)):
        return bound.offset
    raise NotSupportedError(f"RANGE with an offset over {kind} is not supported")
