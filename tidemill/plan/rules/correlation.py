"""Remove the references to the outer row from a subquery's plan.

    subquery: SELECT i.v FROM i WHERE i.k = o.k AND i.v > 3
    plan:     SELECT i.v, i.k FROM i WHERE i.v > 3
    condition: the plan's i.k = the outer row's o.k

``correlate`` gives a plan that stands alone, and a condition over the outer row and the plan's row. The
condition says which rows of the plan belong to an outer row. The plan has the subquery's columns first, then
the columns that the condition needs. There are two ways:

- *Pull up*: correlated conjuncts of a Filter become part of the condition. The inner columns that they read
  become extra columns. An Aggregate gets these columns as keys, so the conjuncts must be equalities.
- *Dependent join*: if pulling up is impossible, the distinct outer values are joined into the subquery. Every
  reference becomes a column, and the condition compares these columns, with NULL equal to NULL. This costs
  one more read of the outer plan.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeVar

from tidemill.plan import nodes as n
from tidemill.plan.expressions import Call, Expr, InputRef, OuterRef
from tidemill.plan.predicates import conjunction, conjuncts
from tidemill.plan.rewrite import (
    expr_outer_refs,
    input_indexes,
    lower_outer_levels,
    map_expr,
    move_inputs,
    outer_refs,
    outer_refs_at,
)
from tidemill.plan.rules.construct import columns, named, project
from tidemill.plan.rules.dependent_join import Bound, depend, depend_groups
from tidemill.plan.rules.one_zero import with_folded_keys
from tidemill.plan.rules.per_group import first_rows
from tidemill.plan.rules.push_filters import filtered
from tidemill.types.logical import Field


@dataclass(frozen=True, slots=True)
class Correlated:
    """``width``: the number of the subquery's own columns in ``plan``. ``condition`` is over the outer
    row's columns, then the plan's columns."""

    plan: n.LogicalNode
    width: int
    condition: Expr


@dataclass(frozen=True, slots=True)
class Pulled:
    """``conditions``: conjuncts over the fields of ``plan`` that still contain OuterRefs of level 1."""

    plan: n.LogicalNode
    width: int
    conditions: tuple[Expr, ...] = ()


Plan = TypeVar("Plan", bound=n.LogicalNode)


class NotPulled(Exception):
    """A correlated conjunct that cannot be pulled up through a node."""


def correlate(outer: n.LogicalNode, plan: n.LogicalNode) -> Correlated:
    """The subquery ``plan`` of a query over ``outer``, as a plan that stands alone."""
    return _correlate(outer, plan, pull, depend)


def correlate_groups(outer: n.LogicalNode, plan: n.Aggregate) -> Correlated:
    """As ``correlate``, but an outer row may lack its row if a global aggregate has no rows to read."""
    return _correlate(outer, plan, _pull_groups, depend_groups)


def _correlate(
    outer: n.LogicalNode,
    plan: Plan,
    up: Callable[[Plan], Pulled],
    down: Callable[[n.LogicalNode, Plan], Bound],
) -> Correlated:
    if not any(True for _ in outer_refs(plan)):
        return Correlated(plan, len(plan.fields), conjunction(()))
    width = len(outer.fields)
    try:
        pulled = up(plan)
    except NotPulled:
        dependent, condition = down(outer, plan)
        return Correlated(dependent, len(plan.fields), condition)
    condition = conjunction(_over_both(c, width) for c in pulled.conditions)
    return Correlated(lower_outer_levels(pulled.plan), pulled.width, condition)


def _over_both(condition: Expr, width: int) -> Expr:
    """Shifts inner columns behind the outer row's, and turns outer references into columns."""

    def one(expr: Expr) -> Expr:
        if isinstance(expr, OuterRef):
            if expr.level == 1:
                return InputRef(type=expr.type, index=expr.index)
            return replace(expr, level=expr.level - 1)
        return expr

    return map_expr(move_inputs(condition, lambda i: i + width), one)


def is_correlated(expr: Expr) -> bool:
    return any(ref.level == 1 for ref in expr_outer_refs(expr))


def pull(node: n.LogicalNode) -> Pulled:
    """``node`` without the correlated conjuncts below it. NotPulled if a conjunct cannot move."""
    if not outer_refs_at(node, 1):
        return Pulled(node, len(node.fields))
    handler = _PULL.get(type(node))
    if handler is None:
        raise NotPulled
    return handler(node)


def _filter(node: n.LogicalNode) -> Pulled:
    assert isinstance(node, n.Filter)
    below = pull(node.input)
    parts = conjuncts(node.condition)
    moving = tuple(p for p in parts if is_correlated(p))
    staying = [p for p in parts if not is_correlated(p)]
    return Pulled(filtered(below.plan, staying), below.width, (*below.conditions, *moving))


def _project(node: n.LogicalNode) -> Pulled:
    """Adds the columns that the conditions read behind the projection's own columns."""
    assert isinstance(node, n.Project)
    if any(is_correlated(x) for x in node.expressions):
        raise NotPulled
    below = pull(node.input)
    needed = sorted({i for c in below.conditions for i in input_indexes(c)})
    width = len(node.expressions)
    extra = [columns(below.plan)[i] for i in needed]
    names = [*(f.name for f in node.fields), *(below.plan.fields[i].name for i in needed)]
    plan = project(below.plan, [*node.expressions, *extra], names)
    new_index = {old: width + new for new, old in enumerate(needed)}
    return Pulled(plan, width, tuple(move_inputs(c, new_index.__getitem__) for c in below.conditions))


def _aggregate(node: n.LogicalNode) -> Pulled:
    """A global aggregate is not pulled: groups alone lack the row for an outer row without matches."""
    assert isinstance(node, n.Aggregate)
    if not node.keys:
        raise NotPulled
    return _pull_groups(node)


def _pull_groups(node: n.Aggregate) -> Pulled:
    """The inner sides of equalities become further keys: an outer row matches one value of each."""
    below = pull(node.input)
    if not all(_is_equality(c) for c in below.conditions):
        raise NotPulled
    needed = sorted({i for c in below.conditions for i in input_indexes(c)} - set(node.keys))
    source, extra_keys = with_folded_keys(below.plan, needed)
    keys = (*node.keys, *extra_keys)
    plain = n.Aggregate(
        fields=_aggregate_fields(source, keys, node),
        input=source,
        keys=keys,
        calls=node.calls,
        hints=node.hints,
    )
    own, calls = len(node.keys), len(node.calls)
    order = [*range(own), *range(len(keys), len(keys) + calls), *range(own, len(keys))]
    plan = _reordered(plain, order)
    positions = {k: (i if i < own else calls + i) for i, k in enumerate((*node.keys, *needed))}
    return Pulled(plan, own + calls, tuple(move_inputs(c, positions.__getitem__) for c in below.conditions))


def _aggregate_fields(source: n.LogicalNode, keys: tuple[int, ...], node: n.Aggregate) -> tuple[Field, ...]:
    names = [*(source.fields[k].name for k in keys), *(c.name for c in node.calls)]
    typed = [
        *(InputRef(type=source.fields[k].type, index=k) for k in keys),
        *(InputRef(type=c.type, index=0) for c in node.calls),
    ]
    return named(names, typed)


def _reordered(plan: n.LogicalNode, order: list[int]) -> n.LogicalNode:
    if order == list(range(len(plan.fields))):
        return plan
    return project(plan, [columns(plan)[i] for i in order], [plan.fields[i].name for i in order])


def _is_equality(condition: Expr) -> bool:
    """``outer expression = inner column``, in either order."""
    if not isinstance(condition, Call) or condition.function not in ("=", "IS NOT DISTINCT FROM"):
        return False
    left, right = condition.args
    return any(
        isinstance(inner, InputRef) and not input_indexes(other)
        for inner, other in ((left, right), (right, left))
    )


def _join(node: n.LogicalNode) -> Pulled:
    """An inner join passes up the correlated conjuncts of its sides and of its condition."""
    assert isinstance(node, n.Join)
    if node.kind is not n.JoinKind.INNER:
        return _left_only(node)
    left, right = pull(node.left), pull(node.right)
    own_left, own_right = left.width, right.width
    before, total = len(left.plan.fields), len(left.plan.fields) + len(right.plan.fields)
    new_index = {i: i for i in range(own_left)} | {own_left + i: before + i for i in range(own_right)}
    parts = [move_inputs(p, new_index.__getitem__) for p in conjuncts(node.condition)]
    moving = [p for p in parts if is_correlated(p)]
    conditions = (
        *left.conditions,
        *(move_inputs(c, lambda i: i + before) for c in right.conditions),
        *moving,
    )
    fields = [*left.plan.fields, *right.plan.fields]
    joined = n.Join(
        fields=named([f.name for f in fields], [InputRef(type=f.type, index=0) for f in fields]),
        left=left.plan,
        right=right.plan,
        kind=node.kind,
        condition=conjunction(p for p in parts if not is_correlated(p)),
        hints=node.hints,
        strategies=node.strategies,
    )
    own = [*range(own_left), *range(before, before + own_right)]
    extra = [i for i in range(total) if i not in own]
    order = [*own, *extra]
    moved = {old: new for new, old in enumerate(order)}
    restored = tuple(move_inputs(c, moved.__getitem__) for c in conditions)
    return Pulled(_reordered(joined, order), len(own), restored)


def _left_only(node: n.Join) -> Pulled:
    """SEMI and ANTI joins pass up the conjuncts of their left side."""
    kinds = (n.JoinKind.SEMI, n.JoinKind.ANTI)
    if node.kind not in kinds or outer_refs_at(node.right, 1) or is_correlated(node.condition):
        raise NotPulled
    left = pull(node.left)
    before = len(left.plan.fields)
    shift = before - left.width
    condition = move_inputs(node.condition, lambda i: i if i < left.width else i + shift)
    joined = replace(node, fields=left.plan.fields, left=left.plan, condition=condition)
    return Pulled(joined, left.width, left.conditions)


def _sort(node: n.LogicalNode) -> Pulled:
    """Without LIMIT the order of a subquery's rows means nothing. With LIMIT rows count per outer row."""
    assert isinstance(node, n.Sort)
    below = pull(node.input)
    if node.fetch is None and node.offset == 0:
        return below
    if not all(_is_equality(c) for c in below.conditions):
        raise NotPulled
    needed = sorted({i for c in below.conditions for i in input_indexes(c)})
    source, partition = with_folded_keys(below.plan, needed)
    return Pulled(first_rows(source, node, partition), below.width, below.conditions)


_PULL: dict[type[n.LogicalNode], Callable[[n.LogicalNode], Pulled]] = {
    n.Filter: _filter,
    n.Project: _project,
    n.Aggregate: _aggregate,
    n.Join: _join,
    n.Sort: _sort,
}
