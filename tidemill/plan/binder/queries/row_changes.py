"""DELETE and UPDATE of a table by key, as INSERTs of the rows that change.

``DELETE FROM t WHERE c`` hands the sink the rows ``SELECT * FROM t WHERE c`` as deletes.
``UPDATE t SET a = e WHERE c`` is ``INSERT INTO t SELECT e, b, ... FROM t WHERE c``: the sink upserts.
"""

from __future__ import annotations

from collections.abc import Container
from dataclasses import replace

from sqlglot import exp

from tidemill.catalog.table import CatalogTable
from tidemill.changelog.rowkind import RowKind
from tidemill.errors import NotSupportedError, Position, ValidationError
from tidemill.plan import nodes as n
from tidemill.plan.binder.context import Context
from tidemill.plan.binder.expressions.binding import QueryBinder
from tidemill.plan.binder.queries import insert
from tidemill.plan.binder.scope import nearest
from tidemill.sql.statements import Delete, Insert, Update


def bind_delete(binder: QueryBinder, statement: Delete, table: CatalogTable, context: Context) -> n.Sink:
    values = {column.name: column_named(column.name) for column in table.written_columns}
    return replace(_bound(binder, statement, values, table, context), kinds=frozenset({RowKind.DELETE}))


def bind_update(
    binder: QueryBinder, statement: Update, table: CatalogTable, context: Context, fixed: tuple[str, ...]
) -> n.Sink:
    """ValidationError for columns that the table does not have, NotSupportedError for ``fixed`` ones."""
    assigned: dict[str, exp.Expression] = {}
    for assignment in statement.assignments:
        check_assigned(assignment.column, assignment.position, table, assigned, fixed)
        assigned[assignment.column] = assignment.value
    values = {c.name: column_named(c.name) for c in table.written_columns} | assigned
    return _bound(binder, statement, values, table, context)


def check_assigned(
    name: str, position: Position, table: CatalogTable, assigned: Container[str], fixed: tuple[str, ...]
) -> None:
    """ValidationError if the column ``name`` does not exist or has a value already, NotSupportedError if it
    is one of ``fixed``, which cannot be set."""
    written = [column.name for column in table.written_columns]
    if name not in written:
        hint = nearest(name, tuple(written))
        raise ValidationError(f"Unknown target column '{name}'", position=position, hint=hint)
    if name in assigned:
        raise ValidationError(f"Target column '{name}' is assigned more than once", position=position)
    if name in fixed:
        own = ", which tells rows apart or is the table's own"
        suffix = " of the primary key" if name in table.primary_key else own
        raise NotSupportedError(f"UPDATE of the column '{name}'{suffix}", position=position)


def column_named(name: str, table: str = "") -> exp.Expression:
    """The tree of a column; ``table``: the alias of its table."""
    of = {"table": exp.Identifier(this=table, quoted=True)} if table else {}
    return exp.Column(this=exp.Identifier(this=name, quoted=True), **of)


def table_named(path: tuple[str, ...]) -> exp.Table:
    """The tree of a table."""
    identifiers = [exp.Identifier(this=part, quoted=True) for part in path]
    return exp.Table(**dict(zip(("this", "db", "catalog"), reversed(identifiers), strict=False)))


def _bound(
    binder: QueryBinder,
    statement: Delete | Update,
    values: dict[str, exp.Expression],
    table: CatalogTable,
    context: Context,
) -> n.Sink:
    tree = exp.Select(expressions=list(values.values()), from_=exp.From(this=table_named(statement.target)))
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
