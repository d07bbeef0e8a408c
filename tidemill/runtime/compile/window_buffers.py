"""WindowRank, WindowDeduplicate and WindowJoin -> their kernels, which wait for the end of a window."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa

from tidemill.changelog.rowkind import INSERT_ONLY, KIND_COLUMN, SEQUENCE_COLUMN
from tidemill.changelog.watermarks import WATERMARK_COLUMN
from tidemill.operators.api import LocalPhase, OperatorSpec
from tidemill.operators.window.buffered_port import BufferedPort
from tidemill.operators.window.clock import Clock
from tidemill.operators.window.triggers.processing_time import ByClockSpec
from tidemill.operators.window.window_buffer import WindowBufferSpec
from tidemill.physical import nodes as p
from tidemill.plan.expressions import InputRef
from tidemill.runtime import graph as g
from tidemill.runtime.compile.context import CompileContext
from tidemill.runtime.compile.event_time import sources_of, timed_rows
from tidemill.runtime.compile.join import JoinCondition, join_parts, partitioned
from tidemill.runtime.compile.rank import rank_spec
from tidemill.runtime.compile.row_names import NamedRows, by_place, named_rows
from tidemill.runtime.compile.schemas import columns_of, keyed_schema, names
from tidemill.runtime.compile.shared import build, compile_node
from tidemill.runtime.compile.windows import trigger


@build.register
def _(node: p.WindowRank, context: CompileContext, sequenced: bool) -> g.ExecNode:
    append = node.input.traits.kinds == INSERT_ONLY
    rows = _keeper("window-rank", node, context)
    (fields,) = rows.fields
    port = BufferedPort(
        name="rows",
        columns=columns_of(fields),
        keys=rows.keys(node.keys),
        end=fields[node.attached.end].name,
        ordered=append,
        retracts=not append,
        late=rows.late,
    )
    spec = _buffer(
        node,
        rank_spec(node, fields),
        (port,),
        (fields[node.attached.end].name,),
        node.attached,
        context,
        sequenced,
    )
    proctime = node.attached.window.proctime
    below = _rows(node, node.input, context, append, proctime)
    return g.Keyed(
        columns=names(node.fields),
        kinds=node.traits.kinds,
        sequenced=sequenced,
        operator=context.add_operator("window-rank", node, spec, rows=rows),
        spec=ByClockSpec(inner=spec, clock=spec.clock) if proctime else spec,
        ports=(
            g.Port(
                input=below,
                references=below.columns,
                columns=names(fields),
                keys=port.keys,
                schema=_port_schema(port, below, proctime),
                timed=not proctime,
            ),
        ),
        schema=keyed_schema(node.fields, node.traits.kinds, sequenced, spec.keeps_time),
        single=not port.keys,
        local=isinstance(spec, LocalPhase) and spec.combinable and not proctime and not context.keeps_late,
        partitioned=tuple(frozenset({node.fields[names(fields).index(key)].name}) for key in port.keys),
        keeps_time=spec.keeps_time,
        clocked=sources_of(below) if proctime else frozenset(),
    )


@build.register
def _(node: p.WindowJoin, context: CompileContext, sequenced: bool) -> g.ExecNode:
    proctime = node.left_window.window.proctime
    left, right = (_rows(node, i, context, False, proctime) for i in node.inputs)
    rows = _keeper("window-join", node, context)
    joined = join_parts(node, (left, right), context, rows)
    by = _sent_by(node, joined.condition)
    sides, ends = (joined.spec.left, joined.spec.right), _end_columns(node, joined.condition)
    ports = tuple(
        BufferedPort(
            name=name,
            columns=side.columns,
            keys=tuple(side.keys[place] for place in by),
            end=side.keys[ends],
            retracts=side.retracts,
            late=side.late,
        )
        for name, side in zip(("left", "right"), sides, strict=True)
    )
    inner = replace(
        joined.spec,
        left=replace(sides[0], retracts=False, ttl=0),
        right=replace(sides[1], retracts=False, ttl=0),
        insert_only=True,
    )
    shown = tuple(side.keys[ends] for side in sides if side.output)
    spec = _buffer(node, inner, ports, shown, node.left_window, context, sequenced)
    return g.Keyed(
        columns=names(node.fields),
        kinds=node.traits.kinds,
        sequenced=sequenced,
        operator=context.add_operator("window-join", node, spec, rows=rows),
        spec=ByClockSpec(inner=spec, clock=spec.clock) if proctime else spec,
        ports=tuple(
            replace(
                port,
                keys=buffered.keys,
                schema=_port_schema(buffered, port.input, proctime),
                timed=not proctime,
            )
            for port, buffered in zip(joined.ports, ports, strict=True)
        ),
        schema=keyed_schema(node.fields, node.traits.kinds, sequenced, spec.keeps_time),
        single=not by,
        partitioned=tuple(partitioned(node, joined.condition)[place] for place in by),
        keeps_time=spec.keeps_time,
        clocked=sources_of(left) | sources_of(right) if proctime else frozenset(),
    )


def _keeper(kind: str, node: p.WindowRank | p.WindowJoin, context: CompileContext) -> NamedRows:
    """A window that is shown again is compared with what it has shown, by all columns."""
    return by_place(node) if node.emit is not None else named_rows(context.state, kind, node, *node.inputs)


def _buffer(
    node: p.WindowRank | p.WindowJoin,
    inner: OperatorSpec,
    ports: tuple[BufferedPort, ...],
    ends: tuple[str, ...],
    attached: p.AttachedWindow,
    context: CompileContext,
    sequenced: bool,
) -> WindowBufferSpec:
    """The kernel: ``inner`` behind the buffer where rows wait for their windows."""
    clock = Clock(context.zone if attached.window.zoned else "")
    keeps_time = context.digests.of(node) in context.timed_digests
    return WindowBufferSpec(
        inner=inner,
        ports=ports,
        clock=clock,
        ends=ends,
        trigger=trigger(node.emit),
        keeps_time=keeps_time,
        sequence=sequenced,
    )


def _rows(
    node: p.PhysicalNode, source: p.PhysicalNode, context: CompileContext, sequenced: bool, proctime: bool
) -> g.ExecNode:
    if proctime:
        return compile_node(source, context, sequenced)
    return timed_rows(node, source, context, sequenced)


def _sent_by(node: p.WindowJoin, condition: JoinCondition) -> tuple[int, ...]:
    """The places of the keys that rows are sent by: those that are not the window's."""
    ends = {_end_columns(node, condition), _start_columns(node, condition)}
    return tuple(place for place in range(len(condition.left)) if place not in ends)


def _end_columns(node: p.WindowJoin, condition: JoinCondition) -> int:
    return _place(node, condition, node.left_window.end, node.right_window.end)


def _start_columns(node: p.WindowJoin, condition: JoinCondition) -> int:
    return _place(node, condition, node.left_window.start, node.right_window.start)


def _place(node: p.WindowJoin, condition: JoinCondition, left: int, right: int) -> int:
    """Which key these columns are."""
    width = len(node.left.fields)
    pairs = [
        (a.index, b.index - width) if isinstance(a, InputRef) and isinstance(b, InputRef) else None
        for a, b in zip(condition.left, condition.right, strict=True)
    ]
    return pairs.index((left, right))


def _port_schema(port: BufferedPort, below: g.ExecNode, proctime: bool) -> pa.Schema:
    hidden = {KIND_COLUMN: pa.int8(), SEQUENCE_COLUMN: pa.int64(), WATERMARK_COLUMN: pa.int64()}
    fields = [pa.field(*column) for column in port.columns]
    wanted = (h for h in below.hidden if h != WATERMARK_COLUMN or not proctime)
    return pa.schema([*fields, *(pa.field(name, hidden[name]) for name in wanted)])
