"""IntervalJoin -> its kernel: both sides with their watermark, and the condition without keys and bounds."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa

from tidemill.changelog.rowkind import INSERT_ONLY
from tidemill.changelog.watermarks import WATERMARK_COLUMN
from tidemill.errors import InternalError
from tidemill.operators.interval_join.operator import IntervalJoinSpec
from tidemill.physical import nodes as p
from tidemill.physical.joins.intervals import without_bounds
from tidemill.runtime import graph as g
from tidemill.runtime.compile.context import CompileContext
from tidemill.runtime.compile.join import join_parts, partitioned
from tidemill.runtime.compile.residual import side_column
from tidemill.runtime.compile.schemas import keyed_schema, names
from tidemill.runtime.compile.shared import build, compile_node


@build.register
def _(node: p.IntervalJoin, context: CompileContext, sequenced: bool) -> g.ExecNode:
    left, right = (compile_node(i, context, False) for i in node.inputs)
    if not (left.timed and right.timed):
        raise InternalError("an interval join of rows without a watermark is planned as a join")
    joined = join_parts(replace(node, residual=without_bounds(node)), (left, right), context)
    join = joined.spec
    spec = IntervalJoinSpec(
        kind=join.kind,
        left=join.left,
        right=join.right,
        times=(side_column(0, node.bounds.left), side_column(1, node.bounds.right)),
        lower=node.bounds.lower,
        upper=node.bounds.upper,
        null_safe=join.null_safe,
        residual=join.residual,
        sequence=sequenced,
        keeps_time=context.digests.of(node) in context.timed_digests,
    )
    return g.Keyed(
        columns=names(node.fields),
        kinds=INSERT_ONLY,
        sequenced=sequenced,
        operator=context.add_operator("interval-join", node, spec),
        spec=spec,
        ports=(_timed(joined.ports[0]), _timed(joined.ports[1])),
        schema=keyed_schema(node.fields, INSERT_ONLY, sequenced, spec.keeps_time),
        single=not joined.condition.left,
        partitioned=partitioned(node, joined.condition),
        keeps_time=spec.keeps_time,
    )


def _timed(port: g.Port) -> g.Port:
    schema = None if port.schema is None else port.schema.append(pa.field(WATERMARK_COLUMN, pa.int64()))
    return replace(port, schema=schema, timed=True)
