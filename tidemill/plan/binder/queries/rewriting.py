"""DELETE and UPDATE of a table that lies in files, as queries over the files that have rows to change.

``UPDATE t SET a = e WHERE c`` asks ``SELECT DISTINCT file FROM t WHERE c`` first. Then it writes these files
anew: ``SELECT CASE WHEN c THEN e ELSE a END, b, ... FROM t``. ``DELETE FROM t WHERE c`` writes
``SELECT * FROM t WHERE (c) IS NOT TRUE``: rows for which the condition is unknown stay. The condition is
computed twice, so it must give the same answer each time.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from sqlglot import exp

from tidemill.catalog.table import CatalogTable, Column, ColumnKind
from tidemill.errors import NotSupportedError
from tidemill.plan import nodes as n
from tidemill.plan.binder.context import Context
from tidemill.plan.binder.expressions.binding import QueryBinder
from tidemill.plan.binder.queries import insert
from tidemill.plan.binder.queries.row_changes import check_assigned, column_named
from tidemill.plan.binder.relations import table_columns
from tidemill.plan.rewrite import node_expressions, subplan
from tidemill.plan.rules.determinism import is_deterministic
from tidemill.sql.expressions import Assigned, TypeSpec
from tidemill.sql.statements import Delete, Insert, Update
from tidemill.types import logical as t

_ROWS = "$rows"
_FILE = "$file"
_TRUE = exp.Boolean(this=True)


def bind_affected(
    binder: QueryBinder, statement: Delete | Update, table: CatalogTable, context: Context, row_file: str
) -> n.LogicalNode:
    """NotSupportedError for a condition that may give another answer when it is computed again."""
    file = Column(
        name=_FILE,
        type=t.VarCharType(nullable=False),
        kind=ColumnKind.METADATA,
        metadata_key=row_file,
        virtual=True,
    )
    named = replace(table, columns=(*table.columns, file))
    tree = _from(statement, [column_named(_FILE)])
    tree.set("distinct", exp.Distinct())
    tree.set("where", exp.Where(this=_condition(statement)))
    plan = binder.bind(tree, _over(binder, named, context)).plan
    if not all(is_deterministic(x) for node in _nodes(plan) for x in node_expressions(node)):
        word = "DELETE" if isinstance(statement, Delete) else "UPDATE"
        raise NotSupportedError(
            f"A condition of {word} of files that calls a non-deterministic function",
            position=statement.position,
            hint="Write the value in its place, a time as a TIMESTAMP '...' say.",
        )
    return plan


def bind_rewriting(
    binder: QueryBinder, statement: Delete | Update, table: CatalogTable, context: Context
) -> n.Sink:
    """The rows of ``table`` after the statement. ValidationError for columns that it does not have."""
    values: dict[str, exp.Expression] = {c.name: column_named(c.name) for c in table.written_columns}
    if isinstance(statement, Update):
        values |= _assigned(statement, table)
    tree = _from(statement, list(values.values()))
    if isinstance(statement, Delete):
        stays = exp.Not(this=exp.Is(this=exp.Paren(this=_condition(statement)), expression=_TRUE.copy()))
        tree.set("where", exp.Where(this=stays))
    written = Insert(
        target=statement.target,
        target_position=statement.target_position,
        query=tree,
        text=statement.text,
        position=statement.position,
    )
    return insert.bind(binder, written, _over(binder, table, context), table)


def tables_below(plan: n.LogicalNode) -> Iterator[n.Scan | n.FrameScan]:
    """What the plan reads, in subqueries too."""
    return (node for node in _nodes(plan) if isinstance(node, n.Scan | n.FrameScan))


def _assigned(statement: Update, table: CatalogTable) -> dict[str, exp.Expression]:
    found: dict[str, exp.Expression] = {}
    types = {column.name: column.type for column in table.written_columns}
    for assignment in statement.assignments:
        name = assignment.column
        check_assigned(name, assignment.position, table, found, ())
        spec = TypeSpec(this=types[name], written=str(types[name]))
        value = Assigned(this=assignment.value, to=spec, name=name)
        branch = exp.If(this=_condition(statement), true=value)
        found[name] = exp.Case(ifs=[branch], default=column_named(name))
    return found


def _condition(statement: Delete | Update) -> exp.Expression:
    return _TRUE.copy() if statement.condition is None else statement.condition.copy()


def _from(statement: Delete | Update, expressions: list[exp.Expression]) -> exp.Select:
    alias = exp.TableAlias(this=exp.Identifier(this=statement.target[-1], quoted=True))
    rows = exp.Table(this=exp.Identifier(this=_ROWS, quoted=True), alias=alias)
    return exp.Select(expressions=expressions, from_=exp.From(this=rows))


def _over(binder: QueryBinder, table: CatalogTable, context: Context) -> Context:
    """``context`` with the rows of ``table`` under the name ``_ROWS``."""
    return context.with_cte(_ROWS, table_columns.scan(binder, table, (), context))


def _nodes(plan: n.LogicalNode) -> Iterator[n.LogicalNode]:
    yield plan
    for below in plan.inputs:
        yield from _nodes(below)
    for expr in node_expressions(plan):
        for inner in filter(None, map(subplan, expr.walk())):
            yield from _nodes(inner)
