"""Turn ``x IN (query)`` into a join.

    before: WHERE x IN (SELECT y FROM i)
    after:  SEMI JOIN (SELECT y FROM i) ON x = y

    before: WHERE x NOT IN (SELECT y FROM i)
    after:  ANTI JOIN that also rejects rows if x or a y is NULL

As a value, IN becomes columns of a left join. The value is TRUE on a match. Without a match it is NULL
if x or a member is NULL, otherwise FALSE. If the query has exactly one row by its form, x is compared
with that row.
"""

from __future__ import annotations

from dataclasses import replace

from tidemill.plan import nodes as n
from tidemill.plan.expressions import AggregateCall, Expr, InputRef, OuterRef
from tidemill.plan.predicates import TRUE, conjunction, conjuncts, or_null
from tidemill.plan.rewrite import input_indexes, map_expr
from tidemill.plan.rules.construct import (
    NOT_NULL_BIGINT,
    bigint,
    boolean,
    choose,
    column,
    columns,
    join,
    predicate,
    project,
    test,
)
from tidemill.plan.rules.correlation import correlate, correlate_groups
from tidemill.plan.rules.one_zero import fold_zeros
from tidemill.plan.rules.push_filters import filtered
from tidemill.plan.rules.single_row import SingleRow, join_single_row, single_row
from tidemill.types import logical as t

Operands = tuple[Expr, ...]
Marked = tuple[n.LogicalNode, Expr]
"""A plan with more columns behind its own, and a condition over it."""


def join_members(
    plan: n.LogicalNode, operands: Operands, inner: n.LogicalNode, kind: n.JoinKind
) -> n.LogicalNode | None:
    """The rows of ``plan`` whose operands are in ``inner`` (SEMI), or are certainly not in it (ANTI). None
    if ``inner`` has one row by its form, which a join would lose."""
    if single_row(inner) is not None:
        return None
    correlated = correlate(plan, inner)
    first = len(plan.fields)
    members = [replace(c, index=c.index + first) for c in columns(correlated.plan, len(operands))]
    pairs = list(zip(operands, members, strict=True))
    nullable = any(x.type.nullable for pair in pairs for x in pair)
    if kind is n.JoinKind.SEMI or not nullable:
        equal = [predicate("=", a, b) for a, b in pairs]
        return join(plan, correlated.plan, kind, conjunction((*conjuncts(correlated.condition), *equal)))
    # A constant is no key: it would be compared row by row.
    if not conjuncts(correlated.condition) and all(input_indexes(a) for a, _ in pairs):
        equal = [predicate("=", a, b) for a, b in pairs]
        return replace(join(plan, correlated.plan, kind, conjunction(equal)), null_aware=True)
    unknown = [or_null(a, b) for a, b in pairs]
    return join(plan, correlated.plan, kind, conjunction((*conjuncts(correlated.condition), *unknown)))


def join_mark(plan: n.LogicalNode, operands: Operands, inner: n.LogicalNode, *, certain: bool) -> Marked:
    """Whether the operands are in ``inner``. If ``certain``, only TRUE counts, and FALSE may stand for
    NULL."""
    single = single_row(inner)
    if single is not None:
        return _equal_to(plan, operands, single)
    if certain:
        return join_matches(plan, operands, inner)
    return _row_mark(plan, operands, inner) if len(operands) > 1 else _mark(plan, operands[0], inner)


def _equal_to(plan: n.LogicalNode, operands: Operands, single: SingleRow) -> Marked:
    wide, values, present = join_single_row(plan, single)
    equal = conjunction(predicate("=", a, b) for a, b in zip(operands, values, strict=True))
    if present == TRUE:
        return wide, equal
    return wide, choose(t.BooleanType(nullable=equal.type.nullable), present, equal, boolean(False))


def aggregated(plan: n.LogicalNode, *calls: tuple[str, tuple[int, ...], t.LogicalType]) -> SingleRow:
    """A global aggregate of ``plan``."""
    aggregate_calls = tuple(
        AggregateCall(function=name, args=args, type=kind, name=f"$a{i}")
        for i, (name, args, kind) in enumerate(calls)
    )
    fields = tuple(t.Field(c.name, c.type) for c in aggregate_calls)
    aggregate = n.Aggregate(fields=fields, input=plan, keys=(), calls=aggregate_calls)
    return SingleRow(aggregate, columns(aggregate))


def _mark(plan: n.LogicalNode, operand: Expr, inner: n.LogicalNode) -> Marked:
    stats = aggregated(inner, ("COUNT", (), NOT_NULL_BIGINT), ("COUNT", (0,), NOT_NULL_BIGINT))
    wide, (rows, members), _ = join_single_row(plan, stats)
    wide, is_member = join_matches(wide, (operand,), inner)
    value = choose(
        t.BooleanType(),
        test("=", rows, bigint(0)),
        boolean(False),
        is_member,
        boolean(True),
        predicate("OR", test("IS NULL", operand), test("<", members, rows)),
        boolean(None),
        boolean(False),
    )
    return wide, value


def _row_mark(plan: n.LogicalNode, operands: Operands, inner: n.LogicalNode) -> Marked:
    """(a, b) IN (query): NULL if no member is equal, but a NULL keeps a member from being unequal."""
    wide, is_member = join_matches(plan, operands, inner)
    inside = [map_expr(x, _seen_from_inside) for x in operands]
    unknown = [or_null(a, b) for a, b in zip(inside, columns(inner), strict=True)]
    counted = aggregated(filtered(inner, unknown), ("COUNT", (), NOT_NULL_BIGINT))
    wide, (candidates,), _ = join_single_row(wide, counted)
    unsure = predicate(">", candidates, bigint(0))
    return wide, choose(t.BooleanType(), is_member, boolean(True), unsure, boolean(None), boolean(False))


def _seen_from_inside(expr: Expr) -> Expr:
    if isinstance(expr, InputRef):
        return OuterRef(type=expr.type, level=1, index=expr.index)
    return replace(expr, level=expr.level + 1) if isinstance(expr, OuterRef) else expr


def join_matches(plan: n.LogicalNode, operands: Operands, inner: n.LogicalNode) -> Marked:
    """``plan`` left-joined with the distinct members and the correlated columns, and whether the operands
    met a member. A member that comes or goes beside equal members changes nothing."""
    count = len(operands)
    source = fold_zeros(inner) if count else inner
    distinct = n.Aggregate(fields=source.fields[:count], input=source, keys=tuple(range(count)), calls=())
    correlated = correlate_groups(plan, distinct)
    names = [*(f.name for f in correlated.plan.fields), "$m"]
    marked = project(correlated.plan, [*columns(correlated.plan), boolean(True)], names)
    width = len(plan.fields)
    members = [replace(c, index=c.index + width) for c in columns(marked, count)]
    equal = [predicate("=", a, b) for a, b in zip(operands, members, strict=True)]
    wide = join(plan, marked, n.JoinKind.LEFT, conjunction((*conjuncts(correlated.condition), *equal)))
    return wide, test("IS NOT NULL", column(wide, len(wide.fields) - 1))
