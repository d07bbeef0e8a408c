"""TemporalSort -> its kernel, by event time; by processing time rows come in order as they are."""

from __future__ import annotations

import pyarrow as pa

from tidemill.changelog.rowkind import INSERT_ONLY, SEQUENCE_COLUMN
from tidemill.changelog.watermarks import WATERMARK_COLUMN
from tidemill.errors import NotSupportedError
from tidemill.operators.temporal_sort import TemporalSortSpec
from tidemill.physical import nodes as p
from tidemill.physical.traits.mini_batch import needs_watermark
from tidemill.runtime import graph as g
from tidemill.runtime.compile.context import CompileContext
from tidemill.runtime.compile.event_time import timed_input
from tidemill.runtime.compile.rank import order_keys
from tidemill.runtime.compile.schemas import columns_of, keyed_schema, names
from tidemill.runtime.compile.shared import build, transparent


@build.register
def _(node: p.Sort, context: CompileContext, sequenced: bool) -> g.ExecNode:
    if not node.by_time:
        raise NotSupportedError(
            "ORDER BY without LIMIT in streaming mode is supported only on an ascending time attribute"
        )
    if node.input.traits.kinds != INSERT_ONLY:
        raise NotSupportedError(
            "ORDER BY a time attribute over rows that can be taken back is not supported",
            hint="Sort what only grows, or add a LIMIT.",
        )
    if not needs_watermark(node):
        return transparent(node, context, sequenced)
    fields = node.input.fields
    spec = TemporalSortSpec(
        columns=columns_of(fields),
        order=order_keys(node.order, fields),
        sequence=sequenced,
        keeps_time=context.digests.of(node) in context.timed_digests,
    )
    below = timed_input(node, context, True)
    hidden = ((SEQUENCE_COLUMN, pa.int64()), (WATERMARK_COLUMN, pa.int64()))
    return g.Keyed(
        columns=names(node.fields),
        kinds=INSERT_ONLY,
        sequenced=sequenced,
        operator=context.add_operator("temporal-sort", node, spec),
        spec=spec,
        ports=(
            g.Port(
                input=below,
                references=below.columns,
                columns=names(fields),
                keys=(),
                schema=pa.schema([pa.field(*column) for column in (*spec.columns, *hidden)]),
                timed=True,
            ),
        ),
        schema=keyed_schema(node.fields, INSERT_ONLY, sequenced, spec.keeps_time),
        single=True,
        keeps_time=spec.keeps_time,
    )
