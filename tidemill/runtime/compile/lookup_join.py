"""LookupJoin -> a stage over the rows as they come, which asks the table's connector for the rows of keys."""

from __future__ import annotations

from tidemill.catalog.table import CatalogTable
from tidemill.connectors.api import Connector, LookupConnector, LookupRequest, LookupTable
from tidemill.connectors.registry import validate
from tidemill.errors import NotSupportedError
from tidemill.physical import nodes as p
from tidemill.plan.nodes import JoinKind
from tidemill.runtime import graph as g
from tidemill.runtime.compile.context import CompileContext
from tidemill.runtime.compile.schemas import keyed_schema, names
from tidemill.runtime.compile.shared import build, compile_node
from tidemill.runtime.spark.expressions import Translator
from tidemill.types.logical import Field
from tidemill.types.physical import quote


def lookup_table(
    table: CatalogTable,
    options: tuple[tuple[str, str], ...],
    columns: tuple[str, ...],
    fields: tuple[Field, ...],
    keys: tuple[str, ...],
) -> LookupTable:
    """Of ``table`` the ``columns``, of the types of ``fields``."""
    given = dict(options)
    found: Connector = validate(table, given, role="source")
    asked: object = found
    if not isinstance(asked, LookupConnector):
        raise NotSupportedError(
            f"Connector '{found.identifier}' cannot be asked by key: FOR SYSTEM_TIME AS OF a processing time",
            hint="Use a jdbc table, or join by event time: FOR SYSTEM_TIME AS OF o.ts, WATERMARK FOR ts.",
        )
    return asked.lookup_table(
        LookupRequest(
            table=table,
            options=given,
            fields=tuple(Field(c, f.type) for c, f in zip(columns, fields, strict=True)),
            keys=keys,
        )
    )


@build.register
def _(node: p.LookupJoin, context: CompileContext, sequenced: bool) -> g.ExecNode:
    below = compile_node(node.input, context, sequenced)
    fields = node.fields[len(node.input.fields) :]
    asked = tuple(node.columns[column] for _, column in node.keys)
    joined = g.Lookup(
        columns=names(node.fields),
        kinds=below.kinds,
        sequenced=sequenced,
        input=below,
        table=lookup_table(node.table, node.options, node.columns, fields, asked),
        keys=tuple((below.columns[own], node.columns[column]) for own, column in node.keys),
        outer=node.kind is JoinKind.LEFT,
        schema=keyed_schema(node.fields, below.kinds, sequenced, below.timed),
        name=f"lookup-{context.digests.of(node)}",
    )
    if node.condition is None:
        return joined
    translator = Translator(columns=joined.columns, zone=context.zone)
    return g.Select(
        columns=joined.columns,
        kinds=joined.kinds,
        sequenced=sequenced,
        input=joined,
        expressions=tuple(map(quote, joined.columns)),
        references=joined.columns,
        condition=translator.sql(node.condition),
    )
