"""Operators that need all columns and the arrival order of their one input."""

from __future__ import annotations

from dataclasses import replace

from tidemill.changelog.rowkind import RETRACTIONS
from tidemill.operators.api import LocalPhase, OperatorSpec
from tidemill.operators.rows.stored_before import Late
from tidemill.physical import nodes as p
from tidemill.runtime import graph as g
from tidemill.runtime.compile.context import CompileContext
from tidemill.runtime.compile.event_time import delay_of, timed_input
from tidemill.runtime.compile.row_names import NamedRows
from tidemill.runtime.compile.schemas import keyed_schema, names, port_schema
from tidemill.runtime.compile.shared import compile_node
from tidemill.types.logical import BOOLEAN, Field

PASSES_COLUMN = "$passes"
"""Of ``below``: whether a row passes the node's condition."""


def input_of(node: p.Unary, context: CompileContext, timed: bool) -> g.ExecNode:
    compiled: g.ExecNode = (
        timed_input(node, context, True) if timed else compile_node(node.input, context, True)
    )
    return compiled


def keyed(
    node: p.Unary,
    spec: OperatorSpec,
    kind: str,
    keys: tuple[str, ...],
    context: CompileContext,
    sequenced: bool,
    *,
    rows: NamedRows | None = None,
    whole: p.PhysicalNode | None = None,
    below: g.ExecNode | None = None,
    timed: bool = False,
) -> g.ExecNode:
    """A keyed operator that needs all columns and the arrival order of its one input.

    - ``kind``: the first word of the operator's id.
    - ``keys``: the columns by which the exchange partitions the input; () sends all rows to one task.
    - ``rows``: the names of the rows in state; None if the plan's names are used.
    - ``whole``: the node of the plan, if ``node`` only stands in for it.
    - ``below``: the compiled input, if it has further columns.
    - ``timed``: each change has the watermark of the row that caused it."""
    below = below or input_of(node, context, timed)
    inputs = context.sink_fields(node) if isinstance(node, p.Sink) else node.input.fields
    if rows is not None and rows.late is not None:
        inputs = rows.fields[0]
    own = names(inputs)
    carried = (*own, *below.columns[len(own) :])
    kinds = node.consumed if isinstance(node, p.Sink) else node.traits.kinds
    fields = context.sink_fields(node) if isinstance(node, p.Sink) else node.fields
    port = g.Port(input=below, references=below.columns, columns=carried, keys=keys)
    if timed:
        types = (*inputs, Field(PASSES_COLUMN, BOOLEAN))
        port = replace(port, timed=True, schema=port_schema(types, carried, below))
    return g.Keyed(
        columns=names(fields),
        kinds=kinds,
        sequenced=sequenced,
        operator=context.add_operator(kind, whole or node, spec, rows=rows),
        spec=spec,
        ports=(port,),
        schema=keyed_schema(fields, kinds, sequenced, timed),
        single=not keys,
        local=isinstance(spec, LocalPhase) and spec.combinable,
        partitioned=tuple(frozenset({fields[carried.index(k)].name}) for k in keys),
        keeps_time=timed,
        delay=delay_of(below) if timed else None,
    )


def late_of(rows: NamedRows, node: p.Unary) -> Late | None:
    return rows.late_marked(rows.late) if node.input.traits.kinds & RETRACTIONS else rows.late
