"""Rank, Deduplicate and SortLimit -> their kernel, and by event time the kernel of OVER."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa

from tidemill.changelog.rowkind import INSERT_ONLY, RETRACTIONS, RowKind
from tidemill.errors import NotSupportedError
from tidemill.operators.aggregates.api import AggregateSpec
from tidemill.operators.over.by_time import OverByTimeSpec
from tidemill.operators.over.operator import OverFunction
from tidemill.operators.over.window import Frame
from tidemill.operators.rank.operator import RankSpec
from tidemill.operators.rank.shape import EVERY_STEP
from tidemill.operators.rows.ordering import OrderKey
from tidemill.physical import nodes as p
from tidemill.physical.names import free_name
from tidemill.plan.expressions import SortKey
from tidemill.runtime import graph as g
from tidemill.runtime.compile.context import CompileContext
from tidemill.runtime.compile.keyed import keyed, late_of
from tidemill.runtime.compile.over_time import over_time
from tidemill.runtime.compile.row_names import named_rows
from tidemill.runtime.compile.schemas import columns_of, names
from tidemill.runtime.compile.shared import build
from tidemill.types.logical import BIGINT, Field
from tidemill.types.physical import quote

CHEAP_ROUNDS = 64
_PLACE = "$place"


@build.register
def _(node: p.Rank, context: CompileContext, sequenced: bool) -> g.ExecNode:
    if node.waits_for_first:
        return _first(node, context, sequenced)
    rows = named_rows(context.state, "rank", node, node.input)
    spec = replace(
        rank_spec(node, rows.fields[0]),
        partition=rows.keys(node.partition),
        by_place=_replaces(node),
        rounds=_rounds(node, context) if node.order else 0,
        retracts=bool(node.input.traits.kinds & RETRACTIONS),
        update_before=RowKind.UPDATE_BEFORE in node.traits.kinds,
        insert_only=node.traits.kinds == INSERT_ONLY,
        sequence=sequenced,
        timed=node.versions,
        state_ttl=node.state_ttl,
        several=rows.several,
        late=late_of(rows, node),
    )
    return keyed(node, spec, "rank", spec.partition, context, sequenced, rows=rows, timed=node.versions)


def _first(node: p.Rank, context: CompileContext, sequenced: bool) -> g.ExecNode:
    """The first row of each key by event time: that which is numbered 1 when the watermark has reached it."""
    rows = named_rows(context.state, "first", node, node.input)
    inputs = rows.fields[0]
    number = AggregateSpec(function="ROW_NUMBER", args=(), arg_types=(), result=pa.int64(), name=_PLACE)
    frame = Frame(rows=True, lower=None, upper=0)
    spec = OverByTimeSpec(
        columns=columns_of(inputs),
        partition=rows.keys(node.partition),
        time=inputs[node.order[0].index].name,
        late=rows.late,
        functions=(OverFunction(call=number, order=order_keys(node.order, inputs), frame=frame),),
        state_ttl=node.state_ttl,
        sequence=sequenced,
        keeps_time=context.digests.of(node) in context.timed_digests,
        equal_in_time=True,
    )
    own = node.input.fields
    numbered = over_time(spec, "first", node, node, (*own, Field(_PLACE, BIGINT)), context, rows)
    first = g.choice(numbered, names(node.fields), names(own), sequenced)
    return replace(first, condition=f"{quote(_PLACE)} = 1")


def rank_spec(node: p.Rank, inputs: tuple[Field, ...]) -> RankSpec:
    """What is ranked and how, over ``inputs``; nothing yet of changes."""
    refuse_arrival_order(node.input, node.order)
    return RankSpec(
        function=node.function,
        columns=columns_of(inputs),
        partition=tuple(inputs[i].name for i in node.partition),
        order=() if node.time == "PROCTIME" else order_keys(node.order, inputs),
        start=node.start,
        end=node.end,
        rank=free_name(node.fields[-1].name, names(inputs)) if node.with_rank else "",
        latest=node.keeps_latest,
    )


@build.register
def _(node: p.SortLimit, context: CompileContext, sequenced: bool) -> g.ExecNode:
    refuse_arrival_order(node.input, node.order)
    rows = named_rows(context.state, "sort-limit", node, node.input)
    inputs = rows.fields[0]
    spec = RankSpec(
        function="ROW_NUMBER",
        columns=columns_of(inputs),
        partition=(),
        order=order_keys(node.order, inputs),
        start=node.offset + 1,
        end=None if node.fetch is None else node.offset + node.fetch,
        rounds=_rounds(node, context) if node.order else 0,
        retracts=bool(node.input.traits.kinds & RETRACTIONS),
        update_before=RowKind.UPDATE_BEFORE in node.traits.kinds,
        insert_only=node.traits.kinds == INSERT_ONLY,
        sequence=sequenced,
        state_ttl=node.state_ttl,
        several=rows.several,
        late=late_of(rows, node),
    )
    return keyed(node, spec, "sort-limit", (), context, sequenced, rows=rows)


def _replaces(node: p.Rank) -> bool:
    """Whether the one row of a partition is updated, rather than one leaving and another entering: a version
    that is replaced has not ended when it began."""
    top_one = node.start == node.end == 1 and node.function == "ROW_NUMBER"
    append = not node.input.traits.kinds & RETRACTIONS
    return (node.start == node.end and bool(node.time)) or (top_one and (append or node.versions))


def _rounds(node: p.Rank | p.SortLimit, context: CompileContext) -> int:
    """Flink never bundles a Top-N, and a deduplication by event time shows every improvement. Without
    mini-batch, or where every change counts for itself, so does this; else as long as it is cheap."""
    told = context.digests.of(node) in context.told
    if context.per_record or told or (isinstance(node, p.Rank) and node.versions):
        return EVERY_STEP
    by_event_time = isinstance(node, p.Rank) and node.is_deduplicate and node.time == "ROWTIME"
    if by_event_time and context.compact:
        return 0
    return CHEAP_ROUNDS if context.per_event or by_event_time else 0


def refuse_arrival_order(node: p.PhysicalNode, order: tuple[SortKey, ...]) -> None:
    """PROCTIME() of a row that is taken back is not the time at which it came: it would not be found."""
    by_arrival = any(node.fields[k.index].type.time_attribute == "PROCTIME" for k in order)
    if by_arrival and node.traits.kinds & RETRACTIONS:
        raise NotSupportedError(
            "ORDER BY processing time over rows that can be taken back is not supported",
            hint="Order by a column of the rows, or by a time attribute of an append-only table.",
        )


def order_keys(keys: tuple[SortKey, ...], inputs: tuple[Field, ...]) -> tuple[OrderKey, ...]:
    return tuple(
        OrderKey(name=inputs[k.index].name, ascending=k.ascending, nulls_first=k.nulls_first) for k in keys
    )
