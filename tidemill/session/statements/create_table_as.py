"""CREATE TABLE AS, CREATE OR REPLACE TABLE AS, REPLACE TABLE AS: a table of a query's columns, and the job
that fills it.

The query is bound as an INSERT into the table, and the table's options are checked, before the catalog
changes: what is refused leaves the catalog, and the table that was to be replaced, as they were. Data that
the old table's connector holds stays there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tidemill.catalog.manager import quoted
from tidemill.catalog.table import CatalogTable, Column, ColumnKind, ObjectPath
from tidemill.errors import ValidationError
from tidemill.functions import casts
from tidemill.plan import nodes as n
from tidemill.session import binding, inserts, planning
from tidemill.session.context import SessionContext
from tidemill.session.result import TableResult, ok
from tidemill.session.schema.columns import check_unique, declared
from tidemill.session.schema.precision import cut_times
from tidemill.session.schema.table import completed, plain_table
from tidemill.session.statements import show_create
from tidemill.sql import statements as s
from tidemill.sql.parser import parse_statement
from tidemill.types.logical import Field, without_attribute


def create(statement: s.CreateTable, context: SessionContext, *, taken: bool) -> TableResult:
    """``taken``: IF NOT EXISTS found a table, and nothing is to be done."""
    if taken:
        return ok()
    path = context.catalogs.qualify(statement.path)
    before = context.catalogs.find_permanent(path)
    if statement.replace:
        _check_replaced(before, path, statement)
    table, sink = planned(statement, context)
    planning.check_sink(table)
    if statement.replace and before is not None:
        context.catalogs.replace(table)
    else:
        context.catalogs.create(table)
    context.warn(cut_times(table))
    return inserts.run_inserts(context, [sink], [written(statement, context)])


def _check_replaced(before: object, path: ObjectPath, statement: s.CreateTable) -> None:
    if before is None and statement.must_exist:
        raise ValidationError(
            f"The table {quoted(path)} to be replaced doesn't exist.",
            position=statement.position,
            hint="You can try to use CREATE TABLE AS statement or CREATE OR REPLACE TABLE AS statement.",
        )
    if before is not None and not isinstance(before, CatalogTable):
        raise ValidationError(
            f"Table with identifier '{path}' does not exist.",
            position=statement.position,
            hint=f"'{path.name}' is a view: only a table can be replaced.",
        )


def planned(statement: s.CreateTable, context: SessionContext) -> tuple[CatalogTable, n.Sink]:
    """The table of CREATE TABLE AS, and the INSERT that fills it; nothing is created."""
    table, targets = _table(statement, context)
    assert statement.query is not None
    insert = s.Insert(
        text=statement.text,
        position=statement.position,
        target=(table.path.catalog, table.path.database, table.path.name),
        query=statement.query,
        columns=targets,
        target_position=statement.position,
    )
    return table, binding.bind_insert(context, insert, table)


def written(statement: s.CreateTable, context: SessionContext) -> s.Insert:
    """``insert_text`` as a statement."""
    found = parse_statement(insert_text(statement, context))
    assert isinstance(found, s.Insert)
    return found


def insert_text(statement: s.CreateTable, context: SessionContext) -> str:
    """The INSERT that fills the table, as text: where the table is already there, it goes on with that."""
    table, targets = _table(statement, context)
    names = f" ({', '.join(map(show_create.name, targets))})" if targets else ""
    return f"INSERT INTO {quoted(table.path)}{names} {statement.query_text}"


def _table(statement: s.CreateTable, context: SessionContext) -> tuple[CatalogTable, tuple[str, ...]]:
    """The table, and the columns of it that the query's go to; () where these are its columns."""
    fields = binding.bind(context, _query(statement)).fields
    path = context.catalogs.qualify(statement.path)
    made = replace(plain_table(statement, path), columns=_columns(statement, fields))
    table = completed(statement, made, binding.typer(context, statement))
    targets = tuple(f.name for f in fields)
    return table, () if targets == tuple(c.name for c in table.written_columns) else targets


def _query(statement: s.CreateTable) -> s.Query:
    assert statement.query is not None
    return s.Query(text=statement.query_text, position=statement.position, tree=statement.query)


def _columns(statement: s.CreateTable, fields: Sequence[Field]) -> tuple[Column, ...]:
    """The query's columns in the order of the list of names; or the declared columns, then those of the query
    that are not declared."""
    given = {f.name: Column(name=f.name, type=without_attribute(f.type)) for f in fields}
    if statement.column_names:
        return _listed(statement, given)
    check_unique(statement.columns)
    own = [declared(definition) for definition in statement.columns]
    for position, (column, definition) in enumerate(zip(own, statement.columns, strict=True), start=1):
        if column.name in given:
            _check_declared(column, definition, given[column.name], position)
    names = {column.name for column in own}
    return (*own, *(column for name, column in given.items() if name not in names))


def _listed(statement: s.CreateTable, given: dict[str, Column]) -> tuple[Column, ...]:
    names = statement.column_names
    if len(names) != len(given):
        raise ValidationError(
            "The number of columns in the column list must match the number of columns in the source schema.",
            position=statement.position,
            expected=tuple(given),
        )
    for name in names:
        if name not in given:
            raise ValidationError(
                f"Column '{name}' not found in the source schema.",
                position=statement.position,
                expected=tuple(given),
            )
        if names.count(name) > 1:
            raise ValidationError(f"Column '{name}' is listed twice.", position=statement.position)
    return tuple(given[name] for name in names)


def _check_declared(column: Column, definition: s.ColumnDefinition, source: Column, position: int) -> None:
    if column.kind is ColumnKind.COMPUTED or column.virtual:
        kind = "computed" if column.kind is ColumnKind.COMPUTED else "virtual metadata"
        raise ValidationError(
            f"A column named '{column.name}' already exists in the source schema. The {kind} column would "
            "not take its values.",
            position=definition.position,
            hint=f"Give the {kind} column another name.",
        )
    may_be_null = source.type.nullable and not column.type.nullable
    if may_be_null or not casts.can_cast_implicitly(source.type, column.type):
        raise ValidationError(
            f"Incompatible types for sink column '{column.name}' at position {position}. The source column "
            f"has type '{source.type}', while the target column has type '{column.type}'.",
            position=definition.position,
        )
