"""A projection over a changelog with expressions that are not deterministic, such as RAND().

The values of these expressions become further columns of the input. The kernel keeps them, and gives a
retracted row the values of its insertion. The projection and its condition then read these columns.
"""

from __future__ import annotations

from functools import reduce

import pyarrow as pa

from tidemill.changelog.rowkind import KIND_COLUMN, SEQUENCE_COLUMN
from tidemill.changelog.watermarks import WATERMARK_COLUMN
from tidemill.operators.computed_once import ComputedOnceSpec
from tidemill.physical import nodes as p
from tidemill.physical.conditions import conjuncts
from tidemill.plan.expressions import Call, Expr
from tidemill.plan.rules.determinism import is_deterministic
from tidemill.runtime import graph as g
from tidemill.runtime.compile.context import CompileContext
from tidemill.runtime.compile.schemas import keyed_schema
from tidemill.runtime.spark.expressions import Translator
from tidemill.runtime.spark.user_columns import expression
from tidemill.types.logical import BOOLEAN, Field
from tidemill.types.physical import arrow_type, quote

_HIDDEN = {KIND_COLUMN: pa.int8(), SEQUENCE_COLUMN: pa.int64(), WATERMARK_COLUMN: pa.int64()}


def computed_once(node: p.Calc, below: g.ExecNode, context: CompileContext) -> g.ExecNode:
    """``node`` over ``below``."""
    translator = Translator(columns=below.columns, zone=context.zone)
    parts = [] if node.condition is None else conjuncts(node.condition)
    anew = [part for part in parts if not is_deterministic(part)]
    computed = {f"$computed{i}": e for i, e in enumerate(node.projections) if not is_deterministic(e)}
    if anew:
        computed["$passes"] = _all(anew)
    steady = [part for part in parts if is_deterministic(part)]
    kept = _kept(node, _with(below, computed, steady, translator), below, computed, context)
    expressions = tuple(
        quote(f"$computed{i}") if f"$computed{i}" in computed else expression(e, translator)
        for i, e in enumerate(node.projections)
    )
    columns = {quote(c): c for c in kept.columns}
    return g.Select(
        columns=tuple(f.name for f in node.fields),
        kinds=kept.kinds,
        sequenced=kept.sequenced,
        input=kept,
        expressions=expressions,
        references=tuple(columns.get(x) if isinstance(x, str) else None for x in expressions),
        condition=quote("$passes") if anew else None,
    )


def _all(parts: list[Expr]) -> Expr:
    return reduce(lambda a, b: Call(function="AND", args=(a, b), type=BOOLEAN), parts)


def _with(
    below: g.ExecNode, computed: dict[str, Expr], steady: list[Expr], translator: Translator
) -> g.ExecNode:
    """The rows that pass what is steady, with the computed columns."""
    return g.Select(
        columns=(*below.columns, *computed),
        kinds=below.kinds,
        sequenced=below.sequenced,
        input=below,
        expressions=(*map(quote, below.columns), *(expression(e, translator) for e in computed.values())),
        references=(*below.columns, *[None] * len(computed)),
        condition=translator.sql(_all(steady)) if steady else None,
    )


def _kept(
    node: p.Calc, rows: g.ExecNode, below: g.ExecNode, computed: dict[str, Expr], context: CompileContext
) -> g.ExecNode:
    own = tuple(Field(c, f.type) for c, f in zip(below.columns, node.input.fields, strict=True))
    added = tuple(Field(name, e.type) for name, e in computed.items())
    spec = ComputedOnceSpec(
        columns=tuple((f.name, arrow_type(f.type)) for f in own),
        computed=tuple((f.name, arrow_type(f.type)) for f in added),
        sequence=rows.sequenced,
        keeps_time=rows.timed,
    )
    columns = (*spec.columns, *spec.computed, *((h, _HIDDEN[h]) for h in rows.hidden))
    port = g.Port(
        input=rows,
        references=rows.columns,
        columns=rows.columns,
        keys=below.columns,
        schema=pa.schema([pa.field(*column) for column in columns]),
        timed=rows.timed,
    )
    return g.Keyed(
        columns=rows.columns,
        kinds=rows.kinds,
        sequenced=rows.sequenced,
        operator=context.add_operator("computed-once", node, spec),
        spec=spec,
        ports=(port,),
        schema=keyed_schema((*own, *added), rows.kinds, rows.sequenced, rows.timed),
        single=not below.columns,
        partitioned=tuple(frozenset({c}) for c in below.columns),
        keeps_time=rows.timed,
    )
