"""TemporalJoin -> its kernel: both sides with their watermarks, held back to the slower one's delay."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa

from tidemill.changelog.rowkind import KIND_COLUMN, SEQUENCE_COLUMN
from tidemill.changelog.watermarks import WATERMARK_COLUMN
from tidemill.operators.api import HASH_COLUMN
from tidemill.operators.join.shape import JoinSide
from tidemill.operators.lookup_join import ROW, THERE
from tidemill.operators.temporal_join.operator import TemporalJoinSpec
from tidemill.physical import nodes as p
from tidemill.physical.traits.changelog_mode import insert_only
from tidemill.plan.nodes import JoinKind
from tidemill.runtime import graph as g
from tidemill.runtime.compile.context import CompileContext
from tidemill.runtime.compile.event_time import delay_of, timed_rows
from tidemill.runtime.compile.join import JoinCondition, join_condition, keyed_side, partitioned
from tidemill.runtime.compile.kept_rows import kept_rows
from tidemill.runtime.compile.residual import ResidualSplit
from tidemill.runtime.compile.row_names import named_rows
from tidemill.runtime.compile.schemas import keyed_schema, names
from tidemill.runtime.compile.shared import build
from tidemill.runtime.spark.expressions import Translator
from tidemill.types.logical import BOOLEAN, Field
from tidemill.types.physical import quote


@build.register
def _(node: p.TemporalJoin, context: CompileContext, sequenced: bool) -> g.ExecNode:
    if insert_only(node.left):
        return _judged(*_joined(node, context, sequenced), node, context)
    # What works by time above gets every change: in the order of their arrival they have their numbers.
    each = context.digests.of(node) in context.timed_digests
    joined, keys = _joined(node, context, sequenced or each)
    rows, outer = _numbered(_judged(joined, keys, node, context)), node.kind is JoinKind.LEFT
    return kept_rows(node, node.left, rows, context, outer=outer, sequenced=sequenced)


def _joined(node: p.TemporalJoin, context: CompileContext, sequenced: bool) -> tuple[g.Keyed, JoinCondition]:
    """The join itself. Of left rows that may go it says what it finds for each, be it nothing."""
    changes = not insert_only(node.left)
    inputs = (
        timed_rows(node, node.left, context, sequenced),
        timed_rows(node, node.right, context, True),
    )
    rows = named_rows(context.state, "temporal-join", node, *node.inputs)
    keys = join_condition(node, inputs, rows)
    split = ResidualSplit(left_width=len(node.left.fields), names=rows)
    left, left_port = keyed_side(node, 0, inputs[0], keys, split, context)
    right, right_port = keyed_side(node, 1, inputs[1], keys, split, context)
    delay = _common_delay(inputs)
    behind = _behind(inputs, delay)
    left_fields, right_fields = rows.fields
    alive = "" if node.alive is None else right_fields[node.alive].name
    spec = TemporalJoinSpec(
        left=left,
        right=replace(right, output=tuple(c for c in right.output if c != alive)),
        times=(left_fields[node.left_time].name, right_fields[node.right_time].name),
        null_safe=keys.null_safe,
        behind=behind,
        outer=changes or node.kind is JoinKind.LEFT,
        tells=changes,
        alive=alive,
        latest=node.latest,
        sequence=sequenced,
        keeps_time=context.digests.of(node) in context.timed_digests,
        state_ttl=node.right_ttl,
    )
    told = (Field(THERE, BOOLEAN),) * changes
    kinds = inputs[0].kinds
    joined = g.Keyed(
        columns=names((*node.fields, *told)),
        kinds=kinds,
        sequenced=sequenced,
        operator=context.add_operator("temporal-join", node, spec, rows=rows),
        spec=spec,
        ports=(_timed(left_port, left, behind[0]), _timed(right_port, right, behind[1])),
        schema=keyed_schema((*node.fields, *told), kinds, sequenced, spec.keeps_time),
        partitioned=partitioned(node, keys),
        keeps_time=spec.keeps_time,
        delay=delay,
    )
    return joined, keys


def _common_delay(inputs: tuple[g.ExecNode, g.ExecNode]) -> int | None:
    """The slower side's: both watermarks are held back to it, and which rows are late does not depend on how
    far either side has been read."""
    left, right = (delay_of(node) for node in inputs)
    return None if left is None or right is None else max(left, right)


def _behind(inputs: tuple[g.ExecNode, g.ExecNode], delay: int | None) -> tuple[int, int]:
    left, right = (0 if delay is None else delay - (delay_of(node) or 0) for node in inputs)
    return left, right


def _timed(port: g.Port, side: JoinSide, behind: int) -> g.Port:
    hidden = {
        KIND_COLUMN: pa.int8(),
        SEQUENCE_COLUMN: pa.int64(),
        WATERMARK_COLUMN: pa.int64(),
    }
    port = replace(port, timed=True, behind=behind)
    fields = [pa.field(*column) for column in side.columns]
    fields += [pa.field(name, hidden[name]) for name in port.hidden]
    return replace(port, schema=pa.schema([*fields, pa.field(HASH_COLUMN, pa.uint64())]))


def _judged(
    joined: g.Keyed, keys: JoinCondition, node: p.TemporalJoin, context: CompileContext
) -> g.ExecNode:
    """What does not pass the further condition has no version. A row has one at most, so it can be judged
    afterwards."""
    if keys.residual is None:
        return joined
    width, fields = len(node.left.fields), len(node.fields)
    alive = () if node.alive is None else ("",)
    translator = Translator(columns=(*joined.columns[:fields], *alive), zone=context.zone)
    condition = translator.sql(keys.residual)
    own = tuple(map(quote, joined.columns))
    if node.kind is JoinKind.INNER and len(joined.columns) == fields:
        expressions, where = own, condition
    else:
        versions = tuple(f"CASE WHEN {condition} THEN {column} END" for column in own[width:])
        expressions, where = (*own[:width], *versions), None
    return g.Select(
        columns=joined.columns,
        kinds=joined.kinds,
        sequenced=joined.sequenced,
        input=joined,
        expressions=expressions,
        references=tuple(
            c if quote(c) == x else None for c, x in zip(joined.columns, expressions, strict=True)
        ),
        condition=where,
    )


def _numbered(rows: g.ExecNode) -> g.ExecNode:
    """``rows`` with a number of each: every one is an answer of its own."""
    return g.Select(
        columns=(*rows.columns, ROW),
        kinds=rows.kinds,
        sequenced=rows.sequenced,
        input=rows,
        expressions=(*map(quote, rows.columns), "monotonically_increasing_id()"),
        references=(*rows.columns, None),
    )
