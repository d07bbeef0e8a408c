"""Event time in the exec graph: who needs watermarks, and where they are made.

Rows carry ``$wm`` only between a watermark's definition and the operators that work by it.
"""

from __future__ import annotations

from dataclasses import replace

from tidemill.changelog.rowkind import INSERT_ONLY
from tidemill.connectors.registry import connector
from tidemill.errors import InternalError, NotSupportedError
from tidemill.operators.arrival import ArrivalSpec
from tidemill.physical import nodes as p
from tidemill.physical.explain.attributes import node_name
from tidemill.physical.traits.event_time import needs_arrival_order, passes_watermarks
from tidemill.physical.traits.mini_batch import Mode
from tidemill.physical.tree import walk
from tidemill.plan.expressions import Call, Expr, InputRef, Literal
from tidemill.runtime import graph as g
from tidemill.runtime.compile.context import CompileContext
from tidemill.runtime.compile.schemas import columns_of, keyed_schema, names
from tidemill.runtime.compile.shared import build, compile_node, transparent
from tidemill.runtime.event_time.pace import pace_of
from tidemill.runtime.spark.expressions import Translator
from tidemill.types import logical as t
from tidemill.types.logical import Field
from tidemill.types.physical import quote

_MARK = "$mark"


@build.register
def _(node: p.WatermarkAssigner, context: CompileContext, sequenced: bool) -> g.ExecNode:
    if context.digests.of(node) not in context.timed_digests:
        return transparent(node, context, sequenced)
    below = _as_they_came(node, context, sequenced)
    column, delay = _plain(node.watermark)
    mark = below.columns[column] if column is not None else _MARK
    if column is None:
        below = _with_mark(below, node.watermark, context)
    return g.AssignWatermark(
        columns=names(node.fields),
        kinds=below.kinds,
        sequenced=sequenced,
        input=below,
        source=_source(below),
        rowtime=node.fields[node.rowtime].name,
        mark=mark,
        delay=delay,
        pace=pace_of(_options(node), context.idle_timeout),
    )


def _as_they_came(node: p.WatermarkAssigner, context: CompileContext, sequenced: bool) -> g.ExecNode:
    """The input of ``node`` in the order of its source; with ``$seq`` where that tells splits."""
    sequenced = sequenced or _has_splits(node)
    if not needs_arrival_order(node):
        return compile_node(node.input, context, sequenced)
    below = compile_node(node.input, context, True)
    fields = tuple(Field(c, f.type) for c, f in zip(below.columns, node.input.fields, strict=True))
    spec = ArrivalSpec(columns=columns_of(fields), kinds=below.kinds != INSERT_ONLY, sequence=sequenced)
    return g.Keyed(
        columns=below.columns,
        kinds=below.kinds,
        sequenced=sequenced,
        operator=context.add_operator("arrival", node, spec),
        spec=spec,
        ports=(g.Port(input=below, references=below.columns, columns=below.columns, keys=()),),
        schema=keyed_schema(fields, below.kinds, sequenced),
        single=True,
    )


def _has_splits(node: p.WatermarkAssigner) -> bool:
    options = _options(node)
    return bool(options) and connector(options).has_splits()


def _options(node: p.WatermarkAssigner) -> dict[str, str]:
    """Of the table that the watermark is defined on."""
    scans = (n for n in walk(node) if isinstance(n, p.TableSourceScan))
    return next((dict(scan.options) for scan in scans), {})


def under_watermark(read: g.Read, context: CompileContext) -> g.ExecNode:
    """``read``, which never gives a row, for what works by event time: its watermark is that of its end."""
    below = _with_mark(read, Literal(type=t.TimestampType(precision=3), value=None), context)
    return g.AssignWatermark(
        columns=read.columns,
        kinds=read.kinds,
        sequenced=read.sequenced,
        input=below,
        source=read.source,
        rowtime=read.columns[0],
        mark=_MARK,
    )


def timed_input(node: p.Unary, context: CompileContext, sequenced: bool) -> g.ExecNode:
    return timed_rows(node, node.input, context, sequenced)


def timed_rows(
    node: p.PhysicalNode, source: p.PhysicalNode, context: CompileContext, sequenced: bool
) -> g.ExecNode:
    """The input ``source`` of ``node``, an event-time operator; NotSupportedError if it has no watermark."""
    below = compile_node(source, context, sequenced)
    if below.timed:
        return below
    holder = next((n for n in walk(source) if not passes_watermarks(n)), source)
    raise NotSupportedError(
        f"{node_name(node)} requires a time attribute, but the result of {node_name(holder)} has none",
        hint="A watermark passes through filters, projections, UNION ALL, OVER by its time, the first rows "
        "by its time, and aggregations, Top-N and joins by window_start and window_end. The last rows by its "
        "time pass it on to windows only.",
    )


def sources_of(node: g.ExecNode) -> frozenset[str]:
    """All sources that the node's rows come from."""
    return frozenset(n.source for n in node.walk() if isinstance(n, g.Read))


def delay_of(node: g.ExecNode) -> int | None:
    """How far, in ms, the watermark of the node's rows is behind the latest of their times; None where that
    is not known."""
    if isinstance(node, g.AssignWatermark):
        return node.delay if node.mark == node.rowtime else None
    if isinstance(node, g.Keyed):
        return node.delay
    delays = [delay_of(child) for child in node.inputs]
    known = [delay for delay in delays if delay is not None]
    return max(known) if known and len(known) == len(delays) else None


def _plain(watermark: Expr) -> tuple[int | None, int]:
    """``ts`` or ``ts - INTERVAL ...``: the column and the milliseconds; (None, 0) where more is computed."""
    if isinstance(watermark, InputRef):
        return watermark.index, 0
    if isinstance(watermark, Call) and watermark.function == "-" and len(watermark.args) == 2:
        time, delay = watermark.args
        constant = isinstance(delay, Literal) and isinstance(delay.type, t.DayTimeIntervalType)
        if (
            isinstance(time, InputRef)
            and constant
            and isinstance(delay, Literal)
            and isinstance(delay.value, int)
        ):
            return time.index, delay.value
    return None, 0


def _with_mark(below: g.ExecNode, watermark: Expr, context: CompileContext) -> g.ExecNode:
    translator = Translator(columns=below.columns, zone=context.zone)
    return g.Select(
        columns=(*below.columns, _MARK),
        kinds=below.kinds,
        sequenced=below.sequenced,
        input=below,
        expressions=(*map(quote, below.columns), translator.sql(watermark)),
        references=(*below.columns, None),
    )


def _source(node: g.ExecNode) -> str:
    reads = [n for n in node.walk() if isinstance(n, g.Read)]
    if len(reads) != 1:
        raise InternalError("a watermark stands over one source")
    return reads[0].source


@build.register
def _(node: p.MiniBatchAssigner, context: CompileContext, sequenced: bool) -> g.ExecNode:
    """By row time it lets only some watermarks pass; by processing time epochs are the bundles."""
    below = transparent(node, context, sequenced)
    if node.mode == Mode.ROW_TIME.value and isinstance(below, g.AssignWatermark):
        return replace(below, interval=node.passes)
    return below
