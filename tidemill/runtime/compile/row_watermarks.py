"""CURRENT_WATERMARK: a column of rows that have been through an exchange, where all rows before are known."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pyarrow as pa

from tidemill.changelog.rowkind import INSERT_ONLY, SEQUENCE_COLUMN
from tidemill.changelog.watermarks import NONE, WATERMARK_COLUMN
from tidemill.errors import NotSupportedError
from tidemill.operators.arrival import ArrivalSpec
from tidemill.physical import nodes as p
from tidemill.physical.traits.event_time import is_current_watermark
from tidemill.plan.expressions import Expr, InputRef
from tidemill.plan.rewrite import map_expr
from tidemill.runtime import graph as g
from tidemill.runtime.compile.context import CompileContext
from tidemill.runtime.compile.event_time import timed_input
from tidemill.runtime.compile.schemas import columns_of, keyed_schema
from tidemill.types.logical import Field, LocalZonedTimestampType
from tidemill.types.physical import quote

_LOCAL, _INSTANT = "$watermark", "$watermark_ltz"


def beside_watermark(node: p.Calc, context: CompileContext, sequenced: bool) -> tuple[p.Calc, g.ExecNode]:
    """``node`` with a column for each of its calls, and what gives these columns behind the input's."""
    below = _lifted(node, context, sequenced)
    width = len(node.input.fields)
    mark = quote(WATERMARK_COLUMN)
    known = f"CASE WHEN {mark} > {NONE + 1} THEN "
    texts = (
        f"{known}timestampadd(MICROSECOND, {mark} * 1000, TIMESTAMP_NTZ'1970-01-01 00:00:00') END",
        f"{known}timestamp_millis({mark}) END",
    )
    made = g.Select(
        columns=(*below.columns, _LOCAL, _INSTANT),
        kinds=below.kinds,
        sequenced=below.sequenced,
        input=below,
        expressions=(*map(quote, below.columns), *texts),
        references=(*below.columns, None, None),
    )

    def column(expr: Expr) -> Expr:
        if not is_current_watermark(expr):
            return expr
        place = width + isinstance(expr.type, LocalZonedTimestampType)
        return InputRef(type=expr.type, index=place)

    condition = None if node.condition is None else map_expr(node.condition, column)
    projections = tuple(map_expr(x, column) for x in node.projections)
    return replace(node, projections=projections, condition=condition), made


def _lifted(node: p.Calc, context: CompileContext, sequenced: bool) -> g.ExecNode:
    """The input of ``node``, its rows with the watermark of all rows before them."""
    below = timed_input(node, context, sequenced)
    if below.kinds != INSERT_ONLY:
        raise NotSupportedError("CURRENT_WATERMARK of rows that can be taken back is not supported")
    if any(isinstance(source, g.Keyed) for source in _sources(below)):
        raise NotSupportedError(
            "CURRENT_WATERMARK of what an operator gives is not supported",
            hint="Ask for it below the aggregation or join, over the table.",
        )
    fields = tuple(Field(c, f.type) for c, f in zip(below.columns, node.input.fields, strict=True))
    spec = ArrivalSpec(columns=columns_of(fields), sequence=sequenced, timed=True)
    hidden = {SEQUENCE_COLUMN: pa.int64(), WATERMARK_COLUMN: pa.int64()}
    schema = [pa.field(*column) for column in spec.columns]
    return g.Keyed(
        columns=below.columns,
        kinds=below.kinds,
        sequenced=sequenced,
        operator=context.add_operator("row-watermarks", node, spec),
        spec=spec,
        ports=(
            g.Port(
                input=below,
                references=below.columns,
                columns=below.columns,
                # Any key that spreads rows will do.
                keys=below.columns,
                schema=pa.schema([*schema, *(pa.field(name, hidden[name]) for name in below.hidden)]),
                timed=True,
            ),
        ),
        schema=keyed_schema(fields, below.kinds, sequenced, True),
        keeps_time=True,
        hands_on=context.digests.of(node) in context.timed_digests,
    )


def _sources(node: g.ExecNode) -> Iterator[g.ExecNode]:
    """What the rows of ``node`` come from through stateless nodes."""
    if isinstance(node, g.Keyed) or not node.inputs:
        yield node
    for child in () if isinstance(node, g.Keyed) else node.inputs:
        yield from _sources(child)
