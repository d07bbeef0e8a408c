"""ORDER BY, OFFSET, LIMIT: ordinals, directions, NULL order (Flink: NULL is lowest)."""

from __future__ import annotations

from sqlglot import exp

from tidemill.errors import ValidationError
from tidemill.plan import nodes as n
from tidemill.plan.binder.columns import Columns
from tidemill.plan.binder.context import BoundQuery, Context
from tidemill.plan.binder.expressions import literals
from tidemill.plan.binder.expressions.binding import Clause, QueryBinder
from tidemill.plan.binder.naming import all_columns
from tidemill.plan.binder.scope import Relation, Scope
from tidemill.plan.expressions import SortKey
from tidemill.sql.positions import position_of

ORDER_BY = Clause(name="ORDER BY")


class Directions:
    """The items of a query's ORDER BY: the sort expressions and their directions."""

    def __init__(self, tree: exp.Expr) -> None:
        order = tree.args.get("order")
        self._items: list[exp.Expr] = list(order.expressions) if order is not None else []

    @property
    def nodes(self) -> list[exp.Expr]:
        return [_key(item) for item in self._items]

    def keys(self, indexes: list[int]) -> tuple[SortKey, ...]:
        """Sort keys on field ``indexes``, one per item; a repeated field counts once."""
        keys: dict[int, SortKey] = {}
        for index, item in zip(indexes, self._items, strict=True):
            ascending, nulls_first = direction(item)
            keys.setdefault(index, SortKey(index=index, ascending=ascending, nulls_first=nulls_first))
        return tuple(keys.values())


def _key(item: exp.Expr) -> exp.Expr:
    key = item.this if isinstance(item, exp.Ordered) else item
    assert isinstance(key, exp.Expr)
    return key


def direction(item: exp.Expr) -> tuple[bool, bool]:
    """(ascending, nulls first). By default NULLs are first if ascending, and last if descending."""
    ascending = not item.args.get("desc")
    nulls_first = item.args.get("nulls_first")
    return ascending, ascending if nulls_first is None else bool(nulls_first)


def ordinal(node: exp.Expr, width: int) -> int | None:
    """The 0-based column of ``ORDER BY 2``; None if the item is no whole number."""
    if not isinstance(node, exp.Literal) or node.is_string or not str(node.this).isdigit():
        return None
    index = _whole_number(node)
    if not 1 <= index <= width:
        raise ValidationError("Ordinal out of range", position=position_of(node))
    return index - 1


def apply(binder: QueryBinder, tree: exp.Expr, query: BoundQuery, context: Context) -> BoundQuery:
    """ORDER BY and LIMIT of a set operation, VALUES or parentheses: they see only output columns."""
    directions = Directions(tree)
    scope = Scope(relations=(Relation(alias="", fields=query.fields),))
    expressions = binder.expressions(context, scope, ORDER_BY)
    plan, width = query.plan, len(query.names)
    columns = Columns()
    for field, column in zip(plan.fields, all_columns(plan), strict=True):
        columns.append(column, field.name)
    sort_columns = []
    for node in directions.nodes:
        index = ordinal(node, width)
        key = columns.expressions[index] if index is not None else expressions.bind(node)
        sort_columns.append(columns.add(key, columns.next_name()))
    if len(columns.fields) > width:
        plan = columns.project(plan)
    ordered = sorted_rows(plan, directions.keys(sort_columns), tree)
    return BoundQuery(plan=first_columns(ordered, width), names=query.names)


def sorted_rows(plan: n.LogicalNode, keys: tuple[SortKey, ...], tree: exp.Expr) -> n.LogicalNode:
    """``plan`` under a Sort, if there is anything to sort or cut."""
    offset, fetch = _offset(tree), _fetch(tree)
    if not keys and offset == 0 and fetch is None:
        return plan
    return n.Sort(fields=plan.fields, input=plan, keys=keys, offset=offset, fetch=fetch)


def unordered(query: BoundQuery) -> BoundQuery:
    """Drops ORDER BY without LIMIT in a derived table, view or branch, because a table has no order."""
    plan = query.plan
    if isinstance(plan, n.Sort) and plan.fetch is None and plan.offset == 0:
        return BoundQuery(plan=plan.input, names=query.names)
    return query


def first_columns(plan: n.LogicalNode, width: int) -> n.LogicalNode:
    """``plan`` without the columns that only ORDER BY needed."""
    if len(plan.fields) == width:
        return plan
    return n.Project(fields=plan.fields[:width], input=plan, expressions=all_columns(plan)[:width])


def _offset(tree: exp.Expr) -> int:
    clause = tree.args.get("offset")
    return 0 if clause is None else _count(clause.expression)


def _fetch(tree: exp.Expr) -> int | None:
    clause = tree.args.get("limit")
    if clause is None:
        return None
    count = clause.args.get("count") if isinstance(clause, exp.Fetch) else clause.expression
    return 1 if count is None else _count(count)


def _count(node: exp.Expr) -> int:
    if isinstance(node, exp.Literal) and not node.is_string and str(node.this).isdigit():
        return _whole_number(node)
    raise ValidationError("LIMIT and OFFSET take a whole number", position=position_of(node))


def _whole_number(node: exp.Expr) -> int:
    value = literals.number(str(node.this), position_of(node)).value
    assert isinstance(value, int)
    return value
