"""Move each conjunct of a Filter as close to the sources as its columns allow.

    before: SELECT * FROM (SELECT k, COUNT(*) AS n FROM t GROUP BY k) WHERE k > 5 AND n > 1
    after:  SELECT * FROM (SELECT k, COUNT(*) AS n FROM t WHERE k > 5 GROUP BY k) WHERE n > 1

A conjunct moves through a Project (its columns become the Project's expressions), into the sides of a
Join, into the left side of a temporal join, into UNION branches, and below Unnest and a whole Sort. It
moves below an Aggregate if it reads only keys, and below Over and SESSION if it reads only partition
keys.

It does not move below a Watermark: the rows that it rejects still advance the time. The padded side of an
outer join takes no condition from above. If the condition rejects the padding, ``simplify_outer_joins`` first
makes the join narrower.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from tidemill.plan import nodes as n
from tidemill.plan.expressions import Expr
from tidemill.plan.predicates import conjunction, conjuncts
from tidemill.plan.rewrite import input_indexes, move_inputs, replace_inputs
from tidemill.plan.rules.determinism import has_subquery, has_user_call, is_deterministic

Parts = tuple[Expr, ...]


def push_filters(node: n.LogicalNode) -> n.LogicalNode | None:
    if not isinstance(node, n.Filter):
        return None
    push = _PUSH.get(type(node.input))
    return None if push is None else push(node, node.input)


def filtered(node: n.LogicalNode, parts: Iterable[Expr]) -> n.LogicalNode:
    """``node`` under a Filter of ``parts``, or ``node`` itself if there are no parts."""
    condition = conjunction(parts)
    return node if not conjuncts(condition) else n.Filter(fields=node.fields, input=node, condition=condition)


def split(parts: Parts, allowed: Callable[[Expr], bool]) -> tuple[Parts, Parts]:
    """The conjuncts that may go down, and the rest."""
    down = tuple(p for p in parts if is_deterministic(p) and allowed(p))
    return down, tuple(p for p in parts if p not in down)


def within(columns: range | frozenset[int]) -> Callable[[Expr], bool]:
    return lambda part: input_indexes(part) <= frozenset(columns)


def _through_project(node: n.Filter, below: n.LogicalNode) -> n.LogicalNode | None:
    assert isinstance(below, n.Project)
    project = below

    def replaceable(part: Expr) -> bool:
        inner = [project.expressions[i] for i in input_indexes(part)]
        simple = not has_subquery(part) and not any(has_subquery(x) for x in inner)
        return simple and all(is_deterministic(x) for x in inner)

    down, remaining = split(conjuncts(node.condition), replaceable)
    if not down:
        return None
    moved = [replace_inputs(p, lambda i: project.expressions[i]) for p in down]
    return filtered(replace(project, input=filtered(project.input, moved)), remaining)


def _into_join(node: n.Filter, below: n.LogicalNode) -> n.LogicalNode | None:
    assert isinstance(below, n.Join)
    width = len(below.left.fields)
    parts = conjuncts(node.condition)
    left, right, both = _sides(below)
    to_left, parts = split(parts, within(range(width))) if left else ((), parts)
    to_right, parts = split(parts, within(range(width, len(below.fields)))) if right else ((), parts)
    to_condition, remaining = split(parts, lambda p: not has_subquery(p)) if both else ((), parts)
    if not (to_left or to_right or to_condition):
        return None
    moved = [move_inputs(p, lambda i: i - width) for p in to_right]
    joined = replace(
        below,
        left=filtered(below.left, to_left),
        right=filtered(below.right, moved),
        condition=conjunction((*conjuncts(below.condition), *to_condition)),
    )
    return filtered(joined, remaining)


def _beside_versions(node: n.Filter, below: n.LogicalNode) -> n.LogicalNode | None:
    """To the left side, and to the condition of an inner join. Not to the right side: without a rejected
    version the join would find the version before it."""
    assert isinstance(below, n.TemporalJoin)
    width = len(below.left.fields)
    down, remaining = split(conjuncts(node.condition), lambda p: _some_of(p, frozenset(range(width))))
    judged: Parts = ()
    if below.kind is n.JoinKind.INNER:
        judged, remaining = split(remaining, lambda p: not has_subquery(p) and not has_user_call(p))
    if not down and not judged:
        return None
    condition = conjunction((*conjuncts(below.condition), *judged))
    return filtered(replace(below, left=filtered(below.left, down), condition=condition), remaining)


def _sides(join: n.Join) -> tuple[bool, bool, bool]:
    """Whether conditions above may move to the left side, the right side, the join's condition."""
    inner = join.kind is n.JoinKind.INNER
    left = join.kind in (n.JoinKind.INNER, n.JoinKind.LEFT, n.JoinKind.SEMI, n.JoinKind.ANTI)
    return left, inner or join.kind is n.JoinKind.RIGHT, inner


def _into_branches(node: n.Filter, below: n.LogicalNode) -> n.LogicalNode | None:
    assert isinstance(below, n.SetOp)
    down, remaining = split(conjuncts(node.condition), lambda p: not has_subquery(p))
    if not down:
        return None
    branches = tuple(filtered(b, down) for b in below.branches)
    return filtered(replace(below, branches=branches), remaining)


def _below_aggregate(node: n.Filter, below: n.LogicalNode) -> n.LogicalNode | None:
    assert isinstance(below, n.Aggregate)
    keys = below.keys
    down, remaining = split(conjuncts(node.condition), lambda p: _some_of(p, frozenset(range(len(keys)))))
    if not down:
        return None
    moved = [move_inputs(p, lambda i: keys[i]) for p in down]
    return filtered(replace(below, input=filtered(below.input, moved)), remaining)


def _some_of(part: Expr, columns: frozenset[int]) -> bool:
    """A constant condition stays: a global aggregate gives a row also without input rows."""
    return bool(input_indexes(part)) and input_indexes(part) <= columns


def _below_over(node: n.Filter, below: n.LogicalNode) -> n.LogicalNode | None:
    assert isinstance(below, n.Over)
    shared = frozenset.intersection(*(frozenset(c.partition) for c in below.calls))
    return _below_unary(node, below, lambda p: _some_of(p, shared))


def _below_session(node: n.Filter, below: n.LogicalNode) -> n.LogicalNode | None:
    """A condition on keys may move: it rejects all rows of a key, and keys share no windows."""
    assert isinstance(below, n.WindowTableFunction)
    if not below.kind.is_data_driven:
        return None
    return _below_unary(node, below, lambda p: _some_of(p, frozenset(below.partition)))


def _below_unnest(node: n.Filter, below: n.LogicalNode) -> n.LogicalNode | None:
    assert isinstance(below, n.Unnest | n.TableFunction)
    return _below_unary(node, below, within(range(len(below.input.fields))))


def _below_sort(node: n.Filter, below: n.LogicalNode) -> n.LogicalNode | None:
    assert isinstance(below, n.Sort)
    if below.fetch is not None or below.offset:
        return None
    return _below_unary(node, below, lambda _: True)


def _below_unary(node: n.Filter, below: n.Unary, allowed: Callable[[Expr], bool]) -> n.LogicalNode | None:
    down, remaining = split(conjuncts(node.condition), allowed)
    return filtered(replace(below, input=filtered(below.input, down)), remaining) if down else None


_PUSH: dict[type[n.LogicalNode], Callable[[n.Filter, n.LogicalNode], n.LogicalNode | None]] = {
    n.Project: _through_project,
    n.Join: _into_join,
    n.TemporalJoin: _beside_versions,
    n.SetOp: _into_branches,
    n.Aggregate: _below_aggregate,
    n.Over: _below_over,
    n.WindowTableFunction: _below_session,
    n.Unnest: _below_unnest,
    n.TableFunction: _below_unnest,
    n.Sort: _below_sort,
}
