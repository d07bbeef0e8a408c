"""Rebuilding expressions and nodes: only this module knows the parts of every node and expression.

Every function returns the same object if nothing changed, so a rule can test the result with ``is``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import singledispatch

from tidemill.plan import expressions as e
from tidemill.plan import nodes as n
from tidemill.plan.once import once_per_node

Rewrite = Callable[[e.Expr], e.Expr]


@singledispatch
def with_children(expr: e.Expr, children: tuple[e.Expr, ...]) -> e.Expr:
    """``expr`` with other children, in the order of ``expr.children``."""
    return expr


@with_children.register(e.Call)
@with_children.register(e.UserCall)
def _(expr: e.Call | e.UserCall, children: tuple[e.Expr, ...]) -> e.Expr:
    return replace(expr, args=children)


@with_children.register
def _(expr: e.Cast, children: tuple[e.Expr, ...]) -> e.Expr:
    return replace(expr, operand=children[0])


@with_children.register
def _(expr: e.FieldAccess, children: tuple[e.Expr, ...]) -> e.Expr:
    return replace(expr, operand=children[0])


@with_children.register
def _(expr: n.InSubquery, children: tuple[e.Expr, ...]) -> e.Expr:
    return replace(expr, operands=children)


def map_expr(expr: e.Expr, rewrite: Rewrite) -> e.Expr:
    """Bottom-up: children first, then ``rewrite`` of the rebuilt expression."""
    children = expr.children
    mapped = tuple(map_expr(c, rewrite) for c in children)
    same = all(a is b for a, b in zip(children, mapped, strict=True))
    return rewrite(expr if same else with_children(expr, mapped))


def map_down(expr: e.Expr, rewrite: Callable[[e.Expr], e.Expr | None]) -> e.Expr:
    """Top-down: if ``rewrite`` returns None, the children are rewritten; otherwise its result is final."""
    replacement = rewrite(expr)
    if replacement is not None:
        return replacement
    children = expr.children
    mapped = tuple(map_down(c, rewrite) for c in children)
    same = all(a is b for a, b in zip(children, mapped, strict=True))
    return expr if same else with_children(expr, mapped)


@singledispatch
def subplan(expr: e.Expr) -> n.LogicalNode | None:
    """The plan inside a subquery expression."""
    return None


@subplan.register
def _(expr: n.Subquery) -> n.LogicalNode | None:
    return expr.plan


def with_subplan(expr: e.Expr, plan: n.LogicalNode) -> e.Expr:
    assert isinstance(expr, n.Subquery)
    return expr if expr.plan is plan else replace(expr, plan=plan)


@singledispatch
def node_expressions(node: n.LogicalNode) -> tuple[e.Expr, ...]:
    """The expressions over the node's input (a join's: left fields + right fields)."""
    return ()


@node_expressions.register
def _(node: n.Project) -> tuple[e.Expr, ...]:
    return node.expressions


@node_expressions.register
def _(node: n.Filter) -> tuple[e.Expr, ...]:
    return (node.condition,)


@node_expressions.register
def _(node: n.Watermark) -> tuple[e.Expr, ...]:
    return (node.expression,)


@node_expressions.register
def _(node: n.Expand) -> tuple[e.Expr, ...]:
    return tuple(x for projection in node.projections for x in projection)


@node_expressions.register
def _(node: n.Unnest) -> tuple[e.Expr, ...]:
    return (node.collection,)


@node_expressions.register
def _(node: n.TableFunction) -> tuple[e.Expr, ...]:
    return node.args


@node_expressions.register(n.Join)
@node_expressions.register(n.LateralJoin)
@node_expressions.register(n.TemporalJoin)
def _(node: n.Join | n.LateralJoin | n.TemporalJoin) -> tuple[e.Expr, ...]:
    return (node.condition,)


@singledispatch
def with_expressions(node: n.LogicalNode, expressions: tuple[e.Expr, ...]) -> n.LogicalNode:
    """``node`` with other expressions, in the order of ``node_expressions``."""
    return node


@with_expressions.register
def _(node: n.Project, expressions: tuple[e.Expr, ...]) -> n.LogicalNode:
    return replace(node, expressions=expressions)


@with_expressions.register
def _(node: n.Filter, expressions: tuple[e.Expr, ...]) -> n.LogicalNode:
    return replace(node, condition=expressions[0])


@with_expressions.register
def _(node: n.Watermark, expressions: tuple[e.Expr, ...]) -> n.LogicalNode:
    return replace(node, expression=expressions[0])


@with_expressions.register
def _(node: n.Expand, expressions: tuple[e.Expr, ...]) -> n.LogicalNode:
    width = len(node.fields)
    rows = tuple(expressions[i : i + width] for i in range(0, len(expressions), width))
    return replace(node, projections=rows)


@with_expressions.register
def _(node: n.Unnest, expressions: tuple[e.Expr, ...]) -> n.LogicalNode:
    return replace(node, collection=expressions[0])


@with_expressions.register
def _(node: n.TableFunction, expressions: tuple[e.Expr, ...]) -> n.LogicalNode:
    return replace(node, args=expressions)


@with_expressions.register(n.Join)
@with_expressions.register(n.LateralJoin)
@with_expressions.register(n.TemporalJoin)
def _(node: n.Join | n.LateralJoin | n.TemporalJoin, expressions: tuple[e.Expr, ...]) -> n.LogicalNode:
    return replace(node, condition=expressions[0])


@singledispatch
def with_inputs(node: n.LogicalNode, inputs: tuple[n.LogicalNode, ...]) -> n.LogicalNode:
    """``node`` over other inputs, in the order of ``node.inputs``."""
    return node


@with_inputs.register
def _(node: n.Unary, inputs: tuple[n.LogicalNode, ...]) -> n.LogicalNode:
    return replace(node, input=inputs[0])


@with_inputs.register(n.Join)
@with_inputs.register(n.LateralJoin)
@with_inputs.register(n.TemporalJoin)
def _(node: n.Join | n.LateralJoin | n.TemporalJoin, inputs: tuple[n.LogicalNode, ...]) -> n.LogicalNode:
    return replace(node, left=inputs[0], right=inputs[1])


@with_inputs.register
def _(node: n.SetOp, inputs: tuple[n.LogicalNode, ...]) -> n.LogicalNode:
    return replace(node, branches=inputs)


def map_node_expressions(node: n.LogicalNode, rewrite: Rewrite) -> n.LogicalNode:
    """``node`` with every one of its own expressions (not of its inputs) rewritten."""
    before = node_expressions(node)
    after = tuple(rewrite(x) for x in before)
    same = all(a is b for a, b in zip(before, after, strict=True))
    return node if same else with_expressions(node, after)


def map_inputs(node: n.LogicalNode, rewrite: Callable[[n.LogicalNode], n.LogicalNode]) -> n.LogicalNode:
    before = node.inputs
    after = tuple(rewrite(x) for x in before)
    same = all(a is b for a, b in zip(before, after, strict=True))
    return node if same else with_inputs(node, after)


def _depth(node: n.LogicalNode, input_index: int) -> int:
    """The levels that input ``input_index`` is below ``node``: 1 for the right side of a lateral join."""
    return int(isinstance(node, n.LateralJoin) and input_index == 1)


@once_per_node
def map_outer_refs(
    plan: n.LogicalNode, rewrite: Callable[[e.OuterRef], e.Expr | None], level: int = 1
) -> n.LogicalNode:
    """Rewrites references in ``plan`` to the query that is ``level`` levels above it.

    ``rewrite`` gets the reference with its own level, counted from its own query; None keeps the reference.
    """

    def one(expr: e.Expr) -> e.Expr:
        inner = subplan(expr)
        if inner is not None:
            expr = with_subplan(expr, map_outer_refs(inner, rewrite, level + 1))
        if isinstance(expr, e.OuterRef) and expr.level == level:
            return rewrite(expr) or expr
        return expr

    before = plan.inputs
    after = tuple(map_outer_refs(x, rewrite, level + _depth(plan, i)) for i, x in enumerate(before))
    same = all(a is b for a, b in zip(before, after, strict=True))
    below = plan if same else with_inputs(plan, after)
    return map_node_expressions(below, lambda expr: map_expr(expr, one))


def lower_outer_levels(plan: n.LogicalNode) -> n.LogicalNode:
    """``plan`` moved up by one query level: its outer references count one level less. No reference in
    ``plan`` may have level 1."""
    for level in sorted({reach for reach, _ in _reaching(plan)}):
        plan = map_outer_refs(plan, lambda ref: replace(ref, level=ref.level - 1), level)
    return plan


def outer_refs(plan: n.LogicalNode) -> frozenset[e.OuterRef]:
    """The references out of ``plan``."""
    return frozenset(ref for _, ref in _reaching(plan))


def outer_refs_at(plan: n.LogicalNode, level: int) -> frozenset[e.OuterRef]:
    """The references out of ``plan`` that reach exactly ``level`` levels above it."""
    return frozenset(ref for reach, ref in _reaching(plan) if reach == level)


def expr_outer_refs(expr: e.Expr) -> frozenset[e.OuterRef]:
    return frozenset(ref for _, ref in _expr_reaching(expr))


Reaching = frozenset[tuple[int, e.OuterRef]]
"""References with the levels above the plan that they reach. A reference's own level counts from its
query."""


@once_per_node
def _reaching(plan: n.LogicalNode) -> Reaching:
    below = [_beyond(_reaching(node), _depth(plan, i)) for i, node in enumerate(plan.inputs)]
    return frozenset().union(*below, *(_expr_reaching(root) for root in node_expressions(plan)))


def _beyond(reaching: Reaching, by: int) -> Reaching:
    """The references that also leave a plan ``by`` levels above, with their levels above that plan."""
    return frozenset((reach - by, ref) for reach, ref in reaching if reach > by)


def _expr_reaching(expr: e.Expr) -> Reaching:
    reaching: set[tuple[int, e.OuterRef]] = set()
    for part in expr.walk():
        inner = subplan(part)
        if inner is not None:
            reaching |= _beyond(_reaching(inner), 1)
        if isinstance(part, e.OuterRef):
            reaching.add((part.level, part))
    return frozenset(reaching)


def input_indexes(expr: e.Expr) -> frozenset[int]:
    """The input columns that ``expr`` and its subqueries read."""
    own = {x.index for x in expr.walk() if isinstance(x, e.InputRef)}
    for part in expr.walk():
        inner = subplan(part)
        if inner is not None:
            own |= {x.index for x in outer_refs_at(inner, 1)}
    return frozenset(own)


def replace_inputs(expr: e.Expr, substitute: Callable[[int], e.Expr]) -> e.Expr:
    """``expr`` with every input column replaced. In subqueries only a column may be the replacement."""

    def outer(ref: e.OuterRef) -> e.Expr:
        column = substitute(ref.index)
        assert isinstance(column, e.InputRef), "a correlated column was replaced by an expression"
        return e.OuterRef(type=column.type, level=ref.level, index=column.index)

    def one(expr: e.Expr) -> e.Expr:
        inner = subplan(expr)
        if inner is not None:
            return with_subplan(expr, map_outer_refs(inner, outer))
        return substitute(expr.index) if isinstance(expr, e.InputRef) else expr

    return map_expr(expr, one)


def shift_inputs(expr: e.Expr, by: int) -> e.Expr:
    """The expression over a row whose columns are shifted ``by`` to the right."""
    return move_inputs(expr, lambda index: index + by)


def move_inputs(expr: e.Expr, new_index: Callable[[int], int]) -> e.Expr:
    """The expression over a row in which column i has the index ``new_index(i)``."""

    def outer(ref: e.OuterRef) -> e.Expr:
        return replace(ref, index=new_index(ref.index))

    def one(expr: e.Expr) -> e.Expr:
        inner = subplan(expr)
        if inner is not None:
            return with_subplan(expr, map_outer_refs(inner, outer))
        return replace(expr, index=new_index(expr.index)) if isinstance(expr, e.InputRef) else expr

    return map_expr(expr, one)
