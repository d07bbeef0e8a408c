"""DELETE and UPDATE of a table that lies in files, as queries over the files that have rows to change.

``UPDATE t SET a = e WHERE c`` asks ``SELECT file, COUNT(*) FROM t WHERE c GROUP BY file`` first. Then it
writes these files anew: ``SELECT CASE WHEN c THEN e ELSE a END, b, ... FROM t``. ``DELETE FROM t WHERE c``
writes ``SELECT * FROM t WHERE (c) IS NOT TRUE``: rows for which the condition is unknown stay. The condition
is computed twice, so it must give the same answer each time.

A table may want the changed rows, too, with the kind of change in a column of its own: then they come by
UNION ALL. A table whose files can lose single rows wants the changed rows alone: ``SELECT e, b, ..., file,
row FROM t WHERE c``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from sqlglot import exp

from tidemill.catalog.table import CatalogTable, Column, ColumnKind, Rewriting
from tidemill.errors import NotSupportedError, Position
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
    tree = _from(statement, [column_named(_FILE), exp.Anonymous(this="COUNT", expressions=[exp.Star()])])
    tree.set("where", exp.Where(this=_condition(statement)))
    tree.set("group", exp.Group(expressions=[column_named(_FILE)]))
    plan = binder.bind(tree, _over(binder, named, context)).plan
    word = "DELETE" if isinstance(statement, Delete) else "UPDATE"
    _check_deterministic(plan, f"A condition of {word} of files that", statement.position)
    return plan


def _check_deterministic(plan: n.LogicalNode, what: str, position: Position) -> None:
    if not all(is_deterministic(x) for node in _nodes(plan) for x in node_expressions(node)):
        raise NotSupportedError(
            f"{what} calls a non-deterministic function",
            position=position,
            hint="Write the value in its place, a time as a TIMESTAMP '...' say.",
        )


def bind_rewriting(
    binder: QueryBinder, statement: Delete | Update, table: CatalogTable, context: Context
) -> n.Sink:
    """The rows of ``table`` after the statement. ValidationError for columns that it does not have."""
    old: dict[str, exp.Expression] = {c.name: column_named(c.name) for c in table.written_columns}
    new = old | (_assigned(statement, table) if isinstance(statement, Update) else {})
    tree: exp.Expression = _after(statement, new, None)
    read = target = table
    name = "" if table.rewriting is None else table.rewriting.change_type
    if table.rewriting is not None and table.rewriting.places:
        places = _places(table.rewriting)
        read = replace(table, columns=(*table.columns, *places))
        plain = (
            replace(column, kind=ColumnKind.PHYSICAL, metadata_key="", virtual=False) for column in places
        )
        target = replace(table, columns=(*table.columns, *plain))
        tree = _from(statement, [*_copies(new), *(column_named(column.name) for column in places)])
        tree.set("where", exp.Where(this=_condition(statement)))
    if name:
        target = replace(table, columns=(*table.columns, Column(name=name, type=t.STRING)))
        tree = _after(statement, new, _change(name, ""))
        for kind, values in _changes(statement, old, new):
            changed = _from(statement, [*_copies(values), _change(name, kind)])
            changed.set("where", exp.Where(this=_condition(statement)))
            tree = exp.Union(this=tree, expression=changed, distinct=False)
    written = Insert(
        target=statement.target,
        target_position=statement.target_position,
        query=tree,
        text=statement.text,
        position=statement.position,
    )
    bound = insert.bind(binder, written, _over(binder, read, context), target)
    if name:  # each of the rows is computed twice
        _check_deterministic(bound.input, "UPDATE of a table with a change feed that", statement.position)
    return bound


def _places(rewriting: Rewriting) -> list[Column]:
    return [
        Column(name=name, type=key.type, kind=ColumnKind.METADATA, metadata_key=key.name, virtual=True)
        for name, key in zip(rewriting.place_columns, rewriting.places, strict=True)
    ]


def _after(
    statement: Delete | Update, values: dict[str, exp.Expression], change: exp.Expression | None
) -> exp.Select:
    """All rows after the statement."""
    tree = _from(statement, [*_copies(values), *([] if change is None else [change])])
    if isinstance(statement, Delete):
        stays = exp.Not(this=exp.Is(this=exp.Paren(this=_condition(statement)), expression=_TRUE.copy()))
        tree.set("where", exp.Where(this=stays))
    return tree


def _changes(
    statement: Delete | Update, old: dict[str, exp.Expression], new: dict[str, exp.Expression]
) -> list[tuple[str, dict[str, exp.Expression]]]:
    """The kinds of changes of a row, and its values for each."""
    if isinstance(statement, Delete):
        return [("delete", old)]
    return [("update_preimage", old), ("update_postimage", new)]


def _change(name: str, kind: str) -> exp.Expression:
    return Assigned(this=exp.Literal.string(kind), to=TypeSpec(this=t.STRING, written="STRING"), name=name)


def _copies(values: dict[str, exp.Expression]) -> list[exp.Expression]:
    return [value.copy() for value in values.values()]


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
