"""The last node of a SELECT: the values for its reader, as they are or as texts."""

from __future__ import annotations

import pyarrow as pa

from tidemill.functions.render import is_plain, render_sql
from tidemill.plan.expressions import Cast, InputRef
from tidemill.runtime import graph as g
from tidemill.runtime.array_expressions import projection
from tidemill.runtime.compile.schemas import hidden_fields, keyed_schema
from tidemill.types import logical as t
from tidemill.types.physical import arrow_schema, quote

_ARRAYS = "result"


def result_node(
    node: g.ExecNode, fields: tuple[t.Field, ...], *, text: bool, zone: str, arrays: bool = True
) -> tuple[g.Select, pa.Schema]:
    """The ``fields`` of the result ``node``, and the Arrow schema of its rows. With ``text`` columns have the
    text that is shown, except for booleans and plain numbers. ``arrays``: expressions may have kernels."""
    kept = [not text or is_plain(f.type) for f in fields]
    made = tuple(
        t.Field(column, f.type if keep else t.STRING.with_nullable(f.type.nullable))
        for column, f, keep in zip(node.columns, fields, kept, strict=True)
    )
    names = zip(node.columns, fields, kept, strict=True)
    select = g.Select(
        columns=node.columns,
        kinds=node.kinds,
        sequenced=False,
        input=node,
        expressions=tuple(quote(c) if keep else render_sql(quote(c), f.type, zone) for c, f, keep in names),
        references=tuple(c if keep else None for c, keep in zip(node.columns, kept, strict=True)),
        keeps_time=False,
        arrays=_kernels(node, fields, made, zone) if arrays else None,
    )
    return select, pa.schema([*arrow_schema(made), *hidden_fields(select)])


def _kernels(
    node: g.ExecNode, fields: tuple[t.Field, ...], made: tuple[t.Field, ...], zone: str
) -> g.Arrays | None:
    if any(
        isinstance(f.type, t.BINARY_TYPES) and m.type != f.type for f, m in zip(fields, made, strict=True)
    ):
        return None
    given = (InputRef(type=f.type, index=index) for index, f in enumerate(fields))
    values = tuple(
        ref if ref.type == m.type else Cast(type=m.type, operand=ref)
        for ref, m in zip(given, made, strict=True)
    )
    computed = projection(None, values, node.columns, zone)
    return None if computed is None else g.Arrays(_ARRAYS, computed, keyed_schema(made, node.kinds, False))
