"""A table as a query: a Scan of its stored columns, a Project of computed columns, a Watermark."""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from tidemill.catalog.table import CatalogTable, Column, ColumnKind
from tidemill.errors import Position
from tidemill.plan import nodes as n
from tidemill.plan.binder.context import BoundQuery, Context, is_streaming
from tidemill.plan.binder.expressions.binding import Clause, QueryBinder
from tidemill.plan.binder.expressions.calls import coerce
from tidemill.plan.binder.scope import Relation, Scope
from tidemill.plan.expressions import Expr, InputRef
from tidemill.sql.parser import parse_expression
from tidemill.types import logical as t

COMPUTED = Clause(name="computed column")
START = Position(1, 1)


def scan(
    binder: QueryBinder, table: CatalogTable, hinted: tuple[tuple[str, str], ...], context: Context
) -> BoundQuery:
    """All declared columns of ``table``. ``hinted``: options that override the table's own options."""
    options = {**table.options, **dict(hinted)}
    stored = tuple(c for c in table.columns if c.kind is not ColumnKind.COMPUTED)
    plan: n.LogicalNode = n.Scan(
        fields=tuple(t.Field(c.name, c.type) for c in stored),
        table=table,
        columns=tuple(c.name for c in stored),
        options=tuple(options.items()),
    )
    if len(stored) < len(table.columns):
        plan = _with_computed(binder, table, plan, context)
    if table.watermark is not None and is_streaming(context):
        plan = _with_watermark(binder, table, plan, context)
    return BoundQuery(plan=plan, names=tuple(c.name for c in table.columns))


def _with_computed(
    binder: QueryBinder, table: CatalogTable, source: n.LogicalNode, context: Context
) -> n.LogicalNode:
    expressions = tuple(_column(binder, c, source, context) for c in table.columns)
    fields = tuple(t.Field(c.name, x.type) for c, x in zip(table.columns, expressions, strict=True))
    return n.Project(fields=fields, input=source, expressions=expressions)


def _column(binder: QueryBinder, column: Column, source: n.LogicalNode, context: Context) -> Expr:
    if column.kind is ColumnKind.COMPUTED:
        bound = bind_text(binder, column.expression, source.fields, context)
        return coerce(bound, column.type) if column.type != bound.type else bound
    index = [f.name for f in source.fields].index(column.name)
    return InputRef(type=source.fields[index].type, index=index)


def bind_text(
    binder: QueryBinder,
    text: str,
    fields: tuple[t.Field, ...],
    context: Context,
    position: Position = START,
) -> Expr:
    """Binds the text of a computed column or watermark over a row of ``fields``."""
    tree: exp.Expr = parse_expression(text, position)
    scope = Scope(relations=(Relation(alias="", fields=fields),))
    return binder.expressions(replace(context, scopes=()), scope, COMPUTED).bind(tree)


def _with_watermark(
    binder: QueryBinder, table: CatalogTable, source: n.LogicalNode, context: Context
) -> n.LogicalNode:
    assert table.watermark is not None
    index = [f.name for f in source.fields].index(table.watermark.column)
    expression = bind_text(binder, table.watermark.expression, source.fields, context)
    fields = list(source.fields)
    fields[index] = t.Field(fields[index].name, rowtime_type(fields[index].type))
    return n.Watermark(fields=tuple(fields), input=source, rowtime=index, expression=expression)


def rowtime_type(kind: t.LogicalType) -> t.LogicalType:
    """The row-time attribute type of a column of type ``kind``."""
    if isinstance(kind, t.TimestampType):
        return replace(kind, rowtime=True)
    if isinstance(kind, t.LocalZonedTimestampType):
        return replace(kind, attribute="ROWTIME")
    return kind
