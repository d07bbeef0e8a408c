"""From statement trees to bound plans: names, types, columns. ``planning`` chooses how a plan runs."""

from __future__ import annotations

from tidemill.catalog.table import CatalogTable, CatalogView, ObjectPath
from tidemill.config import registry as options
from tidemill.errors import Position
from tidemill.plan import nodes as n
from tidemill.plan.binder.binder import Binder
from tidemill.session.context import SessionContext
from tidemill.session.schema.columns import TypeOf
from tidemill.sql import statements as s
from tidemill.sql.parser import parse_statement
from tidemill.sql.statements import Statement
from tidemill.types.logical import Field, LogicalType


def bind(context: SessionContext, query: s.Query) -> n.LogicalNode:
    """The query's plan as written; its fields are the result's columns."""
    options.check_all(context.configuration)
    return Binder(context).bind_query(query.tree)


def column_names(context: SessionContext, query: s.Query) -> tuple[str, ...]:
    """The query's column names as written; they may repeat."""
    return Binder(context).column_names(query.tree)


def bind_insert(context: SessionContext, statement: s.Insert, table: CatalogTable | None = None) -> n.Sink:
    """``table`` stands in for a target that the catalog does not have yet."""
    options.check_all(context.configuration)
    return Binder(context).bind_insert(statement, table)


def typer(context: SessionContext, statement: s.Statement) -> TypeOf:
    """Types expression texts of a table's schema, over the columns of the table it is given.

    Errors stand where the expression stands in ``statement``; one that came from elsewhere (LIKE, an
    earlier statement) stands at the statement.
    """

    def type_of(text: str, table: CatalogTable) -> LogicalType:
        fields = tuple(Field(c.name, c.type) for c in table.columns)
        place = position_in(text, statement, statement.position)
        return Binder(context).bind_expression(text, fields, place).type

    return type_of


def view_fields(context: SessionContext, path: ObjectPath) -> tuple[Field, ...]:
    """The columns of a view as they were when it was made, whatever has become of its tables."""
    view = context.catalogs.find(path)
    assert isinstance(view, CatalogView)
    if view.column_types:
        return tuple(map(Field, view.column_names, view.column_types))
    star = _query(f"SELECT * FROM `{path.catalog}`.`{path.database}`.`{path.name}`")
    return Binder(context).bind_query(star.tree).fields


def _query(text: str) -> s.Query:
    statement = parse_statement(text)
    assert isinstance(statement, s.Query)
    return statement


def did_you_mean(name: str) -> str:
    """A hint that names the nearest existing name; '' where there is none."""
    return f"Did you mean '{name}'?" if name else ""


def position_in(piece: str, statement: Statement, after: Position) -> Position:
    """The position of ``piece``, text as written, at or behind ``after``; ``after`` if it is not found."""
    start = statement.text.find(piece, _offset(statement, after))
    if start < 0:
        return after
    before = statement.text[:start]
    lines = before.count("\n")
    column = len(before) - before.rfind("\n") - 1
    first = statement.position.column if lines == 0 else 1
    return Position(statement.position.line + lines, first + column)


def _offset(statement: Statement, position: Position) -> int:
    """How far into the statement's text ``position`` is."""
    lines = statement.text.split("\n")
    below = position.line - statement.position.line
    if below == 0:
        return position.column - statement.position.column
    return sum(len(line) + 1 for line in lines[:below]) + position.column - 1
