"""SELECT: one block, in SQL's logical order.

FROM gives the row; WHERE filters; select items, HAVING, QUALIFY and ORDER BY are bound over the same
row with pending aggregates and windows; then the aggregation, HAVING, the windows, QUALIFY, the
projection, DISTINCT, and ORDER BY with LIMIT are stacked.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from tidemill.errors import ValidationError
from tidemill.plan import nodes as n
from tidemill.plan.binder import hints
from tidemill.plan.binder.columns import Columns
from tidemill.plan.binder.context import BoundQuery, Context
from tidemill.plan.binder.expressions.binding import Clause, ExpressionBinder, QueryBinder, row_field
from tidemill.plan.binder.expressions.calls import Retype
from tidemill.plan.binder.naming import derived_name
from tidemill.plan.binder.queries import aggregates, group_windows, grouping, ordering, over_windows
from tidemill.plan.binder.queries.pending import AggregateExpr, OverExpr, contains
from tidemill.plan.binder.relations import from_clause
from tidemill.plan.binder.relations.tables import Source
from tidemill.plan.binder.scope import unique_name, unique_names
from tidemill.plan.expressions import Expr
from tidemill.sql.full_text.stars import is_star
from tidemill.sql.positions import position_of
from tidemill.types import logical as t

WHERE = Clause(name="WHERE")
HAVING = Clause(name="HAVING", aggregates=True)
QUALIFY = Clause(name="QUALIFY", aggregates=True, windows=True)
SELECT = Clause(name="SELECT", aggregates=True, windows=True)


@dataclass(frozen=True, slots=True)
class Item:
    """A select item; the enclosing query sees it as ``name``."""

    expr: Expr
    name: str


@dataclass(slots=True, kw_only=True)
class Block:
    """The parts of a SELECT while nodes are stacked on its plan. All expressions are over ``plan``."""

    plan: n.LogicalNode
    items: list[Item]
    having: Expr | None
    qualify: Expr | None
    order: list[Expr]

    def roots(self) -> list[Expr]:
        conditions = [c for c in (self.having, self.qualify) if c is not None]
        return [*(i.expr for i in self.items), *conditions, *self.order]

    def rewrite(self, rewritten: Iterator[Expr]) -> None:
        """Replaces the expressions of ``roots``, in the same order."""
        self.items = [Item(next(rewritten), i.name) for i in self.items]
        self.having = None if self.having is None else next(rewritten)
        self.qualify = None if self.qualify is None else next(rewritten)
        self.order = list(rewritten)


def bind(binder: QueryBinder, tree: exp.Expr, context: Context) -> BoundQuery:
    source = _where(binder, tree, from_clause.bind(binder, tree, context), context)
    source, window = group_windows.bind(binder, tree, source, context)
    keys = grouping.bind(binder, tree, source.scope, context, window)
    if keys is not None and window is not None:
        source = replace(
            source, plan=group_windows.partition_data_driven_window(source.plan, keys.keys, window)
        )
    clause = replace(SELECT, group_by=keys is not None, grouped=keys is not None and bool(keys.keys))
    expressions = binder.expressions(context, source.scope, clause)
    expressions.windows = over_windows.named(tree)
    expressions.group_window = window
    items = _items(expressions, tree)
    directions = ordering.Directions(tree)
    block = Block(
        plan=source.plan,
        items=items,
        having=_condition(expressions, tree.args.get("having"), HAVING),
        qualify=_condition(_with_aliases(expressions, items), tree.args.get("qualify"), QUALIFY),
        order=[_order_key(expressions, items, node) for node in directions.nodes],
    )
    _aggregate(block, keys, expressions, hints.aggregate_ttl(hints.state_ttl(tree), source.scope))
    _windows(block)
    _check_nulls(block.items, tree, context)
    return _project(block, tree, directions)


def _where(binder: QueryBinder, tree: exp.Expr, source: Source, context: Context) -> Source:
    where = tree.args.get("where")
    if where is None:
        return source
    condition = binder.expressions(context, source.scope, WHERE).condition(where.this)
    return replace(source, plan=filtered(source.plan, condition))


def filtered(plan: n.LogicalNode, condition: Expr) -> n.LogicalNode:
    return n.Filter(fields=plan.fields, input=plan, condition=condition)


def _condition(binder: ExpressionBinder, node: exp.Expr | None, clause: Clause) -> Expr | None:
    if node is None:
        return None
    own = binder.clause
    return binder.narrowed(replace(clause, group_by=own.group_by, grouped=own.grouped)).condition(node.this)


def _items(binder: ExpressionBinder, tree: exp.Expr) -> list[Item]:
    items: list[Item] = []
    for node in tree.expressions:
        if is_star(node):
            items += _star(binder, node, [i.name for i in items])
        else:
            items.append(Item(binder.bind(node.unalias()), derived_name(node, len(items))))
    return items


def _star(binder: ExpressionBinder, node: exp.Expr, existing_names: Sequence[str]) -> list[Item]:
    qualifier = tuple(p.name for p in node.parts[:-1]) if isinstance(node, exp.Column) else ()
    columns = binder.scope.star(qualifier)
    if not qualifier and not binder.scope.relations:
        raise ValidationError("SELECT * requires a FROM clause", position=position_of(node))
    if columns is None:
        columns = _row_star(binder, qualifier, node)
    if columns is None:
        raise ValidationError(f"Unknown identifier '{'.'.join(qualifier)}'", position=position_of(node))
    items, used = [], set(existing_names)
    for name, expr in columns:
        unique = unique_name(name, used)
        used.add(unique)
        items.append(Item(expr, unique))
    binder.mention_all(position_of(node))
    if binder.context.full_names is not None:
        full_names = ((binder.scope.full_name(i.expr), i.name) for i in items)
        binder.context.full_names.star(node, full_names)
    return items


def _row_star(
    binder: ExpressionBinder, qualifier: tuple[str, ...], node: exp.Expr
) -> tuple[tuple[str, Expr], ...] | None:
    """The fields of a ROW column as columns; None if the qualifier is no ROW column."""
    row_column = binder.scope.find(qualifier, position_of(node))
    if row_column is None:
        return None
    row = binder.fields_of(row_column.column, row_column.field_names, position_of(node))
    if not isinstance(row.type, t.RowType):
        return None
    return tuple((f.name, row_field(row, i)) for i, f in enumerate(row.type.fields))


def _order_key(binder: ExpressionBinder, items: list[Item], node: exp.Expr) -> Expr:
    """An ORDER BY key: an ordinal, or an expression in which aliases hide columns."""
    ordinal = ordering.ordinal(node, len(items))
    if ordinal is not None:
        return items[ordinal].expr
    return _with_aliases(binder, items).bind(node)


def _with_aliases(binder: ExpressionBinder, items: list[Item]) -> ExpressionBinder:
    return replace(binder, aliases=tuple((i.name, i.expr) for i in items))


def _aggregate(
    block: Block, keys: aggregates.Grouping | None, binder: ExpressionBinder, ttl: hints.Hints
) -> None:
    roots = block.roots()
    if keys is None:
        if block.having is None and not any(contains(r, AggregateExpr) for r in roots):
            return
        keys = aggregates.Grouping(keys=())
    items = [(item.name, item.expr) for item in block.items]
    block.plan, lowered = aggregates.lower(block.plan, keys, roots, items, ttl)
    retype = Retype(binder.context.environment)
    block.rewrite(lowered.rewrite(r, binder.mentions, retype) for r in roots)
    if block.having is not None:
        block.plan = filtered(block.plan, block.having)
        block.having = None


def _windows(block: Block) -> None:
    roots = block.roots()
    if any(contains(r, OverExpr) for r in roots):
        block.plan, rewrite = over_windows.lower(block.plan, roots)
        block.rewrite(rewrite(r) for r in roots)
    if block.qualify is not None:
        block.plan = filtered(block.plan, block.qualify)
        block.qualify = None


def _check_nulls(items: list[Item], tree: exp.Expr, context: Context) -> None:
    if context.untyped_null:
        return
    for item in items:
        if isinstance(item.expr.type, t.NullType):
            raise ValidationError("Illegal use of 'NULL'", position=position_of(tree))


def _project(block: Block, tree: exp.Expr, directions: ordering.Directions) -> BoundQuery:
    names = [i.name for i in block.items]
    columns = Columns()
    for name, item in zip(unique_names(names), block.items, strict=True):
        columns.append(item.expr, name)
    distinct = tree.args.get("distinct") is not None
    pairs = zip(block.order, directions.nodes, strict=True)
    sort_columns = [_sort_column(columns, key, node, distinct) for key, node in pairs]
    plan = columns.project(block.plan, hints.bundle_of(tree))
    if distinct:
        plan = distinct_rows(plan)
    plan = ordering.sorted_rows(plan, directions.keys(sort_columns), tree)
    return BoundQuery(plan=ordering.first_columns(plan, len(names)), names=tuple(names))


def _sort_column(columns: Columns, key: Expr, node: exp.Expr, distinct: bool) -> int:
    if distinct and key not in columns.expressions:
        raise ValidationError(
            f"Expression '{node.sql()}' is not in the select clause", position=position_of(node)
        )
    return columns.add(key, columns.next_name())


def distinct_rows(plan: n.LogicalNode) -> n.LogicalNode:
    return n.Aggregate(fields=plan.fields, input=plan, keys=tuple(range(len(plan.fields))), calls=())
