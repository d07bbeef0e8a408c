"""WindowsOfRows -> the kernel of its windows, which emits the rows of each window without aggregation."""

from __future__ import annotations

from dataclasses import replace

from tidemill.changelog.rowkind import INSERT_ONLY
from tidemill.operators.window.clock import INSTANTS
from tidemill.operators.window.dynamic import DynamicAggregateSpec
from tidemill.operators.window.output import WindowColumns
from tidemill.operators.window.shape import WindowShape
from tidemill.physical import nodes as p
from tidemill.physical.names import free_name
from tidemill.runtime import graph as g
from tidemill.runtime.compile.context import CompileContext
from tidemill.runtime.compile.event_time import delay_of, timed_input
from tidemill.runtime.compile.schemas import keyed_schema, names
from tidemill.runtime.compile.shared import build
from tidemill.runtime.compile.windows import (
    TIME,
    by_instants,
    how_it_runs,
    made_by_rows,
    port_schema,
    timed_by,
    zone_of,
)
from tidemill.types.physical import arrow_type


@build.register
def _(node: p.WindowsOfRows, context: CompileContext, sequenced: bool) -> g.ExecNode:
    inputs = node.input.fields
    types = {f.name: arrow_type(f.type) for f in inputs}
    partition = tuple(dict.fromkeys(inputs[k].name for k in node.partition))
    start, end, time = node.fields[len(inputs) :]
    taken = set(types)
    columns = WindowColumns(
        start=free_name(start.name, taken),
        end=free_name(end.name, taken),
        rowtime=free_name(time.name, taken),
        rowtime_type=arrow_type(time.type),
        shown_by=zone_of(node, context) if by_instants(node) else INSTANTS,
    )
    shape = WindowShape(
        keys=tuple((name, types[name]) for name in partition),
        rows=tuple((name, kind) for name, kind in types.items() if name not in partition),
        calls=(),
        time=TIME,
        columns=columns,
        output=(*types, columns.start, columns.end, columns.rowtime),
        **how_it_runs(node, context, sequenced),
    )
    spec, rows = made_by_rows(shape, node.window), timed_input(node, context, True)
    if isinstance(spec, DynamicAggregateSpec):
        spec = replace(spec, delayed=delay_of(rows) or 0)
    below, carried = timed_by(rows, node, context), (*types, TIME)
    return g.Keyed(
        columns=names(node.fields),
        kinds=INSERT_ONLY,
        sequenced=sequenced,
        operator=context.add_operator("windows", node, spec),
        spec=spec,
        ports=(
            g.Port(
                input=below,
                references=carried,
                columns=carried,
                keys=partition,
                schema=port_schema(node, carried, below, context),
                timed=True,
                behind=spec.behind,
            ),
        ),
        schema=keyed_schema(node.fields, INSERT_ONLY, sequenced, spec.keeps_time),
        single=not partition,
        partitioned=tuple(frozenset({name}) for name in partition),
        keeps_time=spec.keeps_time,
    )
