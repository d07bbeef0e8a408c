"""WindowTableFunction and WindowAggregate -> rows with their windows, and the window kernel."""

from __future__ import annotations

import pyarrow as pa

from tidemill.changelog.rowkind import KIND_COLUMN, SEQUENCE_COLUMN
from tidemill.changelog.watermarks import WATERMARK_COLUMN
from tidemill.operators.aggregates.api import AggregateSpec
from tidemill.operators.window.aggregate import WindowAggregateSpec
from tidemill.operators.window.clock import Clock
from tidemill.operators.window.output import WindowColumns
from tidemill.operators.window.session import SessionAggregateSpec
from tidemill.operators.window.slices import Kind, Windows
from tidemill.physical import nodes as p
from tidemill.plan.nodes import WindowKind
from tidemill.runtime import graph as g
from tidemill.runtime.compile.aggregate import RETRACTIONS, call_spec, free_name
from tidemill.runtime.compile.context import CompileContext
from tidemill.runtime.compile.event_time import timed_input
from tidemill.runtime.compile.schemas import keyed_schema, names
from tidemill.runtime.compile.shared import build, compile_node
from tidemill.runtime.compile.window_text import local_time, window_rows
from tidemill.types.physical import arrow_type, quote

_TIME = "$time"


@build.register
def _(node: p.WindowTableFunction, context: CompileContext, sequenced: bool) -> g.ExecNode:
    below = compile_node(node.input, context, sequenced)
    kept = len(below.columns)
    shown = names(node.fields)
    return g.Generate(
        columns=shown,
        kinds=below.kinds,
        sequenced=sequenced,
        input=below,
        expressions=tuple(map(quote, below.columns)),
        generator=window_rows(node.window, quote(below.columns[node.time]), shown[kept:]),
    )


@build.register
def _(node: p.WindowAggregate, context: CompileContext, sequenced: bool) -> g.ExecNode:
    inputs = node.input.fields
    keys = tuple((inputs[k].name, arrow_type(inputs[k].type)) for k in node.keys)
    taken = {name for name, _ in keys}
    results = node.fields[len(node.keys) : len(node.keys) + len(node.calls)]
    calls = tuple(
        call_spec(call, inputs, free_name(field.name, taken))
        for call, field in zip(node.calls, results, strict=True)
    )
    asked = dict(zip(node.properties, node.fields[len(node.keys) + len(node.calls) :], strict=True))
    columns = {role: free_name(f"$window_{role}", taken) for role in asked}
    shown = WindowColumns(
        start=columns.get("start", ""),
        end=columns.get("end", ""),
        rowtime=columns.get("time", ""),
        rowtime_type=arrow_type(asked["time"].type) if "time" in asked else None,
    )
    output = (*(name for name, _ in keys), *(c.name for c in calls), *(columns[r] for r in asked))
    spec = _spec(node, context, keys, calls, shown, output, sequenced)
    below = _timed(timed_input(node, context, spec.needs_sequence), node)
    carried = (*dict.fromkeys((*(k for k, _ in keys), *_arguments(node))), _TIME)
    return g.Keyed(
        columns=names(node.fields),
        kinds=node.traits.kinds,
        sequenced=sequenced,
        operator=context.add_operator("window-aggregate", node, spec),
        spec=spec,
        ports=(
            g.Port(
                input=below,
                references=carried,
                columns=carried,
                keys=tuple(k for k, _ in keys),
                schema=_port_schema(node, carried, below),
                timed=True,
            ),
        ),
        schema=keyed_schema(node.fields, node.traits.kinds, sequenced, spec.keeps_time),
        single=not keys,
        local=isinstance(spec, WindowAggregateSpec) and spec.combinable,
        partitioned=tuple(frozenset({f.name}) for f in node.fields[: len(node.keys)]),
        keeps_time=spec.keeps_time,
    )


def _spec(
    node: p.WindowAggregate,
    context: CompileContext,
    keys: tuple[tuple[str, pa.DataType], ...],
    calls: tuple[AggregateSpec, ...],
    columns: WindowColumns,
    output: tuple[str, ...],
    sequenced: bool,
) -> WindowAggregateSpec | SessionAggregateSpec:
    clock = Clock(context.zone if node.window.zoned else "")
    retracts = bool(node.input.traits.kinds & RETRACTIONS)
    keeps_time = context.digests.of(node) in context.timed_digests
    if node.window.kind is WindowKind.SESSION:
        return SessionAggregateSpec(
            keys=keys,
            calls=calls,
            time=_TIME,
            gap=node.window.size,
            clock=clock,
            columns=columns,
            output=output,
            retracts=retracts,
            keeps_time=keeps_time,
            sequence=sequenced,
        )
    return WindowAggregateSpec(
        keys=keys,
        calls=calls,
        time=_TIME,
        windows=_windows(node.window),
        attached=node.attached,
        clock=clock,
        columns=columns,
        output=output,
        retracts=retracts,
        keeps_time=keeps_time,
        sequence=sequenced,
    )


def _arguments(node: p.WindowAggregate) -> tuple[str, ...]:
    """The columns that the calls read."""
    indexes = [i for c in node.calls for i in (*c.args, *(() if c.filter is None else (c.filter,)))]
    return tuple(node.input.fields[i].name for i in indexes)


def _windows(window: p.Window) -> Windows:
    return Windows(kind=Kind(window.kind.value), size=window.size, slide=window.slide, offset=window.offset)


def _port_schema(node: p.WindowAggregate, carried: tuple[str, ...], below: g.ExecNode) -> pa.Schema:
    types = {f.name: arrow_type(f.type) for f in node.input.fields} | {_TIME: pa.timestamp("us")}
    hidden = {KIND_COLUMN: pa.int8(), SEQUENCE_COLUMN: pa.int64(), WATERMARK_COLUMN: pa.int64()}
    fields = [pa.field(name, types[name]) for name in carried]
    return pa.schema([*fields, *(pa.field(name, hidden[name]) for name in below.hidden)])


def _timed(below: g.ExecNode, node: p.WindowAggregate) -> g.ExecNode:
    """``below`` with the column that windows are cut by: the time in the zone of the session."""
    time = below.columns[node.time]
    local = quote(time) if node.attached or not node.window.zoned else local_time(quote(time))
    return g.Select(
        columns=(*below.columns, _TIME),
        kinds=below.kinds,
        sequenced=below.sequenced,
        input=below,
        expressions=(*map(quote, below.columns), local),
        references=(*below.columns, time if local == quote(time) else None),
    )
