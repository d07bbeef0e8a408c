"""Correlation by value: the outer columns a subquery reads are joined into it as columns.

``depend`` gives the subquery over every combination of those columns' distinct values ("domain"), with the
domain's columns behind its own. From "Unnesting Arbitrary Queries" (Neumann, Kemper, 2015), without its
later elimination of the domain: the simpler way of ``correlation`` is tried before.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from tidemill.errors import NotSupportedError
from tidemill.plan import nodes as n
from tidemill.plan.expressions import Expr, InputRef, OuterRef
from tidemill.plan.predicates import TRUE, conjunction, conjuncts
from tidemill.plan.rewrite import map_expr, move_inputs, outer_refs, outer_refs_at
from tidemill.plan.rules.construct import column, columns, join, named, project, same_value


@dataclass(frozen=True, slots=True)
class Domain:
    """``plan``: the distinct outer values; ``places``: its column per outer column."""

    plan: n.LogicalNode
    places: dict[int, int]

    @property
    def width(self) -> int:
        return len(self.plan.fields)


def depend(outer: n.LogicalNode, plan: n.LogicalNode) -> tuple[n.LogicalNode, Expr]:
    """(the subquery's columns, then the domain's; the condition over outer row + that row)."""
    used = sorted({ref.index for ref in outer_refs_at(plan, 1)})
    picked = project(outer, [column(outer, i) for i in used], [outer.fields[i].name for i in used])
    distinct = n.Aggregate(fields=picked.fields, input=picked, keys=tuple(range(len(used))), calls=())
    domain = Domain(distinct, {old: new for new, old in enumerate(used)})
    dependent = _bound(plan, domain)
    first = len(outer.fields) + len(plan.fields)
    pairs = []
    for old, new in domain.places.items():
        kind = outer.fields[old].type
        pairs.append(same_value(InputRef(type=kind, index=old), InputRef(type=kind, index=first + new)))
    return dependent, conjunction(pairs)


def _bound(node: n.LogicalNode, domain: Domain) -> n.LogicalNode:
    """``node`` with the domain's columns behind its own and no reference to the outer row."""
    if not any(ref.level == 1 for ref in outer_refs(node)):
        return join(node, domain.plan, n.JoinKind.INNER, TRUE)
    handler = _BIND.get(type(node))
    if handler is None:
        raise NotSupportedError(f"A correlated subquery over {type(node).__name__} is not supported")
    return handler(node, domain)


def _read(expr: Expr, width: int, domain: Domain) -> Expr:
    """``expr`` with outer references read from the domain's columns behind ``width`` own ones."""

    def one(found: Expr) -> Expr:
        if isinstance(found, OuterRef) and found.level == 1:
            return InputRef(type=found.type, index=width + domain.places[found.index])
        return found

    return map_expr(expr, one)


def _filter(node: n.LogicalNode, domain: Domain) -> n.LogicalNode:
    assert isinstance(node, n.Filter)
    below = _bound(node.input, domain)
    condition = _read(node.condition, len(node.input.fields), domain)
    return n.Filter(fields=below.fields, input=below, condition=condition)


def _project(node: n.LogicalNode, domain: Domain) -> n.LogicalNode:
    assert isinstance(node, n.Project)
    below = _bound(node.input, domain)
    width = len(node.input.fields)
    own = [_read(x, width, domain) for x in node.expressions]
    passed = [column(below, width + i) for i in range(domain.width)]
    names = [*(f.name for f in node.fields), *(f.name for f in domain.plan.fields)]
    return project(below, [*own, *passed], names)


def _aggregate(node: n.LogicalNode, domain: Domain) -> n.LogicalNode:
    assert isinstance(node, n.Aggregate)
    below = _bound(node.input, domain)
    first = len(node.input.fields)
    keys = (*node.keys, *range(first, first + domain.width))
    own, calls = len(node.keys), len(node.calls)
    names = [*(below.fields[k].name for k in keys), *(c.name for c in node.calls)]
    typed = [*(column(below, k) for k in keys), *(InputRef(type=c.type, index=0) for c in node.calls)]
    grouped = n.Aggregate(
        fields=named(names, typed), input=below, keys=keys, calls=node.calls, hints=node.hints
    )
    order = [*range(own), *range(len(keys), len(keys) + calls), *range(own, len(keys))]
    return project(grouped, [column(grouped, i) for i in order], [grouped.fields[i].name for i in order])


def _join(node: n.LogicalNode, domain: Domain) -> n.LogicalNode:
    """Both sides get the domain, joined on it; a side that does not need it for an inner join does not."""
    assert isinstance(node, n.Join)
    if node.kind in (n.JoinKind.RIGHT, n.JoinKind.FULL):
        raise NotSupportedError(f"A correlated subquery over {node.kind.value} is not supported")
    left_width, right_width = len(node.left.fields), len(node.right.fields)
    left = _bound(node.left, domain)
    right_correlated = any(ref.level == 1 for ref in outer_refs(node.right))
    right = _bound(node.right, domain) if right_correlated else node.right
    before = left_width + domain.width
    own = move_inputs(node.condition, lambda i: i if i < left_width else i + domain.width)
    condition = _read(own, left_width, domain)
    if right_correlated:
        condition = conjunction((*conjuncts(condition), *_same_domain(left, right, left_width, right_width)))
    made = join(left, right, node.kind, condition)
    joined = replace(made, hints=node.hints, strategies=node.strategies)
    if node.kind in (n.JoinKind.SEMI, n.JoinKind.ANTI):
        return joined
    order = [*range(left_width), *range(before, before + right_width), *range(left_width, before)]
    return project(joined, [column(joined, i) for i in order], [joined.fields[i].name for i in order])


def _same_domain(left: n.LogicalNode, right: n.LogicalNode, left_width: int, right_width: int) -> list[Expr]:
    parts: list[Expr] = []
    for i in range(len(left.fields) - left_width):
        a = column(left, left_width + i)
        b = InputRef(type=right.fields[right_width + i].type, index=len(left.fields) + right_width + i)
        parts.append(same_value(a, b))
    return parts


def _set_operation(node: n.LogicalNode, domain: Domain) -> n.LogicalNode:
    assert isinstance(node, n.SetOp)
    branches = tuple(_bound(b, domain) for b in node.branches)
    typed = [InputRef(type=f.type, index=0) for f in (*node.fields, *domain.plan.fields)]
    names = [f.name for f in (*node.fields, *domain.plan.fields)]
    return replace(node, fields=named(names, typed), branches=branches)


def _sort(node: n.LogicalNode, domain: Domain) -> n.LogicalNode:
    assert isinstance(node, n.Sort)
    if node.fetch is None and node.offset == 0:
        return _bound(node.input, domain)
    raise NotSupportedError("LIMIT in a subquery that is correlated by more than equality is not supported")


def _unnest(node: n.LogicalNode, domain: Domain) -> n.LogicalNode:
    assert isinstance(node, n.Unnest)
    if node.condition is not None:
        raise NotSupportedError("LEFT JOIN UNNEST with a condition in a correlated subquery is not supported")
    below = _bound(node.input, domain)
    width = len(node.input.fields)
    added = node.fields[width:]
    typed = [*columns(below), *(InputRef(type=f.type, index=0) for f in added)]
    fields = named([*(f.name for f in below.fields), *(f.name for f in added)], typed)
    collection = _read(node.collection, width, domain)
    unnested = replace(node, fields=fields, input=below, collection=collection)
    total = len(below.fields)
    order = [*range(width), *range(total, total + len(added)), *range(width, total)]
    return project(unnested, [column(unnested, i) for i in order], [unnested.fields[i].name for i in order])


_BIND: dict[type[n.LogicalNode], Callable[[n.LogicalNode, Domain], n.LogicalNode]] = {
    n.Filter: _filter,
    n.Project: _project,
    n.Aggregate: _aggregate,
    n.Join: _join,
    n.SetOp: _set_operation,
    n.Sort: _sort,
    n.Unnest: _unnest,
}
