"""Decorrelate a subquery by joining the outer values into it as columns.

    subquery: SELECT MAX(i.v) FROM i WHERE i.k < o.k
    domain:   SELECT DISTINCT k FROM o
    after:    SELECT MAX(i.v), d.k FROM domain AS d JOIN i ON i.k < d.k GROUP BY d.k

``depend`` gives the subquery for every distinct combination of the outer columns that it reads (the domain).
The columns of the domain follow the subquery's own columns. The method is from "Unnesting Arbitrary Queries"
(Neumann, Kemper, 2015), without its later elimination of the domain, because ``correlation`` first tries the
simpler way.

The domain is computed from the outer plan, whose own outer references stay as they are. The subquery moves up
beside that plan, so its references further out count one level less.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from tidemill.errors import NotSupportedError
from tidemill.plan import nodes as n
from tidemill.plan.expressions import Call, Expr, InputRef, OuterRef
from tidemill.plan.predicates import TRUE, conjunction, conjuncts, null_aware_condition
from tidemill.plan.rewrite import lower_outer_levels, map_expr, move_inputs, outer_refs_at
from tidemill.plan.rules.construct import column, columns, join, named, project, same_value
from tidemill.plan.rules.domain import Domain
from tidemill.plan.rules.per_group import first_rows, or_value_over_no_rows, refuse_user_calls
from tidemill.types.logical import Field

Bound = tuple[n.LogicalNode, Expr]
"""The subquery's columns, then the domain's; the condition over an outer row and one of its rows."""


def depend(outer: n.LogicalNode, plan: n.LogicalNode) -> Bound:
    """``plan`` for each row of ``outer``."""
    domain = Domain.of(outer, plan)
    return _bound(plan, domain), domain.belongs(outer, plan)


def depend_groups(outer: n.LogicalNode, plan: n.Aggregate) -> Bound:
    """As ``depend``, but without a row of the global aggregate ``plan`` for outer rows without matching
    rows."""
    domain = Domain.of(outer, plan)
    return _groups(plan, domain), domain.belongs(outer, plan)


def _bound(node: n.LogicalNode, domain: Domain) -> n.LogicalNode:
    """``node`` with the domain's columns behind its own and no reference to the outer row."""
    if not outer_refs_at(node, 1):
        return join(lower_outer_levels(node), domain.plan, n.JoinKind.INNER, TRUE)
    handler = _BIND.get(type(node))
    if handler is None:
        raise NotSupportedError(f"A correlated subquery over {type(node).__name__} is not supported")
    return handler(node, domain)


def _read(expr: Expr, first: int, domain: Domain) -> Expr:
    """``expr`` with outer references read from the domain's columns, which begin at ``first``."""

    def one(part: Expr) -> Expr:
        if not isinstance(part, OuterRef):
            return part
        if part.level > 1:
            return replace(part, level=part.level - 1)
        return InputRef(type=part.type, index=first + domain.columns[part.index])

    return map_expr(expr, one)


def _with_domain_last(plan: n.LogicalNode, first: int, domain: Domain) -> n.LogicalNode:
    """``plan`` with the domain's columns, which begin at ``first``, moved behind all others."""
    end = first + domain.width
    order = [*range(first), *range(end, len(plan.fields)), *range(first, end)]
    return project(plan, [column(plan, i) for i in order], [plan.fields[i].name for i in order])


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
    names = [*(f.name for f in node.fields), *(f.name for f in domain.plan.fields)]
    return project(below, [*own, *columns(below)[width:]], names)


def _expand(node: n.LogicalNode, domain: Domain) -> n.LogicalNode:
    assert isinstance(node, n.Expand)
    below = _bound(node.input, domain)
    width = len(node.input.fields)
    passed = columns(below)[width:]
    rows = tuple((*(_read(x, width, domain) for x in row), *passed) for row in node.projections)
    return n.Expand(fields=_fields(node.fields, domain), input=below, projections=rows)


def _fields(own: tuple[Field, ...], domain: Domain) -> tuple[Field, ...]:
    """``own`` fields, then the domain's under unique names."""
    both = (*own, *domain.plan.fields)
    return named([f.name for f in both], [InputRef(type=f.type, index=0) for f in both])


def _aggregate(node: n.LogicalNode, domain: Domain) -> n.LogicalNode:
    """A global aggregate has a row for each value of the domain, also for values without a group."""
    assert isinstance(node, n.Aggregate)
    groups = _groups(node, domain)
    if node.keys:
        return groups
    refuse_user_calls(node)
    same = _same_domain(domain.plan, groups, 0, len(node.calls), domain)
    wide = join(domain.plan, groups, n.JoinKind.LEFT, conjunction(same))
    values = [
        or_value_over_no_rows(column(wide, domain.width + i), call) for i, call in enumerate(node.calls)
    ]
    names = [f.name for f in (*node.fields, *domain.plan.fields)]
    return project(wide, [*values, *columns(wide, domain.width)], names)


def _groups(node: n.Aggregate, domain: Domain) -> n.LogicalNode:
    """The domain's columns are further keys."""
    below = _bound(node.input, domain)
    first = len(node.input.fields)
    keys = (*node.keys, *range(first, first + domain.width))
    names = [*(below.fields[k].name for k in keys), *(c.name for c in node.calls)]
    typed = [*(column(below, k) for k in keys), *(InputRef(type=c.type, index=0) for c in node.calls)]
    grouped = n.Aggregate(
        fields=named(names, typed), input=below, keys=keys, calls=node.calls, hints=node.hints
    )
    return _with_domain_last(grouped, len(node.keys), domain)


def _over(node: n.LogicalNode, domain: Domain) -> n.LogicalNode:
    """The rows of each value of the domain are partitions of their own."""
    assert isinstance(node, n.Over)
    below = _bound(node.input, domain)
    first = len(node.input.fields)
    domain_indexes = tuple(range(first, first + domain.width))
    calls = tuple(replace(c, partition=(*c.partition, *domain_indexes)) for c in node.calls)
    typed = [*columns(below), *(InputRef(type=c.type, index=0) for c in calls)]
    fields = named([*(f.name for f in below.fields), *(c.name for c in calls)], typed)
    return _with_domain_last(n.Over(fields=fields, input=below, calls=calls), first, domain)


def _join(node: n.LogicalNode, domain: Domain) -> n.LogicalNode:
    """Joins the domain into the sides that need it, and adds its equality if both sides have it."""
    assert isinstance(node, n.Join)
    width = len(node.left.fields)
    sides = _needing(node)
    needs_domain = zip(node.inputs, sides, strict=True)
    left, right = (
        _bound(side, domain) if needs else lower_outer_levels(side) for side, needs in needs_domain
    )
    shift = domain.width if sides[0] else 0
    at_left, at_right = width, width + shift + len(node.right.fields)
    own = move_inputs(node.condition, lambda i: i if i < width else i + shift)
    condition = _read(own, at_left if sides[0] else at_right, domain)
    null_aware = node.null_aware and not sides[1]
    if all(sides):
        exact = null_aware_condition(condition) if node.null_aware else condition
        same = _same_domain(left, right, width, len(node.right.fields), domain)
        condition = conjunction((*conjuncts(exact), *same))
    plain_join = join(left, right, node.kind, condition)
    joined = replace(plain_join, null_aware=null_aware, hints=node.hints, strategies=node.strategies)
    if node.kind in (n.JoinKind.SEMI, n.JoinKind.ANTI):
        return joined
    joined_columns = columns(joined)
    own_columns = (*joined_columns[:width], *joined_columns[width + shift : at_right])
    passed = _domain_of(joined, sides, (at_left, at_right), domain)
    return project(joined, [*own_columns, *passed], [f.name for f in (*node.fields, *domain.plan.fields)])


def _needing(node: n.Join) -> tuple[bool, bool]:
    """The sides that get the domain: sides that read it or keep every row, at least one side."""
    left, right = (bool(outer_refs_at(side, 1)) for side in node.inputs)
    right = right or node.kind in (n.JoinKind.RIGHT, n.JoinKind.FULL)
    left = left or node.kind not in (n.JoinKind.INNER, n.JoinKind.RIGHT)
    return left or not right, right


def _same_domain(
    left: n.LogicalNode, right: n.LogicalNode, at_left: int, at_right: int, domain: Domain
) -> Iterator[Expr]:
    """``at_left``, ``at_right``: the first index of the domain's columns in each side."""
    for i in range(domain.width):
        right_column = column(right, at_right + i)
        yield same_value(
            column(left, at_left + i), replace(right_column, index=len(left.fields) + right_column.index)
        )


def _domain_of(
    joined: n.Join, sides: tuple[bool, bool], starts: tuple[int, int], domain: Domain
) -> Sequence[Expr]:
    """The domain's columns, from a side that keeps its rows; in a full join from the side that has a row."""
    left, right = (columns(joined)[at : at + domain.width] for at in starts)
    if joined.kind is n.JoinKind.FULL:
        return [Call(type=a.type, function="COALESCE", args=(a, b)) for a, b in zip(left, right, strict=True)]
    return left if sides[0] and joined.kind is not n.JoinKind.RIGHT else right


def _set_operation(node: n.LogicalNode, domain: Domain) -> n.LogicalNode:
    assert isinstance(node, n.SetOp)
    branches = tuple(_bound(b, domain) for b in node.branches)
    return replace(node, fields=_fields(node.fields, domain), branches=branches)


def _sort(node: n.LogicalNode, domain: Domain) -> n.LogicalNode:
    assert isinstance(node, n.Sort)
    below = _bound(node.input, domain)
    if node.fetch is None and node.offset == 0:
        return below
    first = len(node.fields)
    return first_rows(below, node, tuple(range(first, first + domain.width)))


def _unnest(node: n.LogicalNode, domain: Domain) -> n.LogicalNode:
    assert isinstance(node, n.Unnest)
    width = len(node.input.fields)
    collection = _read(node.collection, width, domain)
    condition = node.condition
    if condition is not None:
        moved = move_inputs(condition, lambda i: i if i < width else i + domain.width)
        condition = _read(moved, width, domain)
    return _widened(replace(node, collection=collection, condition=condition), domain)


def _table_function(node: n.LogicalNode, domain: Domain) -> n.LogicalNode:
    assert isinstance(node, n.TableFunction)
    width = len(node.input.fields)
    return _widened(replace(node, args=tuple(_read(x, width, domain) for x in node.args)), domain)


def _widened(node: n.Unnest | n.TableFunction, domain: Domain) -> n.LogicalNode:
    """A node that adds columns to its input's, over an input with the domain."""
    width = len(node.input.fields)
    below = _bound(node.input, domain)
    both = (*below.fields, *node.fields[width:])
    fields = named([f.name for f in both], [InputRef(type=f.type, index=0) for f in both])
    return _with_domain_last(replace(node, fields=fields, input=below), width, domain)


_BIND: dict[type[n.LogicalNode], Callable[[n.LogicalNode, Domain], n.LogicalNode]] = {
    n.Filter: _filter,
    n.Project: _project,
    n.Expand: _expand,
    n.Aggregate: _aggregate,
    n.Over: _over,
    n.Join: _join,
    n.SetOp: _set_operation,
    n.Sort: _sort,
    n.Unnest: _unnest,
    n.TableFunction: _table_function,
}
