"""Rank, Deduplicate, SortLimit, ChangelogNormalize and the sink materialiser -> their kernels."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa

from tidemill.changelog.rowkind import INSERT_ONLY, RETRACTIONS, RowKind
from tidemill.errors import NotSupportedError
from tidemill.operators.aggregates.api import AggregateSpec
from tidemill.operators.api import LocalPhase, OperatorSpec
from tidemill.operators.changelog_normalize import ChangelogNormalizeSpec
from tidemill.operators.over.by_time import OverByTimeSpec
from tidemill.operators.over.operator import OverFunction
from tidemill.operators.over.window import Frame
from tidemill.operators.rank.operator import RankSpec
from tidemill.operators.rank.shape import EVERY_STEP
from tidemill.operators.rows.ordering import OrderKey, by_columns
from tidemill.operators.rows.stored_before import Late
from tidemill.physical import nodes as p
from tidemill.physical.names import free_name
from tidemill.physical.sinks import keeps_greatest_row
from tidemill.physical.traits.event_time import waits_for_first
from tidemill.plan.expressions import SortKey
from tidemill.runtime import graph as g
from tidemill.runtime.compile.context import CompileContext
from tidemill.runtime.compile.event_time import delay_of, timed_input
from tidemill.runtime.compile.over_time import over_time
from tidemill.runtime.compile.row_names import NamedRows, named_rows
from tidemill.runtime.compile.schemas import columns_of, keyed_schema, names, port_schema
from tidemill.runtime.compile.shared import build, compile_node
from tidemill.types.logical import BIGINT, BOOLEAN, Field
from tidemill.types.physical import quote

CHEAP_ROUNDS = 64
PASSES_COLUMN = "$passes"
_PLACE = "$place"


@build.register
def _(node: p.Rank, context: CompileContext, sequenced: bool) -> g.ExecNode:
    if waits_for_first(node):
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
        late=_late(rows, node),
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
        late=_late(rows, node),
    )
    return keyed(node, spec, "sort-limit", (), context, sequenced, rows=rows)


@build.register
def _(node: p.ChangelogNormalize, context: CompileContext, sequenced: bool) -> g.ExecNode:
    rows = named_rows(context.state, "changelog-normalize", node, node.input)
    spec = ChangelogNormalizeSpec(
        columns=columns_of(rows.fields[0]),
        keys=rows.keys(node.keys),
        passes="" if node.condition is None else PASSES_COLUMN,
        emit_update_before=RowKind.UPDATE_BEFORE in node.traits.kinds,
        per_record=context.per_event or node.versions or context.digests.of(node) in context.told,
        sequence=sequenced,
        timed=node.versions,
        state_ttl=node.state_ttl,
    )
    below = _below(node, context, node.versions)
    if node.condition is not None:
        below = _judged(below, context.translator(node.input).sql(node.condition))
    kind, keys, timed = "changelog-normalize", spec.keys, node.versions
    return keyed(node, spec, kind, keys, context, sequenced, rows=rows, below=below, timed=timed)


def _below(node: p.Unary, context: CompileContext, timed: bool) -> g.ExecNode:
    compiled: g.ExecNode = (
        timed_input(node, context, True) if timed else compile_node(node.input, context, True)
    )
    return compiled


def _judged(below: g.ExecNode, condition: str) -> g.Select:
    """``below`` and whether each row passes."""
    return g.Select(
        columns=(*below.columns, PASSES_COLUMN),
        kinds=below.kinds,
        sequenced=below.sequenced,
        input=below,
        expressions=(*map(quote, below.columns), f"COALESCE({condition}, FALSE)"),
        references=(*below.columns, None),
    )


def materialized(sink: p.Sink, context: CompileContext) -> g.ExecNode:
    """The rows of an upsert sink whose primary key is not the query's upsert key: per primary key the
    live row that arrived last, whatever the disorder between the changes of different rows. With ON
    CONFLICT DO NOTHING the live row that arrived first; DO ERROR wants it alone. Where arrival is not told
    the greatest row by its columns is the last, and the least the first."""
    rows = named_rows(context.state, "sink-materialize", sink, sink.input)
    inputs = context.sink_fields(sink) if rows.late is None else rows.fields[0]
    places = {c.name: place for place, c in enumerate(sink.table.written_columns)}
    keys = [places[key] for key in sink.table.primary_key]
    partition = tuple(inputs[key].name for key in keys) if rows.late is None else rows.keys(keys)
    latest = sink.conflict not in ("NOTHING", "ERROR")
    spec = RankSpec(
        function="ROW_NUMBER",
        columns=columns_of(inputs),
        partition=partition,
        key_names=_columns_of_key(sink, partition, inputs),
        order=by_columns(columns_of(inputs), greatest_first=latest) if keeps_greatest_row(sink) else (),
        start=1,
        end=1,
        latest=latest,
        exclusive=sink.conflict == "ERROR",
        by_place=True,
        retracts=sink.conflict == "ERROR" or sink.input.traits.kinds != INSERT_ONLY,
        update_before=RowKind.UPDATE_BEFORE in sink.consumed,
        state_ttl=sink.state_ttl,
        several=rows.several,
        late=_late(rows, sink),
    )
    return keyed(sink, spec, "sink-materialize", spec.partition, context, False, rows=rows)


def _columns_of_key(sink: p.Sink, key: tuple[str, ...], inputs: tuple[Field, ...]) -> tuple[str, ...]:
    """The sink's columns of a ``key`` that is named as the kernel does."""
    own = {f.name: c.name for c, f in zip(sink.table.written_columns, inputs, strict=False)}
    return tuple(own[name] for name in key)


def keyed(
    node: p.Unary,
    spec: OperatorSpec,
    kind: str,
    keys: tuple[str, ...],
    context: CompileContext,
    sequenced: bool,
    *,
    rows: NamedRows | None = None,
    whole: p.PhysicalNode | None = None,
    below: g.ExecNode | None = None,
    timed: bool = False,
) -> g.ExecNode:
    """A keyed operator that needs all columns and the arrival order of its one input. ``rows``: what they are
    called, if not as the plan does. ``whole``: the plan's node that it is, where ``node`` only stands in for
    it. ``below``: the compiled input with columns more. ``timed``: its changes have the watermark of the rows
    that made them."""
    below = below or _below(node, context, timed)
    inputs = context.sink_fields(node) if isinstance(node, p.Sink) else node.input.fields
    if rows is not None and rows.late is not None:
        inputs = rows.fields[0]
    own = names(inputs)
    carried = (*own, *below.columns[len(own) :])
    kinds = node.consumed if isinstance(node, p.Sink) else node.traits.kinds
    fields = context.sink_fields(node) if isinstance(node, p.Sink) else node.fields
    port = g.Port(input=below, references=below.columns, columns=carried, keys=keys)
    if timed:
        types = (*inputs, Field(PASSES_COLUMN, BOOLEAN))
        port = replace(port, timed=True, schema=port_schema(types, carried, below))
    return g.Keyed(
        columns=names(fields),
        kinds=kinds,
        sequenced=sequenced,
        operator=context.add_operator(kind, whole or node, spec, rows=rows),
        spec=spec,
        ports=(port,),
        schema=keyed_schema(fields, kinds, sequenced, timed),
        single=not keys,
        local=isinstance(spec, LocalPhase) and spec.combinable,
        partitioned=tuple(frozenset({fields[carried.index(k)].name}) for k in keys),
        keeps_time=timed,
        delay=delay_of(below) if timed else None,
    )


def _late(rows: NamedRows, node: p.Unary) -> Late | None:
    return rows.late_marked(rows.late) if node.input.traits.kinds & RETRACTIONS else rows.late


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
