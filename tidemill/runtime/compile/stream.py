"""Scans and the stateless nodes of a physical stream plan -> exec graph.

Nodes that only describe (Exchange, local phases) leave no trace here.
"""

from __future__ import annotations

from dataclasses import replace

from tidemill.changelog.rowkind import INSERT_ONLY
from tidemill.connectors.registry import connector
from tidemill.errors import NotSupportedError
from tidemill.functions.literals import literal_sql
from tidemill.physical import nodes as p
from tidemill.physical.set_operations import REPLICATE_ROWS
from tidemill.physical.traits.determinism import keeps_values, refuse_changes
from tidemill.physical.traits.event_time import reads_watermark
from tidemill.plan.expressions import Expr, InputRef
from tidemill.runtime import graph as g
from tidemill.runtime.array_expressions import projection
from tidemill.runtime.compile.computed_once import computed_once
from tidemill.runtime.compile.context import CompileContext, used_fields
from tidemill.runtime.compile.event_time import under_watermark
from tidemill.runtime.compile.generators import (
    ROWS_COLUMN,
    expand_generator,
    replicate_generator,
    rows_generator,
    unnest_generator,
)
from tidemill.runtime.compile.row_watermarks import beside_watermark
from tidemill.runtime.compile.schemas import keyed_schema, names
from tidemill.runtime.compile.shared import build, compile_node, transparent, without_update_before
from tidemill.runtime.compile.source import declared, source_request
from tidemill.runtime.spark.expressions import Translator
from tidemill.runtime.spark.user_columns import expression
from tidemill.runtime.values_source import FrameSource, ValuesSource
from tidemill.types.logical import Field
from tidemill.types.physical import quote, spark_schema
from tidemill.user_functions.calls import BoundTable


@build.register
def _(node: p.TableSourceScan, context: CompileContext, sequenced: bool) -> g.ExecNode:
    """A choice of the columns that are read of all scans of the table together."""
    whole = context.whole_scan(node)
    if whole is not node:
        below = compile_node(whole, context, sequenced)
        read = dict(zip(whole.columns, below.columns, strict=True))
        return g.choice(below, names(node.fields), tuple(map(read.get, node.columns)), sequenced)
    place = f"scan-{context.state.ids.table(node.table, dict(node.options))}"
    options, filters = dict(node.options), context.offered(node)
    request = source_request(node.table, node.columns, options, node.fields, context, sequenced, filters)
    columns = names(node.fields)
    made = g.Read(
        columns=columns,
        kinds=node.traits.kinds,
        sequenced=sequenced,
        source=context.add_source(
            context.make_source(request), place, node.table.path.name, str(node.table.path)
        ),
        schema=keyed_schema(request.fields, node.traits.kinds, sequenced),
        arrow=bool(options) and connector(options).gives_arrow(),
    )
    texts = declared(request, columns)
    references = tuple(c if text == quote(c) else None for c, text in zip(columns, texts, strict=True))
    if None not in references:
        return made
    return g.Select(
        columns=columns,
        kinds=made.kinds,
        sequenced=sequenced,
        input=made,
        expressions=texts,
        references=references,
    )


@build.register
def _(node: p.Values, context: CompileContext, sequenced: bool) -> g.ExecNode:
    source = ValuesSource(
        columns=names(node.fields),
        rows=tuple(tuple(literal_sql(v.value, v.type) for v in row) for row in node.rows),
        schema=spark_schema(node.fields),
        sequence=sequenced,
    )
    digest = context.digests.of(node)
    key = context.add_source(source, f"values-{context.state.ids.of(node)}", "Values")
    read = _read(node, key, sequenced)
    return read if node.rows or digest not in context.timed_digests else under_watermark(read, context)


@build.register
def _(node: p.DataFrameScan, context: CompileContext, sequenced: bool) -> g.ExecNode:
    frame = context.frames[node.key]
    source = FrameSource(frame=frame, expressions=tuple(map(quote, frame.columns)), sequence=sequenced)
    key = context.add_source(source, f"frame-{node.key}", "DataFrame")
    return _read(node, key, sequenced)


def _read(node: p.PhysicalNode, source: str, sequenced: bool) -> g.Read:
    kinds = node.traits.kinds
    return g.Read(
        columns=names(node.fields),
        kinds=kinds,
        sequenced=sequenced,
        source=source,
        schema=keyed_schema(node.fields, kinds, sequenced),
    )


@build.register
def _(node: p.Calc, context: CompileContext, sequenced: bool) -> g.ExecNode:
    beside = reads_watermark(node)
    if beside:
        node, below = beside_watermark(node, context, sequenced)
    else:
        below = compile_node(node.input, context, sequenced)
    if keeps_values(node) and below.kinds != INSERT_ONLY:
        return computed_once(node, below, context)
    arrays = _arrays(node, below, context, sequenced)
    if arrays is None and node.condition is not None and not beside:
        chosen = _chosen(node, below, context, sequenced)
        if chosen.arrays is not None:
            return _computed(replace(node, condition=None), below.columns, chosen, None, context)
    return _computed(node, below.columns, below, arrays, context)


def _computed(
    node: p.Calc,
    columns: tuple[str, ...],
    below: g.ExecNode,
    arrays: g.Arrays | None,
    context: CompileContext,
) -> g.Select:
    """The projection ``node`` over ``below``; ``columns``: its columns there, by the fields of its input."""
    translator = Translator(columns=columns, zone=context.zone)
    expressions = tuple(expression(e, translator) for e in node.projections)
    # A cast that Spark's types do not show, as of a time attribute, is its column too.
    references = {quote(c): c for c in below.columns}
    return g.Select(
        columns=names(node.fields),
        kinds=below.kinds,
        sequenced=below.sequenced,
        input=below,
        expressions=expressions,
        references=tuple(references.get(x) if isinstance(x, str) else None for x in expressions),
        condition=None if node.condition is None else translator.sql(node.condition),
        arrays=arrays,
    )


def _chosen(node: p.Calc, below: g.ExecNode, context: CompileContext, sequenced: bool) -> g.Select:
    """The filter of ``node`` alone: if only the filter has kernels, the JVM gets fewer rows."""
    places = sorted(used_fields(node.projections))
    fields = tuple(Field(below.columns[i], node.input.fields[i].type) for i in places)
    refs = tuple(InputRef(type=f.type, index=i) for i, f in zip(places, fields, strict=True))
    alone = replace(node, projections=refs, fields=fields)
    return _computed(alone, below.columns, below, _arrays(alone, below, context, sequenced), context)


def _arrays(node: p.Calc, below: g.ExecNode, context: CompileContext, sequenced: bool) -> g.Arrays | None:
    if not context.arrays:
        return None
    made = projection(node.condition, node.projections, below.columns, context.zone)
    schema = keyed_schema(node.fields, below.kinds, sequenced)
    return None if made is None else g.Arrays(f"calc-{context.digests.of(node)}", made, schema)


build.register(p.Exchange, transparent)


@build.register
def _(node: p.DropUpdateBefore, context: CompileContext, sequenced: bool) -> g.ExecNode:
    return without_update_before(compile_node(node.input, context, sequenced))


@build.register
def _(node: p.Expand, context: CompileContext, sequenced: bool) -> g.ExecNode:
    below = compile_node(node.input, context, sequenced)
    translator = Translator(columns=below.columns, zone=context.zone)
    return g.Generate(
        columns=names(node.fields),
        kinds=below.kinds,
        sequenced=sequenced,
        input=below,
        expressions=(),
        generator=expand_generator(node.projections, node.fields, translator),
    )


@build.register
def _(node: p.Union, context: CompileContext, sequenced: bool) -> g.ExecNode:
    branches = tuple(compile_node(b, context, sequenced) for b in node.branches)
    return g.Merge(
        columns=names(node.fields),
        kinds=frozenset().union(*(b.kinds for b in branches)),
        sequenced=sequenced,
        branches=branches,
    )


@build.register
def _(node: p.Correlate, context: CompileContext, sequenced: bool) -> g.ExecNode:
    refuse_changes(node, node.args, "in a table function", node.user)
    below = compile_node(node.input, context, sequenced)
    translator = Translator(columns=below.columns, zone=context.zone)
    generated = node.fields[len(node.input.fields) :]
    if node.user is not None:
        below = _with_rows(below, node.user, node.args, translator)
        generator = rows_generator(quote(ROWS_COLUMN), generated, node.outer)
    elif node.function == "UNNEST":
        generator = unnest_generator(
            node.args[0], generated, node.outer, node.ordinality, node.condition, translator
        )
    elif node.function == REPLICATE_ROWS:
        generator = replicate_generator(node.args, generated, translator)
    else:
        raise NotSupportedError(f"The table function {node.function} is not supported yet")
    return g.Generate(
        columns=names(node.fields),
        kinds=below.kinds,
        sequenced=sequenced,
        input=below,
        expressions=tuple(map(quote, names(node.input.fields))),
        generator=generator,
    )


def _with_rows(
    below: g.ExecNode, function: BoundTable, args: tuple[Expr, ...], translator: Translator
) -> g.ExecNode:
    """``below`` and the list of rows that a user's table function gives for each of its rows."""
    return g.Select(
        columns=(*below.columns, ROWS_COLUMN),
        kinds=below.kinds,
        sequenced=below.sequenced,
        input=below,
        expressions=(
            *map(quote, below.columns),
            g.UserColumn(function, tuple(map(translator.sql, args))),
        ),
        references=(*below.columns, None),
    )
