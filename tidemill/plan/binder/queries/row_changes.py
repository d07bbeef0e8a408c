"""DELETE and UPDATE of a table by key, as INSERTs of the rows that change.

``DELETE FROM t WHERE c`` hands the sink the rows ``SELECT * FROM t WHERE c`` as deletes.
``UPDATE t SET a = e WHERE c`` is ``INSERT INTO t SELECT e, b, ... FROM t WHERE c``: the sink upserts.
"""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from tidemill.catalog.table import CatalogTable
from tidemill.errors import NotSupportedError, ValidationError
from tidemill.plan import nodes as n
from tidemill.plan.binder.context import Context
from tidemill.plan.binder.expressions.binding import QueryBinder
from tidemill.plan.binder.queries import insert
from tidemill.plan.binder.scope import nearest
from tidemill.sql.statements import Delete, Insert, Update


def bind_delete(binder: QueryBinder, statement: Delete, table: CatalogTable, context: Context) -> n.Sink:
    values = {column.name: _column(column.name) for column in table.written_columns}
    return replace(_bound(binder, statement, values, table, context), deletes=True)


def bind_update(
    binder: QueryBinder, statement: Update, table: CatalogTable, context: Context, fixed: tuple[str, ...]
) -> n.Sink:
    """ValidationError for columns that the table does not have, NotSupportedError for ``fixed`` ones."""
    values: dict[str, exp.Expression] = {
        column.name: _column(column.name) for column in table.written_columns
    }
    assigned: set[str] = set()
    for assignment in statement.assignments:
        name, position = assignment.column, assignment.position
        if name not in values:
            hint = nearest(name, tuple(values))
            raise ValidationError(f"Unknown target column '{name}'", position=position, hint=hint)
        if name in assigned:
            raise ValidationError(f"Target column '{name}' is assigned more than once", position=position)
        if name in fixed:
            own = ", which tells rows apart or is the table's own"
            suffix = " of the primary key" if name in table.primary_key else own
            raise NotSupportedError(f"UPDATE of the column '{name}'{suffix}", position=position)
        assigned.add(name)
        values[name] = assignment.value
    return _bound(binder, statement, values, table, context)


def _column(name: str) -> exp.Expression:
    return exp.Column(this=exp.Identifier(this=name, quoted=True))


def _bound(
    binder: QueryBinder,
    statement: Delete | Update,
    values: dict[str, exp.Expression],
    table: CatalogTable,
    context: Context,
) -> n.Sink:
    identifiers = [exp.Identifier(this=part, quoted=True) for part in statement.target]
    source = exp.Table(**dict(zip(("this", "db", "catalog"), reversed(identifiers), strict=False)))
    tree = exp.Select(expressions=list(values.values()), from_=exp.From(this=source))
    if statement.condition is not None:
        tree.set("where", exp.Where(this=statement.condition))
    insert_statement = Insert(
        target=statement.target,
        target_position=statement.target_position,
        query=tree,
        text=statement.text,
        position=statement.position,
    )
    return insert.bind(binder, insert_statement, context, table)
