"""Subqueries that have exactly one row by their form: a global aggregate, whatever its input is.

    SELECT o.x, (SELECT MAX(i.v) + 1 FROM i WHERE i.k = o.k) FROM o

    after: o joined with MAX(i.v) per i.k, and MAX + 1 computed above the join

Projections, HAVING, DISTINCT and a LIMIT may be on top of the aggregate. They are computed above the join, so
an outer row without matching rows is not lost.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from tidemill.plan import nodes as n
from tidemill.plan.expressions import Expr, InputRef, Literal, OuterRef
from tidemill.plan.predicates import TRUE, conjunction, conjuncts
from tidemill.plan.rewrite import map_expr, outer_refs
from tidemill.plan.rules.construct import choose, column, columns, join
from tidemill.plan.rules.correlation import correlate_groups
from tidemill.plan.rules.per_group import or_value_over_no_rows, refuse_user_calls


@dataclass(frozen=True, slots=True)
class SingleRow:
    """``values`` over ``aggregate`` if all ``conditions`` over it hold; otherwise there is no row."""

    aggregate: n.Aggregate
    values: tuple[Expr, ...]
    conditions: tuple[Expr, ...] = ()

    def over(self, aggregate_columns: tuple[Expr, ...]) -> tuple[tuple[Expr, ...], Expr]:
        """The values, and whether there is a row. ``aggregate_columns``: the aggregate's columns in the
        joined row."""

        def one(expr: Expr) -> Expr:
            if isinstance(expr, InputRef):
                return aggregate_columns[expr.index]
            if isinstance(expr, OuterRef):
                outer = InputRef(type=expr.type, index=expr.index)
                return outer if expr.level == 1 else replace(expr, level=expr.level - 1)
            return expr

        values = tuple(map_expr(x, one) for x in self.values)
        return values, conjunction(map_expr(x, one) for x in self.conditions)


def single_row(plan: n.LogicalNode) -> SingleRow | None:
    """``plan`` as a single row. None if its form does not guarantee one row."""
    if isinstance(plan, n.Aggregate) and not plan.keys:
        return SingleRow(plan, columns(plan))
    below = single_row(plan.input) if isinstance(plan, _ON_TOP) else None
    if below is None:
        return None
    match plan:
        case n.Project():
            return replace(below, values=tuple(_inlined(x, below.values) for x in plan.expressions))
        case n.Filter():
            parts = tuple(_inlined(x, below.values) for x in conjuncts(plan.condition))
            return replace(below, conditions=(*below.conditions, *parts))
        case n.Aggregate() if not plan.calls:
            return replace(below, values=tuple(below.values[k] for k in plan.keys))
        case n.Sort() if plan.offset == 0 and plan.fetch != 0:
            return below
    return None


_ON_TOP = n.Project | n.Filter | n.Aggregate | n.Sort


def _inlined(expr: Expr, inner: tuple[Expr, ...]) -> Expr:
    return map_expr(expr, lambda x: inner[x.index] if isinstance(x, InputRef) else x)


def join_single_row(plan: n.LogicalNode, single: SingleRow) -> tuple[n.LogicalNode, tuple[Expr, ...], Expr]:
    """``plan`` with the aggregate's columns as extra columns, the values over them, and whether there is a
    row."""
    wide, aggregate_columns = join_aggregate(plan, single.aggregate)
    return wide, *single.over(aggregate_columns)


def join_aggregate(plan: n.LogicalNode, aggregate: n.Aggregate) -> tuple[n.LogicalNode, tuple[Expr, ...]]:
    """``plan`` with the columns of a global aggregate as extra columns, and these columns.

    Each row of ``plan`` meets the aggregate of its own correlated rows. If there are none, it meets no
    row, which counts as the aggregate over no rows.
    """
    if any(True for _ in outer_refs(aggregate)):
        refuse_user_calls(aggregate)
    correlated = correlate_groups(plan, aggregate)
    wide = join(plan, correlated.plan, n.JoinKind.LEFT, correlated.condition)
    first = len(plan.fields)
    return wide, tuple(
        or_value_over_no_rows(column(wide, first + i), c) for i, c in enumerate(aggregate.calls)
    )


def where_present(value: Expr, present: Expr) -> Expr:
    """``value`` if there is a row, otherwise NULL."""
    if present == TRUE:
        return value
    kind = value.type.with_nullable(True)
    return choose(kind, present, value, Literal(type=kind, value=None))
