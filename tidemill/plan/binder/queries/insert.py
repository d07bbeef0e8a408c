"""INSERT: matches the query's columns to the sink's, and casts or refuses them as Flink does."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sqlglot import exp

from tidemill.catalog.table import CatalogTable, CatalogView, Column
from tidemill.errors import Position, ValidationError
from tidemill.functions import casts
from tidemill.plan import nodes as n
from tidemill.plan.binder.context import BoundQuery, Context, is_streaming
from tidemill.plan.binder.expressions import literals
from tidemill.plan.binder.expressions.binding import Clause, QueryBinder
from tidemill.plan.binder.expressions.calls import coerce
from tidemill.plan.binder.naming import all_columns
from tidemill.plan.binder.scope import Scope, nearest
from tidemill.plan.expressions import Cast, Expr, Literal
from tidemill.plan.rules.merge_projects import merge_projects
from tidemill.sql import statements
from tidemill.types import logical as t

PARTITION = Clause(name="PARTITION")


def bind(
    binder: QueryBinder, statement: statements.Insert, context: Context, table: CatalogTable | None
) -> n.Sink:
    target = table or _target(statement, context)
    if target.distribution is not None:
        raise ValidationError(
            f"Table '{target.path}' is distributed into buckets, but its connector does not write buckets.",
            position=statement.target_position,
            hint="Drop the distribution: ALTER TABLE ... DROP DISTRIBUTION.",
        )
    options = {**target.options, **dict(statement.hints)}
    context.environment.check_table(target, options, statement.target_position)
    columns = target.written_columns
    query = binder.bind(statement.query, replace(context, untyped_null=True))
    static = _static_partition(binder, statement, context, target)
    if statement.overwrite and is_streaming(context):
        message = "Streaming mode not support overwrite."
        raise ValidationError(message, position=statement.target_position)
    names = _named_columns(statement, columns, static)
    _check_count(query, names, columns, target, statement)
    plan, fields = _sink_rows(query, names, columns, static, target, statement)
    return n.Sink(
        fields=fields,
        input=plan,
        table=target,
        options=tuple(options.items()),
        conflict=statement.conflict,
        overwrite=statement.overwrite,
        static_partition=tuple(
            (name, _partition_text(name, x, statement.target_position)) for name, x in static
        ),
        target_columns=statement.columns,
    )


def _target(statement: statements.Insert, context: Context) -> CatalogTable:
    catalog_object = context.environment.resolve(context.path(statement.target))
    if catalog_object is None:
        path = context.path(statement.target)
        within = context.environment.names_within
        raise ValidationError(
            f"Cannot find table '`{path.catalog}`.`{path.database}`.`{path.name}`' in any of the catalogs"
            f" [{', '.join(sorted(within()))}], nor as a temporary table.",
            position=statement.target_position,
            hint=nearest(path.name, within(path.catalog, path.database)),
        )
    if not isinstance(catalog_object, CatalogTable):
        kind = "view" if isinstance(catalog_object, CatalogView) else "DataFrame view"
        raise ValidationError(
            f"'{catalog_object.path}' is a {kind}: only a table can be inserted into",
            position=statement.target_position,
        )
    return catalog_object


def _static_partition(
    binder: QueryBinder, statement: statements.Insert, context: Context, target: CatalogTable
) -> tuple[tuple[str, Expr], ...]:
    """The columns that PARTITION (name = value) fixes, with their values."""
    expressions = binder.expressions(context, Scope(), PARTITION)
    fixed_columns = []
    for name, value in statement.partition:
        if name in [c.name for c in target.columns] and name not in target.partitioned_by:
            keys = ", ".join(target.partitioned_by)
            raise ValidationError(
                f"Static partition column '{name}' should be in the partition keys list [{keys}]"
                f" for table '{target.path}'.",
                position=statement.target_position,
            )
        if isinstance(value, exp.Expr):
            fixed_columns.append((name, expressions.bind(value)))
    return tuple(fixed_columns)


def _partition_text(name: str, value: Expr, position: Position) -> str:
    if isinstance(value, Literal) and value.value is not None:
        return str(value.value)
    raise ValidationError(f"The static partition value of '{name}' must be a constant", position=position)


def _named_columns(
    statement: statements.Insert, columns: Sequence[Column], static: Sequence[tuple[str, Expr]]
) -> list[str]:
    """The sink columns that get the query's columns, in the query's order."""
    fixed = {name for name, _ in static}
    column_names = [c.name for c in columns]
    for name in (*statement.columns, *fixed):
        if name not in column_names:
            raise ValidationError(
                f"Unknown target column '{name}'",
                position=statement.target_position,
                hint=nearest(name, column_names),
            )
    if len(set(statement.columns)) < len(statement.columns):
        twice = next(c for c in statement.columns if statement.columns.count(c) > 1)
        raise ValidationError(
            f"Target column '{twice}' is assigned more than once", position=statement.target_position
        )
    return [name for name in (statement.columns or column_names) if name not in fixed]


def _check_count(
    query: BoundQuery,
    names: list[str],
    columns: Sequence[Column],
    target: CatalogTable,
    statement: statements.Insert,
) -> None:
    if len(query.names) != len(names):
        used = [c for c in columns if c.name in names]
        raise _mismatch("Different number of columns.", query, used, target, statement)


def _mismatch(
    cause: str,
    query: BoundQuery,
    columns: Sequence[Column],
    target: CatalogTable,
    statement: statements.Insert,
) -> ValidationError:
    query_schema = ", ".join(f"{f.name}: {f.type}" for f in query.plan.fields)
    sink_schema = ", ".join(f"{c.name}: {c.type}" for c in columns)
    return ValidationError(
        f"Column types of query result and sink for '{target.path}' do not match.\nCause: {cause}\n\n"
        f"Query schema: [{query_schema}]\nSink schema:  [{sink_schema}]",
        position=statement.target_position,
    )


def _sink_rows(
    query: BoundQuery,
    names: list[str],
    columns: Sequence[Column],
    static: Sequence[tuple[str, Expr]],
    target: CatalogTable,
    statement: statements.Insert,
) -> tuple[n.LogicalNode, tuple[t.Field, ...]]:
    """The rows for the sink, and the sink's columns with their own types."""
    by_column_name = dict(zip(names, all_columns(query.plan), strict=True))
    by_column_name.update(static)
    expressions = []
    for position, column in enumerate(columns, start=1):
        expr = by_column_name.get(column.name, literals.null(column.type))
        if not assignable(expr.type, column.type):
            cause = f"Incompatible types for sink column '{column.name}' at position {position}."
            raise _mismatch(cause, query, columns, target, statement)
        if column.name not in by_column_name and not column.type.nullable:
            cause = f"Column '{column.name}' has no default value and does not allow NULLs"
            raise ValidationError(cause, position=statement.target_position)
        expressions.append(coerce(expr, column.type))
    fields = tuple(
        t.Field(c.name, c.type.with_nullable(c.type.nullable or x.type.nullable))
        for c, x in zip(columns, expressions, strict=True)
    )
    own = all_columns(query.plan)
    if _need_no_cast(own, fields, expressions):
        return query.plan, fields
    plan = n.Project(fields=fields, input=query.plan, expressions=tuple(expressions))
    return (isinstance(query.plan, n.Project) and merge_projects(plan)) or plan, fields


def _need_no_cast(own: Sequence[Expr], fields: Sequence[t.Field], expressions: Sequence[Expr]) -> bool:
    """Whether the query's columns fit the sink's columns by position without a cast; names may differ."""
    return len(own) == len(fields) and all(
        x == column
        or (isinstance(x, Cast) and x.operand == column and _holds_unchanged(field.type, column.type))
        for x, column, field in zip(expressions, own, fields, strict=True)
    )


def _holds_unchanged(target: t.LogicalType, source: t.LogicalType) -> bool:
    """Whether a ``target`` column can hold ``source`` values without a cast. A longer text type holds shorter
    texts, and a plain timestamp column holds a row-time attribute."""
    for kinds, wide in ((t.CHARACTER_TYPES, t.VarCharType), (t.BINARY_TYPES, t.VarBinaryType)):
        if isinstance(source, kinds) and isinstance(target, wide):
            return source.length <= target.length
    target_type = target.with_nullable(source.nullable)
    return isinstance(source, t.TimestampType) and t.without_attribute(source) == target_type


def assignable(source: t.LogicalType, target: t.LogicalType) -> bool:
    """Whether INSERT writes a ``source`` value to a ``target`` column."""
    return isinstance(source, t.NullType) or casts.can_cast_implicitly(source, target)
