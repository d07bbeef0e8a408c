"""What stands between a query and its sink: materialisation by primary key, NOT NULL columns."""

from __future__ import annotations

from tidemill.config.option import Configuration
from tidemill.config.sink_options import NOT_NULL_ENFORCER
from tidemill.functions.literals import literal_sql
from tidemill.physical import nodes as p
from tidemill.runtime import graph as g
from tidemill.runtime.compile.context import CompileContext
from tidemill.runtime.compile.rank import materialized
from tidemill.runtime.compile.registry import compile_node
from tidemill.types.logical import STRING
from tidemill.types.physical import quote


def compile_sink(sink: p.Sink, context: CompileContext, config: Configuration) -> g.ExecNode:
    """The exec node whose rows the sink gets."""
    node = materialized(sink, context) if sink.materialize else compile_node(sink.input, context, False)
    required = required_columns(sink, node.columns)
    if not required:
        return node
    drops = config.read(NOT_NULL_ENFORCER).upper() == "DROP"
    kept = " AND ".join(f"{quote(c)} IS NOT NULL" for c in required)
    return g.Select(
        columns=node.columns,
        kinds=node.kinds,
        sequenced=False,
        input=node,
        expressions=tuple(
            quote(c) if drops or c not in required else _enforced(c, required[c]) for c in node.columns
        ),
        references=tuple(c if drops or c not in required else None for c in node.columns),
        condition=kept if drops else None,
    )


def required_columns(sink: p.Sink, columns: tuple[str, ...]) -> dict[str, str]:
    """Query columns that may be NULL and go into a NOT NULL column: the sink's name by the query's."""
    pairs = zip(columns, sink.input.fields, sink.table.physical_columns, strict=False)
    return {c: target.name for c, field, target in pairs if field.type.nullable and not target.type.nullable}


def _enforced(column: str, target: str) -> str:
    message = (
        f"Column '{target}' is NOT NULL, however, a null value is being written into it. You can set job "
        f"configuration '{NOT_NULL_ENFORCER.key}'='DROP' to suppress this exception and drop such records "
        "silently."
    )
    return f"coalesce({quote(column)}, raise_error({literal_sql(message, STRING)}))"
