"""What stands between a query and its sink: materialisation by primary key, its columns' constraints."""

from __future__ import annotations

from dataclasses import replace

from tidemill.changelog.rowkind import INSERT_ONLY
from tidemill.config.option import Configuration
from tidemill.operators.last_arrived import LastArrivedSpec
from tidemill.physical import nodes as p
from tidemill.physical.sinks import arrives_by_time, may_conflict_across_tasks
from tidemill.runtime import graph as g
from tidemill.runtime.compile.constraints import constraints
from tidemill.runtime.compile.context import CompileContext
from tidemill.runtime.compile.event_time import timed_input
from tidemill.runtime.compile.row_names import named_rows
from tidemill.runtime.compile.schemas import columns_of, keyed_schema, names, port_schema
from tidemill.runtime.compile.shared import compile_node
from tidemill.runtime.compile.sink_materializer import materialized
from tidemill.types.logical import Field
from tidemill.types.physical import arrow_type, quote


def compile_sink(sink: p.Sink, context: CompileContext, config: Configuration) -> g.ExecNode:
    """The exec node whose rows the sink gets."""
    if sink.materialize:
        node = materialized(sink, context)
    elif may_conflict_across_tasks(sink):
        node = _last_arrived(sink, context)
    else:
        node = compile_node(sink.input, context, False)
    targets = tuple(Field(c.name, c.type) for c in sink.table.written_columns)
    return _named(_enforcing(node, sink.input, targets, config, context), names(sink.fields))


def _named(node: g.ExecNode, columns: tuple[str, ...]) -> g.ExecNode:
    """``node`` with its columns, which are the sink's by their places, called as the sink calls them."""
    if node.columns == columns:
        return node
    return g.Select(
        columns=columns,
        kinds=node.kinds,
        sequenced=False,
        input=node,
        expressions=tuple(map(quote, node.columns)),
        references=node.columns,
    )


def _last_arrived(sink: p.Sink, context: CompileContext) -> g.ExecNode:
    """Of the rows of an epoch the last of each primary key, as if they came one by one."""
    timed = arrives_by_time(sink)
    below = timed_input(sink, context, False) if timed else compile_node(sink.input, context, True)
    fields = context.sink_fields(sink)
    named = {c.name: f.name for c, f in zip(sink.table.written_columns, fields, strict=False)}
    keys = tuple(named[k] for k in sink.table.primary_key)
    spec = LastArrivedSpec(columns=columns_of(fields), keys=keys, timed=timed)
    schema = port_schema(fields, names(fields), below) if timed else None
    rows = named_rows(context.state, "last-arrived", sink, sink.input)
    port = g.Port(input=below, references=below.columns, columns=names(fields), keys=keys)
    return g.Keyed(
        columns=names(fields),
        kinds=INSERT_ONLY,
        sequenced=False,
        operator=context.add_operator("last-arrived", sink, spec, rows=rows),
        spec=spec,
        ports=(replace(port, schema=schema, timed=timed),),
        schema=keyed_schema(fields, INSERT_ONLY, False),
        local=not timed,
    )


def compile_result(root: p.PhysicalNode, context: CompileContext, config: Configuration) -> g.ExecNode:
    """The exec node whose rows a SELECT shows."""
    return _enforcing(compile_node(root, context, False), root, root.fields, config, context)


def _enforcing(
    node: g.ExecNode,
    plan: p.PhysicalNode,
    targets: tuple[Field, ...],
    config: Configuration,
    context: CompileContext,
) -> g.ExecNode:
    check = constraints(plan, node.columns, targets, config)
    if check is None:
        return node
    types = tuple(arrow_type(f.type) for f in plan.fields)
    checked = check.projection(node.columns, types) if context.arrays else None
    schema = keyed_schema(plan.fields, node.kinds, False)
    name = f"constraints-{context.digests.of(plan)}"
    return g.Select(
        columns=node.columns,
        kinds=node.kinds,
        sequenced=False,
        input=node,
        expressions=tuple(map(check.expression, node.columns)),
        references=tuple(None if check.checks(c) else c for c in node.columns),
        condition=check.condition,
        arrays=None if checked is None else g.Arrays(name, checked, schema),
    )
