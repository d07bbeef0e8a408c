"""IntervalJoin -> its kernel: both sides with their watermark, and the condition without keys and bounds.

Where the kernel of an outer join cannot compute the condition, the join is two operators: Spark filters the
candidates in between (``operators.interval_join.judged``).
"""

from __future__ import annotations

from dataclasses import replace
from typing import TypedDict

import pyarrow as pa

from tidemill.changelog.rowkind import INSERT_ONLY, RowKind
from tidemill.changelog.watermarks import WATERMARK_COLUMN
from tidemill.errors import InternalError
from tidemill.operators.api import HASH_COLUMN
from tidemill.operators.interval_join.judged import (
    ENDS,
    ROWS,
    CandidatesSpec,
    JudgedSpec,
    candidate_columns,
    key_columns,
)
from tidemill.operators.interval_join.operator import IntervalJoinSpec
from tidemill.physical import nodes as p
from tidemill.physical.conditions import conjunction, conjuncts
from tidemill.physical.joins.by_pairs import innermost_calls, unknown_parts
from tidemill.physical.joins.intervals import without_bounds
from tidemill.plan.expressions import Expr, InputRef
from tidemill.plan.rewrite import map_down
from tidemill.plan.rules.determinism import has_user_call
from tidemill.runtime import graph as g
from tidemill.runtime.compile.context import CompileContext
from tidemill.runtime.compile.join import JoinParts, join_parts, partitioned
from tidemill.runtime.compile.row_names import NamedRows, by_place, named_rows
from tidemill.runtime.compile.schemas import keyed_schema, names
from tidemill.runtime.compile.shared import build, compile_node
from tidemill.runtime.spark.expressions import Translator
from tidemill.runtime.spark.user_columns import expression
from tidemill.types.logical import BIGINT, Field
from tidemill.types.physical import quote


@build.register
def _(node: p.IntervalJoin, context: CompileContext, sequenced: bool) -> g.ExecNode:
    left, right = (compile_node(i, context, False) for i in node.inputs)
    if not (left.timed and right.timed):
        raise InternalError("an interval join of rows without a watermark is planned as a join")
    unknown = unknown_parts(node)
    residual = without_bounds(node)
    known = [part for part in ([] if residual is None else conjuncts(residual)) if part not in unknown]
    rows = by_place(node) if unknown else named_rows(context.state, "interval-join", node, *node.inputs)
    joined = join_parts(replace(node, residual=conjunction(known)), (left, right), context, rows)
    spec = _spec(node, joined, rows, context, sequenced)
    if unknown:
        return _judged(node, spec, joined, conjunction(unknown), context)
    return g.Keyed(
        operator=context.add_operator("interval-join", node, spec, rows=rows),
        spec=spec,
        ports=(_timed(joined.ports[0]), _timed(joined.ports[1])),
        **_output(node, spec, joined),
    )


def _spec(
    node: p.IntervalJoin, joined: JoinParts, rows: NamedRows, context: CompileContext, sequenced: bool
) -> IntervalJoinSpec:
    join, (left, right) = joined.spec, rows.fields
    return IntervalJoinSpec(
        kind=join.kind,
        left=join.left,
        right=join.right,
        times=(left[node.bounds.left].name, right[node.bounds.right].name),
        lower=node.bounds.lower,
        upper=node.bounds.upper,
        null_safe=join.null_safe,
        residual=join.residual,
        sequence=sequenced,
        keeps_time=context.digests.of(node) in context.timed_digests,
    )


class _Output(TypedDict):
    columns: tuple[str, ...]
    kinds: frozenset[RowKind]
    sequenced: bool
    schema: str
    single: bool
    partitioned: tuple[frozenset[str], ...]
    keeps_time: bool


def _output(node: p.IntervalJoin, spec: IntervalJoinSpec, joined: JoinParts) -> _Output:
    """What the join gives, whichever operator gives it."""
    return _Output(
        columns=names(node.fields),
        kinds=INSERT_ONLY,
        sequenced=spec.sequence,
        schema=keyed_schema(node.fields, INSERT_ONLY, spec.sequence, spec.keeps_time),
        single=not joined.condition.left,
        partitioned=partitioned(node, joined.condition),
        keeps_time=spec.keeps_time,
    )


def _judged(
    node: p.IntervalJoin,
    spec: IntervalJoinSpec,
    joined: JoinParts,
    condition: Expr | None,
    context: CompileContext,
) -> g.ExecNode:
    """Two operators, in the same tasks: the second one gets the candidates that Spark lets through."""
    assert condition is not None
    candidates = _candidates(node, spec, joined, context)
    passed = _passing(candidates, names(node.fields), condition, context)
    columns = candidate_columns(spec)
    keys = key_columns(len(joined.condition.left))
    hidden = (pa.field(HASH_COLUMN, pa.uint64()), pa.field(WATERMARK_COLUMN, pa.int64()))
    judging = JudgedSpec(join=spec)
    port = g.Port(
        input=passed,
        references=candidates.columns,
        columns=tuple(name for name, _ in columns),
        keys=keys,
        schema=pa.schema([*(pa.field(*column) for column in columns), *hidden]),
        timed=True,
    )
    return g.Keyed(
        operator=context.add_operator("interval-join", node, judging),
        spec=judging,
        ports=(port,),
        **_output(node, spec, joined),
    )


def _candidates(
    node: p.IntervalJoin, spec: IntervalJoinSpec, joined: JoinParts, context: CompileContext
) -> g.Keyed:
    candidates = CandidatesSpec(join=spec)
    condition = joined.condition
    keys = key_columns(len(condition.left))
    fields = (
        *(Field(k, x.type.with_nullable(True)) for k, x in zip(keys, condition.left, strict=True)),
        *node.fields,
        *(Field(name, BIGINT) for name in (*ROWS, *ENDS)),
    )
    return g.Keyed(
        columns=names(fields),
        kinds=INSERT_ONLY,
        sequenced=False,
        operator=context.add_operator("interval-candidates", node, candidates),
        spec=candidates,
        ports=(_timed(joined.ports[0]), _timed(joined.ports[1])),
        schema=keyed_schema(fields, INSERT_ONLY, False, True),
        single=not keys,
        partitioned=tuple(frozenset({k}) for k in keys),
        keeps_time=True,
    )


def _passing(
    candidates: g.Keyed, fields: tuple[str, ...], condition: Expr, context: CompileContext
) -> g.ExecNode:
    """The single rows, and the pairs that meet ``condition``, which is over ``fields``."""
    below, columns, condition = _with_calls(candidates, fields, condition, context)
    translator = Translator(columns=columns, zone=context.zone)
    alone = " OR ".join(f"{quote(name)} IS NULL" for name in ROWS)
    return g.Select(
        columns=candidates.columns,
        kinds=INSERT_ONLY,
        sequenced=False,
        input=below,
        expressions=tuple(map(quote, candidates.columns)),
        references=candidates.columns,
        condition=f"{alone} OR ({translator.sql(condition)})",
    )


def _with_calls(
    below: g.ExecNode, columns: tuple[str, ...], condition: Expr, context: CompileContext
) -> tuple[g.ExecNode, tuple[str, ...], Expr]:
    """``below`` with a column for each call of a user's function, inner calls first; the names of the
    condition's columns in it, and the condition over them."""
    while has_user_call(condition):
        calls = innermost_calls(condition)
        translator = Translator(columns=columns, zone=context.zone)
        added = tuple(f"$u{len(columns) + i}" for i in range(len(calls)))
        below = g.Select(
            columns=(*below.columns, *added),
            kinds=INSERT_ONLY,
            sequenced=False,
            input=below,
            expressions=(*map(quote, below.columns), *(expression(x, translator) for x in calls)),
            references=(*below.columns, *[None] * len(calls)),
        )
        first = len(columns)
        places: dict[Expr, Expr] = {x: InputRef(type=x.type, index=first + i) for i, x in enumerate(calls)}
        condition, columns = map_down(condition, places.get), (*columns, *added)
    return below, columns, condition


def _timed(port: g.Port) -> g.Port:
    schema = None if port.schema is None else port.schema.append(pa.field(WATERMARK_COLUMN, pa.int64()))
    return replace(port, schema=schema, timed=True)
