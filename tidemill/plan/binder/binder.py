"""The binder's public face: it binds queries, INSERTs and the expressions of table schemas.

The binder turns the syntax trees of ``tidemill.sql`` into ``plan.nodes`` over ``plan.expressions``. Binding
reads the environment and changes nothing. Errors are ValidationErrors with the position in the SQL text.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial

from sqlglot import exp

from tidemill.catalog.table import CatalogTable
from tidemill.deep_calls import with_room
from tidemill.errors import Position
from tidemill.plan import nodes as n
from tidemill.plan.binder.context import Context
from tidemill.plan.binder.environment import Environment
from tidemill.plan.binder.expressions import (
    functions,
    json_functions,
    operators,
    special_syntax,
    subqueries,
    temporal_literals,
)
from tidemill.plan.binder.expressions.binding import Handler
from tidemill.plan.binder.queries import insert, merge, over_windows, rewriting, row_changes
from tidemill.plan.binder.queries.query import TreeBinder
from tidemill.plan.binder.relations import table_columns
from tidemill.plan.binder.relations.table_columns import START
from tidemill.plan.expressions import Expr
from tidemill.sql import statements
from tidemill.sql.full_text.names import FullNames
from tidemill.types.logical import Field

HANDLERS: Mapping[type[exp.Expr], Handler] = {
    **operators.HANDLERS,
    **temporal_literals.HANDLERS,
    **special_syntax.HANDLERS,
    **special_syntax.quantifiable(operators.HANDLERS),
    **json_functions.HANDLERS,
    **functions.HANDLERS,
    **over_windows.HANDLERS,
    **subqueries.HANDLERS,
    **merge.HANDLERS,
}


class Binder:
    """Binds against one environment; cheap to make, one per statement."""

    def __init__(self, environment: Environment, *, catalog: str = "", database: str = "") -> None:
        """``catalog`` and ``database`` complete short names; default: the current catalog and database."""
        self._trees = TreeBinder(HANDLERS)
        self._context = Context(
            environment=environment,
            catalog=catalog or environment.current_catalog,
            database=database or environment.current_database,
        )

    def bind_query(self, tree: exp.Expr) -> n.LogicalNode:
        """The plan of a query; its fields are the result's columns."""
        return with_room(lambda: self._trees.bind(tree, self._context)).plan

    def full_names(self, tree: exp.Expr) -> tuple[n.LogicalNode, FullNames]:
        """The plan of a view's query, and the full name of every name in the query."""
        names = FullNames()
        context = replace(self._context, full_names=names)
        return with_room(lambda: self._trees.bind(tree, context)).plan, names

    def column_names(self, tree: exp.Expression) -> tuple[str, ...]:
        """The names of a query's columns as written, before repeated names get a number."""
        return with_room(lambda: self._trees.bind(tree, self._context)).names

    def bind_insert(self, statement: statements.Insert, table: CatalogTable | None = None) -> n.Sink:
        """The plan of an INSERT. ``table``: the target, if it is not in the catalog yet."""
        return with_room(lambda: insert.bind(self._trees, statement, self._context, table))

    def bind_delete(self, statement: statements.Delete, table: CatalogTable) -> n.Sink:
        return with_room(lambda: row_changes.bind_delete(self._trees, statement, table, self._context))

    def bind_update(
        self, statement: statements.Update, table: CatalogTable, fixed: tuple[str, ...]
    ) -> n.Sink:
        """``fixed``: the columns that cannot be set."""
        return with_room(lambda: row_changes.bind_update(self._trees, statement, table, self._context, fixed))

    def bind_affected(
        self, statement: statements.Delete | statements.Update, table: CatalogTable, row_file: str
    ) -> n.LogicalNode:
        """The files with rows to change. ``row_file``: the metadata key of a row's file."""
        bind = partial(rewriting.bind_affected, self._trees, statement, table, self._context, row_file)
        return with_room(bind)

    def bind_rewriting(self, statement: statements.Delete | statements.Update, table: CatalogTable) -> n.Sink:
        """The rows that a part of ``table`` has after the statement."""
        return with_room(partial(rewriting.bind_rewriting, self._trees, statement, table, self._context))

    def bind_merge(self, statement: statements.Merge, table: CatalogTable, fixed: tuple[str, ...]) -> n.Sink:
        """``fixed``: the columns that cannot be set."""
        return with_room(lambda: merge.bind_merge(self._trees, statement, table, self._context, fixed))

    def bind_expression(self, text: str, fields: tuple[Field, ...], position: Position = START) -> Expr:
        """A scalar expression over a row of ``fields``."""
        return with_room(
            lambda: table_columns.bind_text(self._trees, text, fields, replace(self._context), position)
        )
