"""WindowTableFunction and WindowAggregate -> rows with their windows, and the window kernel."""

from __future__ import annotations

from dataclasses import fields, replace
from itertools import chain
from typing import Any, TypedDict

import pyarrow as pa

from tidemill.changelog.rowkind import KIND_COLUMN, RETRACTIONS, SEQUENCE_COLUMN, RowKind
from tidemill.changelog.watermarks import WATERMARK_COLUMN
from tidemill.errors import NotSupportedError
from tidemill.operators.aggregates.api import AggregateSpec
from tidemill.operators.api import LocalPhase, OperatorSpec
from tidemill.operators.buckets import BUCKET, Buckets, Everywhere
from tidemill.operators.shared_distinct.shared_keys import SharedKeys
from tidemill.operators.window.aggregate import WindowAggregateSpec
from tidemill.operators.window.assigners.assigner import Assigner
from tidemill.operators.window.assigners.attached import AttachedWindows
from tidemill.operators.window.assigners.session import KIND as SESSION
from tidemill.operators.window.assigners.tumble import Tumble
from tidemill.operators.window.clock import INSTANTS, Clock
from tidemill.operators.window.dynamic import DynamicAggregateSpec
from tidemill.operators.window.output import WindowColumns
from tidemill.operators.window.retractable_dynamic import RetractableDynamicSpec
from tidemill.operators.window.retractable_session import RetractableSessionSpec
from tidemill.operators.window.session import SessionAggregateSpec
from tidemill.operators.window.shape import WindowShape
from tidemill.operators.window.shared_values import SharedValuesSpec
from tidemill.operators.window.triggers.processing_time import ByClockSpec
from tidemill.operators.window.triggers.trigger import AT_END, Trigger
from tidemill.physical import nodes as p
from tidemill.physical.aggregates.parts import needs_window_start
from tidemill.physical.names import free_name
from tidemill.physical.traits.event_time import is_emitted_at_its_time
from tidemill.runtime import graph as g
from tidemill.runtime.compile.aggregate import call_spec, partitioned, shared_keys
from tidemill.runtime.compile.context import CompileContext
from tidemill.runtime.compile.event_time import delay_of, sources_of, timed_input
from tidemill.runtime.compile.schemas import keyed_schema, names
from tidemill.runtime.compile.shared import build, compile_node
from tidemill.runtime.compile.window_text import local_time, window_rows
from tidemill.types.physical import arrow_type, quote

TIME = "$time"
_BUCKET = "$bucket"
HOT_ROWS = 16_384
"""What must come of a key in an epoch for it to go to all buckets; equal values of a task may be one."""
_MadeByRows = SessionAggregateSpec | RetractableSessionSpec | DynamicAggregateSpec | RetractableDynamicSpec
_Kernel = WindowAggregateSpec | _MadeByRows


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
        attached=_attached(node, context),
        time=below.columns[node.time],
    )


def _attached(node: p.WindowTableFunction, context: CompileContext) -> AttachedWindows | None:
    """How windows are attached where rows are Arrow batches; None by a clock that rows do not have."""
    window = node.window
    if window.proctime or (window.zoned and context.zone != "UTC"):
        return None
    return AttachedWindows(windows=window.kind.assigner(window), rowtime=arrow_type(node.fields[-1].type))


@build.register
def _(node: p.WindowAggregate, context: CompileContext, sequenced: bool) -> g.ExecNode:
    inputs = context.state.fields(node.input, node.keys, apart=node.spread is not None)
    named = replace(node, input=replace(node.input, fields=inputs))
    keys = tuple((inputs[k].name, arrow_type(inputs[k].type)) for k in node.keys)
    shown_keys, buckets = tuple(name for name, _ in keys), _buckets(named)
    if buckets is not None:
        keys = (*keys, (buckets.column, BUCKET))
    taken = {name for name, _ in keys}
    results = node.fields[len(node.keys) : len(node.keys) + len(node.calls)]
    asked_calls = [
        (call, call_spec(call, inputs, free_name(field.name, taken)))
        for call, field in zip(node.calls, results, strict=True)
    ]
    asked = dict(zip(node.properties, node.fields[len(node.keys) + len(node.calls) :], strict=True))
    columns = {role: free_name(f"$window_{role}", taken) for role in asked}
    shown = WindowColumns(
        start=columns.get("start", ""),
        end=columns.get("end", ""),
        rowtime=columns.get("time", ""),
        rowtime_type=arrow_type(asked["time"].type) if "time" in asked else None,
        shown_by=zone_of(node, context) if by_instants(node) else INSTANTS,
    )

    def made(calls: tuple[AggregateSpec, ...]) -> _Kernel:
        output = (*shown_keys, *(c.name for c in calls), *(columns[r] for r in asked))
        facts = how_it_runs(node, context, sequenced)
        return _spec(named, keys, calls, shown, output, facts)

    calls = context.state.calls("window-aggregate", node, node.input, asked_calls, made)
    inner = made(calls.specs)
    carried = tuple(dict.fromkeys(filter(None, (*shown_keys, *_arguments(named), inner.itself))))
    shared = inner.shared if isinstance(inner, SharedValuesSpec) else None
    spec: OperatorSpec = inner
    if node.window.proctime:
        below = compile_node(node.input, context, inner.needs_sequence)
        spec = by_clock(inner, "" if node.attached else TIME)
    else:
        below = timed_input(node, context, inner.needs_sequence)
        if isinstance(inner, DynamicAggregateSpec):
            spec = replace(inner, delayed=delay_of(below) or 0)
    if node.attached or not node.window.proctime:
        below, carried = timed_by(below, node, context), (*carried, TIME)
    given = dict(reversed([*zip((f.name for f in inputs), below.columns, strict=False), (TIME, TIME)]))
    return g.Keyed(
        columns=names(node.fields),
        kinds=node.traits.kinds,
        sequenced=sequenced,
        operator=context.add_operator("window-aggregate", node, spec, calls),
        spec=spec,
        ports=(
            g.Port(
                input=below,
                references=tuple(given[name] for name in carried),
                columns=carried,
                keys=tuple(k for k, _ in keys) if shared is None else tuple(f.name for f in shared.keys),
                schema=port_schema(named, carried, below, context, buckets),
                timed=not node.window.proctime,
                behind=inner.behind,
                buckets=buckets,
            ),
        ),
        schema=keyed_schema(node.fields, node.traits.kinds, sequenced, inner.keeps_time),
        single=not keys,
        local=isinstance(spec, LocalPhase) and spec.combinable and not context.keeps_late,
        partitioned=_partitioned(node, shared),
        keeps_time=inner.keeps_time,
        clocked=sources_of(below) if node.window.proctime else frozenset(),
    )


def _partitioned(node: p.WindowAggregate, shared: SharedKeys | None) -> tuple[frozenset[str], ...]:
    if shared is not None:
        return partitioned(shared)
    if node.spread is not None:
        return ()
    return tuple(frozenset({f.name}) for f in node.fields[: len(node.keys)])


def _buckets(node: p.WindowAggregate) -> Buckets | Everywhere | None:
    if node.spread is None:
        return None
    fields, count = node.input.fields, node.spread.buckets
    sets = tuple(tuple(fields[c].name for c in columns) for columns in node.spread.sets)
    if not needs_window_start(node):
        return Buckets(column=_BUCKET, of=tuple(chain.from_iterable(sets)), count=count)
    return Everywhere(
        column=_BUCKET,
        keys=(*(fields[k].name for k in node.keys), _BUCKET),
        sets=sets,
        with_first=tuple(fields[c].name for c in node.spread.with_first),
        flags=tuple(fields[c].name for c in node.spread.flags),
        count=count,
    )


def _spec(
    node: p.WindowAggregate,
    keys: tuple[tuple[str, pa.DataType], ...],
    calls: tuple[AggregateSpec, ...],
    columns: WindowColumns,
    output: tuple[str, ...],
    facts: HowItRuns,
) -> _Kernel:
    shape = WindowShape(
        keys=keys,
        calls=calls,
        time=TIME,
        columns=columns,
        output=output,
        bucket=_BUCKET if node.spread is not None and needs_window_start(node) else "",
        hot=HOT_ROWS,
        itself=_itself(node),
        trigger=trigger(node.emit),
        update_before=RowKind.UPDATE_BEFORE in node.traits.kinds,
        **facts,
    )
    window = node.window
    if not node.attached and window.kind.is_data_driven:
        return made_by_rows(shape, window)
    if node.reuse is not None and node.emit is None:
        inputs = node.input.fields
        shared = shared_keys(node.reuse, inputs, tuple(inputs[key] for key in node.keys))
        return SharedValuesSpec(
            **_parts(shape), windows=_windows(node), attached=node.attached, shared=shared
        )
    return WindowAggregateSpec(**_parts(shape), windows=_windows(node), attached=node.attached)


class HowItRuns(TypedDict):
    """What the node and those around it say of a window's kernel."""

    clock: Clock
    retracts: bool
    keeps_time: bool
    sequence: bool
    behind: int


def how_it_runs(
    node: p.WindowAggregate | p.WindowsOfRows, context: CompileContext, sequenced: bool
) -> HowItRuns:
    return HowItRuns(
        behind=_behind(node),
        clock=INSTANTS if by_instants(node) else zone_of(node, context),
        retracts=bool(node.input.traits.kinds & RETRACTIONS),
        keeps_time=context.digests.of(node) in context.timed_digests,
        sequence=sequenced,
    )


def _behind(node: p.WindowAggregate | p.WindowsOfRows) -> int:
    """By how many ms the watermark is held back.

    A row at the very end of a window that rows make is one of it. If rows come at their time, this row comes
    with the watermark that follows the window's last millisecond, so the window waits for it.
    """
    grows = node.window.kind.is_data_driven and not node.window.proctime
    if not grows or (isinstance(node, p.WindowAggregate) and node.attached):
        return 0
    return int(is_emitted_at_its_time(node.input))


def zone_of(node: p.WindowAggregate | p.WindowsOfRows, context: CompileContext) -> Clock:
    """What tells the local times of the windows."""
    return Clock(context.zone if node.window.zoned and context.zone != "UTC" else "")


def by_instants(node: p.WindowAggregate | p.WindowsOfRows) -> bool:
    """Whether windows are made of instants: a gap of 40 minutes has passed after 40 minutes, also in a night
    in which the clock jumps by an hour. Flink counts what the clock shows."""
    made = node.window.kind == SESSION and node.window.zoned
    return made and not (isinstance(node, p.WindowAggregate) and node.attached)


def made_by_rows(shape: WindowShape, window: p.Window) -> _MadeByRows:
    """The kernel of windows that rows make."""
    # By processing time a row is taken back at another time than it came.
    retractable = shape.retracts and not window.proctime and not shape.trigger.repeats
    if window.kind == SESSION:
        spec = RetractableSessionSpec if retractable else SessionAggregateSpec
        return spec(**_parts(shape), gap=window.size)
    if retractable and window.size:
        return RetractableDynamicSpec(**_parts(shape), slide=window.slide, gap=window.size)
    return DynamicAggregateSpec(
        **_parts(shape), slide=window.slide, gap=window.size, state_ttl=window.state_ttl
    )


def trigger(emit: p.Emit | None) -> Trigger:
    if emit is None:
        return AT_END
    return Trigger(early=emit.early, late=emit.late or 0, lateness=emit.lateness)


def by_clock(inner: _Kernel, time: str) -> ByClockSpec:
    if isinstance(inner, DynamicAggregateSpec | RetractableDynamicSpec):
        raise NotSupportedError("DYNAMIC_CUMULATE by processing time is not supported")
    return ByClockSpec(inner=inner, clock=inner.clock, time=time)


def _parts(shape: WindowShape) -> dict[str, Any]:
    return {f.name: getattr(shape, f.name) for f in fields(WindowShape)}


def _arguments(node: p.WindowAggregate) -> tuple[str, ...]:
    """The columns that the calls read."""
    indexes = [i for c in node.calls for i in (*c.args, *(() if c.filter is None else (c.filter,)))]
    return tuple(node.input.fields[i].name for i in indexes)


def _itself(node: p.WindowAggregate) -> str:
    """The column that is true in one of the copies of a row; '' where there are none."""
    spread = node.spread
    return "" if spread is None or spread.itself is None else node.input.fields[spread.itself].name


def _windows(node: p.WindowAggregate) -> Assigner:
    if node.window.kind.is_data_driven:
        # Rows are in their windows already, whose starts are keys.
        return Tumble(size=max(node.window.size, 1))
    return node.window.kind.assigner(node.window)


def port_schema(
    node: p.WindowAggregate | p.WindowsOfRows,
    carried: tuple[str, ...],
    below: g.ExecNode,
    context: CompileContext,
    buckets: Buckets | Everywhere | None = None,
) -> pa.Schema:
    time = arrow_type(node.input.fields[node.time].type) if _as_it_is(node, context) else pa.timestamp("us")
    types = {f.name: arrow_type(f.type) for f in node.input.fields} | {TIME: time}
    hidden = {KIND_COLUMN: pa.int8(), SEQUENCE_COLUMN: pa.int64(), WATERMARK_COLUMN: pa.int64()}
    shown = [pa.field(name, types[name]) for name in carried]
    timed = not isinstance(node, p.WindowAggregate) or not node.window.proctime
    wanted = (h for h in below.hidden if h != WATERMARK_COLUMN or timed)
    added = [] if buckets is None else [pa.field(buckets.column, BUCKET)]
    return pa.schema([*shown, *(pa.field(name, hidden[name]) for name in wanted), *added])


def _as_it_is(node: p.WindowAggregate | p.WindowsOfRows, context: CompileContext) -> bool:
    """Whether windows are cut by the time column itself: it is local time, or the windows are of instants, or
    the session's clock shows UTC, where instants are local time."""
    is_local = not node.window.zoned or (isinstance(node, p.WindowAggregate) and bool(node.attached))
    return is_local or by_instants(node) or context.zone == "UTC"


def timed_by(
    below: g.ExecNode, node: p.WindowAggregate | p.WindowsOfRows, context: CompileContext
) -> g.ExecNode:
    """``below`` with the column that windows are cut by: local time, or the instant."""
    time = below.columns[node.time]
    local = quote(time) if _as_it_is(node, context) else local_time(quote(time))
    return g.Select(
        columns=(*below.columns, TIME),
        kinds=below.kinds,
        sequenced=below.sequenced,
        input=below,
        expressions=(*map(quote, below.columns), local),
        references=(*below.columns, time if local == quote(time) else None),
    )
