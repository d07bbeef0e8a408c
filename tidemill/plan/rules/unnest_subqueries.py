"""Turn subqueries in conditions and projections into joins.

    before: SELECT * FROM o WHERE EXISTS (SELECT * FROM i WHERE i.k = o.k)
    after:  o SEMI JOIN i ON i.k = o.k

    before: SELECT o.x, (SELECT MAX(v) FROM i WHERE i.k = o.k) FROM o
    after:  SELECT o.x, m.v FROM o LEFT JOIN (SELECT k, MAX(v) AS v FROM i GROUP BY k) AS m ON m.k = o.k

As a conjunct of a Filter, EXISTS and IN become semi joins, and their negations become anti joins; NOT IN also
handles NULLs. Elsewhere a subquery becomes columns of a left join. EXISTS and IN get a mark, with only two
values if only TRUE counts. A scalar subquery gets its value, and over no rows the aggregate's value. If a
scalar subquery may have several rows, SINGLE_VALUE fails on a second row.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from tidemill.errors import NotSupportedError, Position
from tidemill.plan import nodes as n
from tidemill.plan.expressions import Call, Expr
from tidemill.plan.nodes import Exists, InSubquery, ScalarSubquery, Subquery
from tidemill.plan.once import once_per_node
from tidemill.plan.predicates import conjunction, conjuncts
from tidemill.plan.rewrite import map_expr, map_inputs, outer_refs_at
from tidemill.plan.rules.construct import (
    NOT_NULL_BIGINT,
    bigint,
    boolean,
    columns,
    join,
    predicate,
    project,
    test,
)
from tidemill.plan.rules.correlation import correlate
from tidemill.plan.rules.determinism import has_subquery
from tidemill.plan.rules.lateral import lateral_join
from tidemill.plan.rules.membership import aggregated, join_mark, join_matches, join_members
from tidemill.plan.rules.push_filters import filtered
from tidemill.plan.rules.single_row import (
    SingleRow,
    join_aggregate,
    join_single_row,
    single_row,
    where_present,
)


def unnest_subqueries(root: n.LogicalNode) -> n.LogicalNode | None:
    """Works on the whole plan from the root, so parts that a query and its subqueries share are rewritten
    once."""
    changed = unnested(root)
    return None if changed is root else changed


def _unnest(node: n.LogicalNode) -> n.LogicalNode | None:
    if isinstance(node, n.Filter) and has_subquery(node.condition):
        return _filter(node)
    if isinstance(node, n.Project) and any(has_subquery(x) for x in node.expressions):
        return _project(node)
    if isinstance(node, n.Join) and has_subquery(node.condition):
        return _join_condition(node)
    if isinstance(node, n.LateralJoin):
        return _lateral(node)
    return None


@once_per_node
def unnested(plan: n.LogicalNode) -> n.LogicalNode:
    """``plan`` without any subquery expression."""
    node = map_inputs(plan, unnested)
    changed = _unnest(node)
    return node if changed is None else changed


def _filter(node: n.Filter) -> n.LogicalNode:
    """Conjuncts without subqueries come first, so fewer rows are joined."""
    parts = conjuncts(node.condition)
    plan = filtered(node.input, (p for p in parts if not has_subquery(p)))
    for part in (p for p in parts if has_subquery(p)):
        plan = _semi_or_anti(plan, part) or _by_columns(plan, part)
    return plan


def _semi_or_anti(plan: n.LogicalNode, part: Expr) -> n.LogicalNode | None:
    negated = isinstance(part, Call) and part.function == "NOT"
    inner = part.children[0] if negated else part
    kind = n.JoinKind.ANTI if negated else n.JoinKind.SEMI
    if isinstance(inner, Exists | InSubquery):
        with _at(inner.position):
            return _joined(plan, inner, kind)
    return None


@contextmanager
def _at(position: Position | None) -> Iterator[None]:
    """Adds the subquery's position to errors."""
    try:
        yield
    except NotSupportedError as e:
        e.position = e.position or position
        raise


def _joined(plan: n.LogicalNode, inner: Exists | InSubquery, kind: n.JoinKind) -> n.LogicalNode | None:
    if isinstance(inner, Exists):
        rows = unnested(inner.plan)
        if single_row(rows) is not None:
            return None  # a join would lose the subquery's row over no rows
        correlated = correlate(plan, rows)
        return join(plan, correlated.plan, kind, correlated.condition)
    if not any(has_subquery(x) for x in inner.operands):
        return join_members(plan, inner.operands, unnested(inner.plan), kind)
    return None


def _by_columns(plan: n.LogicalNode, part: Expr) -> n.LogicalNode:
    """A condition with nested subqueries: joins their columns, filters, and drops the columns."""
    width = len(plan.fields)
    names = [f.name for f in plan.fields]
    wide, condition = _replaced(plan, _certain(part))
    return project(filtered(wide, [condition]), columns(wide, width), names)


def _certain(condition: Expr) -> Expr:
    """``condition`` if only TRUE counts: a NULL of an IN may become FALSE, so no join has to count NULLs."""
    if isinstance(condition, InSubquery):
        return replace(condition, type=condition.type.with_nullable(False))
    if isinstance(condition, Call) and condition.function in ("AND", "OR"):
        return replace(condition, args=tuple(map(_certain, condition.args)))
    return condition


def _project(node: n.Project) -> n.LogicalNode:
    plan = node.input
    expressions = []
    for expr in node.expressions:
        plan, value = _replaced(plan, expr)
        expressions.append(value)
    return replace(node, input=plan, expressions=tuple(expressions))


def _join_condition(node: n.Join) -> n.LogicalNode:
    if node.kind is not n.JoinKind.INNER:
        raise _in_outer_join(node)
    parts = conjuncts(node.condition)
    plain = replace(node, condition=conjunction(p for p in parts if not has_subquery(p)))
    above = n.Filter(
        fields=node.fields, input=plain, condition=conjunction(p for p in parts if has_subquery(p))
    )
    return _filter(above)


def _lateral(node: n.LateralJoin) -> n.LogicalNode:
    if not has_subquery(node.condition):
        with _at(node.position):
            return lateral_join(node)
    if node.kind is not n.JoinKind.INNER:
        raise _in_outer_join(node)
    parts = conjuncts(node.condition)
    plain = lateral_join(replace(node, condition=conjunction(p for p in parts if not has_subquery(p))))
    above = conjunction(p for p in parts if has_subquery(p))
    return _filter(n.Filter(fields=node.fields, input=plain, condition=above))


def _in_outer_join(node: n.Join | n.LateralJoin) -> NotSupportedError:
    subquery = next(x for x in node.condition.walk() if isinstance(x, Subquery))
    message = f"A subquery in the condition of {node.kind.value} is not supported"
    return NotSupportedError(message, position=subquery.position)


def _replaced(plan: n.LogicalNode, expr: Expr) -> tuple[n.LogicalNode, Expr]:
    """``expr`` with each subquery replaced by columns that were joined to ``plan``, behind its own."""
    state = [plan]
    rows: Rows = {}

    def one(part: Expr) -> Expr:
        if not isinstance(part, Subquery):
            return part
        with _at(part.position):
            state[0], value = _value(state[0], part, rows)
        return value

    rewritten = map_expr(expr, one)
    return state[0], rewritten


Rows = dict[int, tuple[n.Aggregate, tuple[Expr, ...]]]
"""The aggregates that are already joined, by identity, with their columns: a comparison with ALL reads
several values of one aggregate."""


def _value(plan: n.LogicalNode, expr: Expr, rows: Rows) -> tuple[n.LogicalNode, Expr]:
    if isinstance(expr, ScalarSubquery):
        return _scalar(plan, _at_most_one(unnested(expr.plan)), rows)
    if isinstance(expr, Exists):
        return _existence(plan, unnested(expr.plan))
    assert isinstance(expr, InSubquery)
    return join_mark(plan, expr.operands, unnested(expr.plan), certain=not expr.type.nullable)


def _scalar(plan: n.LogicalNode, single: SingleRow, rows: Rows) -> tuple[n.LogicalNode, Expr]:
    joined_row = rows.get(id(single.aggregate))
    if joined_row is None:
        plan, columns_of_it = join_aggregate(plan, single.aggregate)
        joined_row = rows[id(single.aggregate)] = single.aggregate, columns_of_it
    values, present = single.over(joined_row[1])
    return plan, where_present(values[0], present)


def _at_most_one(plan: n.LogicalNode) -> SingleRow:
    """The single row of ``plan``: by its form, otherwise by SINGLE_VALUE."""
    kind = plan.fields[0].type.with_nullable(True)
    return single_row(plan) or aggregated(plan, ("SINGLE_VALUE", (0,), kind))


def _existence(plan: n.LogicalNode, inner: n.LogicalNode) -> tuple[n.LogicalNode, Expr]:
    single = single_row(inner)
    if single is not None:
        if not single.conditions:
            return plan, boolean(True)
        wide, _, present = join_single_row(plan, single)
        return wide, test("IS TRUE", present)
    if outer_refs_at(inner, 1):
        return join_matches(plan, (), inner)
    wide, (count,), _ = join_single_row(plan, aggregated(inner, ("COUNT", (), NOT_NULL_BIGINT)))
    return wide, predicate(">", count, bigint(0))
