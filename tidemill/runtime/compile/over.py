"""OverAggregate -> the OVER kernel."""

from __future__ import annotations

import pyarrow as pa

from tidemill.changelog.rowkind import INSERT_ONLY, RowKind
from tidemill.errors import NotSupportedError
from tidemill.operators.aggregates.api import AggregateSpec
from tidemill.operators.ordering import OrderKey
from tidemill.operators.over import OverSpec
from tidemill.operators.over_window import Frame, check_supported
from tidemill.physical import nodes as p
from tidemill.plan.expressions import FrameBound, OverCall
from tidemill.runtime import graph as g
from tidemill.runtime.compile.context import CompileContext
from tidemill.runtime.compile.rank import columns_of, keyed
from tidemill.runtime.compile.stream import compile_node
from tidemill.types import logical as t
from tidemill.types.physical import arrow_type

MILLISECONDS_A_DAY = 86_400_000


@compile_node.register
def _(node: p.OverAggregate, context: CompileContext, sequenced: bool) -> g.ExecNode:
    spec = over_spec(
        node.calls,
        node.input.fields,
        time=node.time,
        update_before=RowKind.UPDATE_BEFORE in node.traits.kinds,
        insert_only=node.traits.kinds == INSERT_ONLY,
        sequence=sequenced,
        state_ttl=node.state_ttl,
    )
    for call in spec.calls:
        check_supported(call)
    return keyed(node, spec, "over", spec.partition, context, sequenced)


def over_spec(
    calls: tuple[OverCall, ...],
    inputs: tuple[t.Field, ...],
    *,
    time: str = "",
    update_before: bool = True,
    insert_only: bool = False,
    sequence: bool = False,
    state_ttl: int = 0,
) -> OverSpec:
    """The spec of calls that share partition, order and frame. ``time`` PROCTIME orders by arrival."""
    first = calls[0]
    arrival = time == "PROCTIME"
    order = tuple(
        OrderKey(name=inputs[k.index].name, ascending=k.ascending, nulls_first=k.nulls_first)
        for k in first.order
    )
    return OverSpec(
        columns=columns_of(inputs),
        partition=tuple(inputs[i].name for i in first.partition),
        order=() if arrival else order,
        frame=_frame(first, inputs, arrival),
        calls=tuple(_call(c, inputs) for c in calls),
        update_before=update_before,
        insert_only=insert_only,
        sequence=sequence,
        state_ttl=state_ttl,
    )


def _call(call: OverCall, inputs: tuple[t.Field, ...]) -> AggregateSpec:
    return AggregateSpec(
        function=call.function,
        args=tuple(inputs[a].name for a in call.args),
        arg_types=tuple(arrow_type(inputs[a].type) for a in call.args),
        result=arrow_type(call.type),
        name=call.name,
        distinct=call.distinct,
        options=call.options,
    )


def _frame(call: OverCall, inputs: tuple[t.Field, ...], arrival: bool) -> Frame:
    offsets = [b.offset for b in (call.lower, call.upper) if b.offset]
    if call.rows or not offsets:
        # No two rows arrive at once: by arrival a row's only peer is itself.
        return Frame(rows=call.rows or arrival, lower=call.lower.offset, upper=call.upper.offset)
    if arrival or len(call.order) != 1:
        raise NotSupportedError("RANGE with an offset needs one numeric or event-time column in ORDER BY")
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
