"""What stands between a query and its sink: materialisation by primary key, NOT NULL columns."""

from __future__ import annotations

from tidemill.config.option import Configuration
from tidemill.physical import nodes as p
from tidemill.runtime import graph as g
from tidemill.runtime.compile.context import CompileContext
from tidemill.runtime.compile.not_null import not_null
from tidemill.runtime.compile.rank import materialized
from tidemill.runtime.compile.registry import compile_node
from tidemill.types.logical import Field


def compile_sink(sink: p.Sink, context: CompileContext, config: Configuration) -> g.ExecNode:
    """The exec node whose rows the sink gets."""
    node = materialized(sink, context) if sink.materialize else compile_node(sink.input, context, False)
    targets = tuple(Field(c.name, c.type) for c in sink.table.physical_columns)
    return _enforcing(node, sink.input, targets, config)


def compile_result(root: p.PhysicalNode, context: CompileContext, config: Configuration) -> g.ExecNode:
    """The exec node whose rows a SELECT shows."""
    return _enforcing(compile_node(root, context, False), root, root.fields, config)


def _enforcing(
    node: g.ExecNode, plan: p.PhysicalNode, targets: tuple[Field, ...], config: Configuration
) -> g.ExecNode:
    check = not_null(plan, node.columns, targets, config)
    if check is None:
        return node
    return g.Select(
        columns=node.columns,
        kinds=node.kinds,
        sequenced=False,
        input=node,
        expressions=tuple(map(check.expression, node.columns)),
        references=tuple(None if check.checks(c) else c for c in node.columns),
        condition=check.condition,
    )
