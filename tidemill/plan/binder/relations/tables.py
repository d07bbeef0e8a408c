"""FROM: tables, views and derived tables, each with the scope of its row."""

from __future__ import annotations

from dataclasses import dataclass, replace

from sqlglot import exp

from tidemill.catalog.table import CatalogFrame, CatalogTable, CatalogView, ObjectPath
from tidemill.errors import NotSupportedError, Position, ValidationError
from tidemill.functions import casts
from tidemill.plan import nodes as n
from tidemill.plan.binder.context import BoundQuery, Context
from tidemill.plan.binder.expressions.binding import QueryBinder
from tidemill.plan.binder.naming import all_columns, column_aliases, with_column_names
from tidemill.plan.binder.queries import ordering
from tidemill.plan.binder.relations import table_columns
from tidemill.plan.binder.relations.time_travel import time_option
from tidemill.plan.binder.scope import Relation, Scope, nearest
from tidemill.plan.expressions import Cast, Expr
from tidemill.sql.expressions import FlinkHint
from tidemill.sql.parser import parse_statement
from tidemill.sql.positions import position_of
from tidemill.sql.statements import Query
from tidemill.types.logical import Field, LogicalType, without_attribute

Options = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A bound FROM item: its rows, and the scope that names their columns."""

    plan: n.LogicalNode
    scope: Scope


def named_source(query: BoundQuery, alias: str, path: tuple[str, ...] = ()) -> Source:
    relation = Relation(alias=alias, fields=query.fields, path=path)
    return Source(plan=query.plan, scope=Scope(relations=(relation,)))


def bind_table(binder: QueryBinder, node: exp.Expr, context: Context) -> Source:
    """``[catalog.[database.]]name [/*+ OPTIONS */] [AS alias [(columns)]]``."""
    assert isinstance(node, exp.Table)
    version = node.args.get("version")
    if version is None:
        return bind_named(binder, node, context)
    return bind_named(binder, node, context, _as_of(binder, node, version, context))


def _as_of(binder: QueryBinder, node: exp.Table, version: exp.Expr, context: Context) -> Options:
    """The table's options, with the time of FOR SYSTEM_TIME AS OF as an option."""
    parts, options = tuple(p.name for p in node.parts), table_options(node)
    table = None if _is_cte(parts, context) else context.environment.resolve(context.path(parts))
    if not isinstance(table, CatalogTable):
        raise NotSupportedError(
            f"FOR SYSTEM_TIME AS OF '{'.'.join(parts)}', which is not a table", position=position_of(node)
        )
    hinted = {**table.options, **dict(options)}
    return (*options, time_option(binder, version, table, hinted, context))


def _is_cte(parts: tuple[str, ...], context: Context) -> bool:
    return len(parts) == 1 and parts[0] in context.ctes


def bind_named(
    binder: QueryBinder, node: exp.Table, context: Context, options: Options | None = None
) -> Source:
    """The table. ``options`` replace the options of its hints."""
    parts = tuple(p.name for p in node.parts)
    hinted = table_options(node) if options is None else options
    query, path = object_query(binder, parts, hinted, context, position_of(node))
    query = with_column_names(query, column_aliases(node), node)
    alias = node.alias or parts[-1]
    named_itself = path is not None and alias == path.name
    full = (path.catalog, path.database, path.name) if path is not None else ()
    if context.full_names is not None:
        context.full_names.table(node, full or parts)
        context.full_names.star(node, (((alias, name), name) for name in query.names))
    return named_source(query, alias, full if named_itself else ())


def table_options(node: exp.Expr) -> Options:
    """The options of OPTIONS hints. STATE_TTL and join hints belong to the SELECT."""
    hints = [h for h in node.args.get("hints") or () if isinstance(h, FlinkHint)]
    return tuple(option for h in hints if h.name.upper() == "OPTIONS" for option in h.options)


def object_query(
    binder: QueryBinder,
    parts: tuple[str, ...],
    options: Options,
    context: Context,
    position: Position | None,
) -> tuple[BoundQuery, ObjectPath | None]:
    """The rows of a CTE, table or view; the path is None for a CTE."""
    if _is_cte(parts, context):
        return context.ctes[parts[0]], None
    path = context.path(parts)
    catalog_object = context.environment.resolve(path)
    if catalog_object is None:
        raise not_found(parts, context, position)
    if isinstance(catalog_object, CatalogTable):
        context.environment.check_table(catalog_object, {**catalog_object.options, **dict(options)}, position)
        return table_columns.scan(binder, catalog_object, options, context), path
    if options:
        view_path = f"`{path.catalog}`.`{path.database}`.`{path.name}`"
        raise ValidationError(
            f"View '{view_path}' cannot be enriched with new options. Hints can only be applied to tables.",
            position=position,
        )
    if isinstance(catalog_object, CatalogFrame):
        plan = n.FrameScan(fields=catalog_object.fields, key=catalog_object.key)
        return BoundQuery(plan=plan, names=tuple(f.name for f in catalog_object.fields)), path
    return _view(binder, catalog_object, context, position), path


def not_found(parts: tuple[str, ...], context: Context, position: Position | None) -> ValidationError:
    """Names the first part that is missing and what it was looked for in, as Flink does."""
    missing, within = _first_missing(parts, context)
    names = context.environment.names_within(*(within or (context.catalog, context.database)))
    return ValidationError(
        f"Object '{missing}' not found" + (f" within '{'.'.join(within)}'" if within else ""),
        position=position,
        hint=nearest(missing, (*names, *context.ctes)),
    )


def _first_missing(parts: tuple[str, ...], context: Context) -> tuple[str, tuple[str, ...]]:
    """The place is only told if the name leads there, or nearly: with its parts, or in another case."""
    here = (context.catalog, context.database)
    for start in (here, here[:1], ())[: len(parts)]:
        full = (*start, *parts)
        known = _known(full, context)
        names = context.environment.names_within(*full[:known]) if known < 3 else ()
        if known > len(start) or full[known].lower() in map(str.lower, names):
            return full[known], full[:known]
    return parts[0], ()


def _known(full: tuple[str, ...], context: Context) -> int:
    """How many parts of the name, from the left, name something."""
    for known in range(2):
        if full[known] not in context.environment.names_within(*full[:known]):
            return known
    return 3 if context.environment.resolve(ObjectPath(*full[:3])) is not None else 2


def _view(binder: QueryBinder, view: CatalogView, context: Context, position: Position | None) -> BoundQuery:
    """The view's query, bound in the catalog and database in which the view was created."""
    if view.path in context.views:
        chain = " -> ".join(str(p) for p in (*context.views, view.path))
        raise ValidationError(f"View '{view.path}' refers to itself: {chain}", position=position)
    inner = Context(
        environment=context.environment,
        catalog=view.default_catalog or context.catalog,
        database=view.default_database or context.database,
        views=(*context.views, view.path),
    )
    statement = parse_statement(view.text, Position(1, 1))
    if not isinstance(statement, Query):
        raise ValidationError(f"View '{view.path}' is not a query", position=position)
    query = ordering.unordered(binder.bind(statement.tree, inner))
    return _as_created(query, view, position)


def _as_created(query: BoundQuery, view: CatalogView, position: Position | None) -> BoundQuery:
    """The view's columns with the names and types of its creation; a cast restores a changed type."""
    names = view.column_names or query.names
    if len(names) != len(query.names):
        raise ValidationError(
            f"View '{view.path}' has {len(names)} columns, but its query gives {len(query.names)}"
            f" ({', '.join(query.names)})",
            position=position,
            hint="Create the view again.",
        )
    columns = all_columns(query.plan)
    kinds = view.column_types or tuple(column.type for column in columns)
    typed = tuple(_of_type(*declared, position) for declared in zip(names, columns, kinds, strict=True))
    if typed == columns:
        return replace(query, names=names)
    fields = tuple(Field(f.name, x.type) for f, x in zip(query.plan.fields, typed, strict=True))
    return BoundQuery(plan=n.Project(fields=fields, input=query.plan, expressions=typed), names=names)


def _of_type(name: str, column: Expr, kind: LogicalType, position: Position | None) -> Expr:
    kind = without_attribute(kind)
    if without_attribute(column.type).with_nullable(True) == kind.with_nullable(True):
        return column
    if not casts.can_cast(column.type, kind):
        raise ValidationError(
            f"Column '{name}' is {column.type}, but was {kind} when the view was created", position=position
        )
    return Cast(type=kind.with_nullable(column.type.nullable), operand=column, implicit=True)


def bind_derived(binder: QueryBinder, node: exp.Expr, context: Context) -> Source:
    """``(query) AS alias (columns)``; sees the enclosing queries but not its neighbours."""
    alias = context.alias(node)
    query = with_column_names(ordering.unordered(binder.bind(node.this, context)), column_aliases(node), node)
    return named_source(query, alias)


def bind_lateral(binder: QueryBinder, node: exp.Expr, context: Context) -> Source:
    """LATERAL as the first item of FROM has nothing on its left."""
    alias = context.alias(node)
    return named_source(with_column_names(binder.bind(node.this, context), column_aliases(node), node), alias)


def bind_values(binder: QueryBinder, node: exp.Expr, context: Context) -> Source:
    query = with_column_names(binder.bind(node, context), column_aliases(node), node)
    return named_source(query, context.alias(node))
