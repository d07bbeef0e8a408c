"""Subqueries in conditions and projections become joins.

As a conjunct of a Filter, EXISTS and IN are semi joins, their negations anti joins (NOT IN looks at NULLs).
Anywhere else a subquery becomes columns of a left join of the input: the value of a scalar subquery (whose
aggregate over no rows is not NULL where it counts), a mark for EXISTS and IN (of two values where TRUE is all
that counts). A scalar subquery that is not one row by its form gets SINGLE_VALUE, which fails on a second
row.
"""

from __future__ import annotations

from dataclasses import replace

from tidemill.errors import NotSupportedError
from tidemill.plan import nodes as n
from tidemill.plan.expressions import AggregateCall, Call, Expr, InputRef, OuterRef
from tidemill.plan.once import once_per_node
from tidemill.plan.predicates import conjunction, conjuncts, or_null
from tidemill.plan.rewrite import input_indexes, map_expr, map_inputs, outer_refs, subplan
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
from tidemill.plan.rules.correlation import correlate
from tidemill.plan.rules.determinism import has_subquery
from tidemill.plan.rules.one_zero import of_one_zero
from tidemill.plan.rules.push_filters import filtered
from tidemill.plan.subquery_expressions import Exists, InSubquery, ScalarSubquery
from tidemill.types import logical as t

COUNTS = frozenset(("COUNT", "$SUM0", "APPROX_COUNT_DISTINCT"))
"""Aggregates that are 0 over no rows."""


def unnest_subqueries(root: n.LogicalNode) -> n.LogicalNode | None:
    """Over the whole plan, from the root: what a query and its subqueries share is rewritten once."""
    changed = unnested(root)
    return None if changed is root else changed


def _unnest(node: n.LogicalNode) -> n.LogicalNode | None:
    if isinstance(node, n.Filter) and has_subquery(node.condition):
        return _filter(node)
    if isinstance(node, n.Project) and any(has_subquery(x) for x in node.expressions):
        return _project(node)
    if isinstance(node, n.Join) and has_subquery(node.condition):
        return _join_condition(node)
    return None


@once_per_node
def unnested(plan: n.LogicalNode) -> n.LogicalNode:
    """``plan`` without any subquery expression."""
    node = map_inputs(plan, unnested)
    changed = _unnest(node)
    return node if changed is None else changed


def _filter(node: n.Filter) -> n.LogicalNode:
    """Plain conjuncts first: fewer rows to join."""
    parts = conjuncts(node.condition)
    plan = filtered(node.input, (p for p in parts if not has_subquery(p)))
    for part in (p for p in parts if has_subquery(p)):
        plan = _semi_or_anti(plan, part) or _by_columns(plan, part)
    return plan


def _semi_or_anti(plan: n.LogicalNode, part: Expr) -> n.LogicalNode | None:
    negated = isinstance(part, Call) and part.function == "NOT"
    inner = part.children[0] if negated else part
    kind = n.JoinKind.ANTI if negated else n.JoinKind.SEMI
    if isinstance(inner, Exists):
        rows = unnested(inner.plan)
        single = _single(rows)
        if single is not None and (not single[1] or any(True for _ in outer_refs(rows))):
            return None  # as a join it would lack the row of what nothing is in
        found = correlate(plan, rows)
        return join(plan, found.plan, kind, found.condition)
    if isinstance(inner, InSubquery) and not any(has_subquery(x) for x in inner.operands):
        return _membership(plan, inner, kind)
    return None


def _membership(plan: n.LogicalNode, part: InSubquery, kind: n.JoinKind) -> n.LogicalNode:
    found = correlate(plan, unnested(part.plan))
    first = len(plan.fields)
    members = [replace(c, index=c.index + first) for c in columns(found.plan, len(part.operands))]
    pairs = list(zip(part.operands, members, strict=True))
    nullable = any(x.type.nullable for pair in pairs for x in pair)
    if kind is n.JoinKind.SEMI or not nullable:
        equal = [predicate("=", a, b) for a, b in pairs]
        return join(plan, found.plan, kind, conjunction((*conjuncts(found.condition), *equal)))
    # A constant is no key: it is compared row by row.
    if not conjuncts(found.condition) and all(input_indexes(a) for a, _ in pairs):
        equal = [predicate("=", a, b) for a, b in pairs]
        return replace(join(plan, found.plan, kind, conjunction(equal)), null_aware=True)
    unknown = [or_null(a, b) for a, b in pairs]
    return join(plan, found.plan, kind, conjunction((*conjuncts(found.condition), *unknown)))


def _by_columns(plan: n.LogicalNode, part: Expr) -> n.LogicalNode:
    """A condition with subqueries somewhere inside: joined columns, a Filter, the columns dropped."""
    width = len(plan.fields)
    names = [f.name for f in plan.fields]
    wide, condition = _replaced(plan, _certain(part))
    return project(filtered(wide, [condition]), columns(wide, width), names)


def _certain(condition: Expr) -> Expr:
    """``condition`` of which only TRUE counts: an IN in it may be FALSE where it is NULL, and is looked up
    without counting what is NULL."""
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
        raise NotSupportedError(f"A subquery in the condition of {node.kind.value} is not supported")
    parts = conjuncts(node.condition)
    plain = replace(node, condition=conjunction(p for p in parts if not has_subquery(p)))
    above = n.Filter(
        fields=node.fields, input=plain, condition=conjunction(p for p in parts if has_subquery(p))
    )
    return _filter(above)


def _replaced(plan: n.LogicalNode, expr: Expr) -> tuple[n.LogicalNode, Expr]:
    """``expr`` with each subquery replaced by columns that were joined to ``plan``, behind its own."""
    state = [plan]

    def one(found: Expr) -> Expr:
        if subplan(found) is None:
            return found
        state[0], value = _value(state[0], found)
        return value

    rewritten = map_expr(expr, one)
    return state[0], rewritten


def _value(plan: n.LogicalNode, expr: Expr) -> tuple[n.LogicalNode, Expr]:
    if isinstance(expr, ScalarSubquery):
        wide, values = join_single(plan, _single_row(unnested(expr.plan)))
        return wide, values[0]
    if isinstance(expr, Exists):
        return _existence(plan, unnested(expr.plan))
    assert isinstance(expr, InSubquery)
    return _mark(plan, expr)


def _existence(plan: n.LogicalNode, inner: n.LogicalNode) -> tuple[n.LogicalNode, Expr]:
    single = _single(inner)
    if single is not None:
        row, parts = single
        if not parts:
            return plan, boolean(True)
        wide, values = join_single(plan, project(row, [conjunction(parts)], ["$h"]))
        return wide, test("IS TRUE", values[0])
    if any(True for _ in outer_refs(inner)):
        return _matched(plan, (), inner)
    wide, values = join_single(plan, _aggregated(inner, ("COUNT", (), NOT_NULL_BIGINT)))
    return wide, predicate(">", values[0], bigint(0))


def _single(plan: n.LogicalNode) -> tuple[n.LogicalNode, tuple[Expr, ...]] | None:
    """A global aggregate, which gives a row whatever there is to read, and the conditions of HAVING over it;
    None for any other plan."""
    below, _ = peeled(plan)
    parts: tuple[Expr, ...] = ()
    while isinstance(below, n.Filter):
        parts, below = (*parts, *conjuncts(below.condition)), below.input
    core, _ = peeled(below)
    return (below, parts) if isinstance(core, n.Aggregate) and not core.keys else None


def _aggregated(plan: n.LogicalNode, *calls: tuple[str, tuple[int, ...], t.LogicalType]) -> n.Aggregate:
    """A global aggregate of ``plan``."""
    made = tuple(
        AggregateCall(function=name, args=args, type=kind, name=f"$a{i}")
        for i, (name, args, kind) in enumerate(calls)
    )
    fields = tuple(t.Field(c.name, c.type) for c in made)
    return n.Aggregate(fields=fields, input=plan, keys=(), calls=made)


def _single_row(plan: n.LogicalNode) -> n.LogicalNode:
    """``plan`` where its form says that it has at most one row, else under SINGLE_VALUE."""
    core, _ = peeled(plan)
    if isinstance(core, n.Aggregate) and not core.keys:
        return plan
    kind = plan.fields[0].type.with_nullable(True)
    return _aggregated(plan, ("SINGLE_VALUE", (0,), kind))


def peeled(plan: n.LogicalNode) -> tuple[n.LogicalNode, tuple[Expr, ...]]:
    """The node below the projections on top of ``plan``, and ``plan``'s columns over it."""
    expressions: tuple[Expr, ...] = columns(plan)
    while isinstance(plan, n.Project):
        inner = plan.expressions
        expressions = tuple(_inlined(x, inner) for x in expressions)
        plan = plan.input
    return plan, expressions


def _inlined(expr: Expr, inner: tuple[Expr, ...]) -> Expr:
    return map_expr(expr, lambda x: inner[x.index] if isinstance(x, InputRef) else x)


def join_single(plan: n.LogicalNode, single: n.LogicalNode) -> tuple[n.LogicalNode, list[Expr]]:
    """``plan`` left-joined with projections of a global aggregate, and their values over the result.

    Each row of ``plan`` meets one row: the aggregate of its own correlated rows, or none at all, which
    counts as the aggregate over no rows.
    """
    core, expressions = peeled(single)
    assert isinstance(core, n.Aggregate)
    _refuse_user_calls(core)
    found = correlate(plan, core)
    wide = join(plan, found.plan, n.JoinKind.LEFT, found.condition)
    width = len(plan.fields)
    values = [_present(column(wide, width + i), call) for i, call in enumerate(core.calls)]

    def one(expr: Expr) -> Expr:
        if isinstance(expr, InputRef):
            return values[expr.index]
        if isinstance(expr, OuterRef):
            outer = InputRef(type=expr.type, index=expr.index)
            return outer if expr.level == 1 else replace(expr, level=expr.level - 1)
        return expr

    return wide, [map_expr(x, one) for x in expressions]


def _refuse_user_calls(core: n.Aggregate) -> None:
    """What a user's aggregate gives for no rows is known only where it runs."""
    user = next((c.user for c in core.calls if c.user is not None), None)
    if user is not None and any(outer_refs(core)):
        raise NotSupportedError(
            f"The user-defined aggregate function {user.name} in a correlated subquery is not supported"
        )


def _present(value: InputRef, call: AggregateCall) -> Expr:
    if call.function not in COUNTS:
        return value
    zero = replace(bigint(0), type=call.type.with_nullable(False))
    return Call(type=zero.type, function="COALESCE", args=(value, zero))


def _mark(plan: n.LogicalNode, expr: InSubquery) -> tuple[n.LogicalNode, Expr]:
    """x IN (query) as a value: TRUE on a match, else NULL if x or a member is NULL, else FALSE."""
    inner = unnested(expr.plan)
    if expr.type.nullable:
        return _nullable_mark(plan, expr, inner)
    wide, matched = _matched(plan, expr.operands, inner)
    return wide, matched


def _nullable_mark(plan: n.LogicalNode, expr: InSubquery, inner: n.LogicalNode) -> tuple[n.LogicalNode, Expr]:
    if len(expr.operands) > 1:
        return _nullable_row_mark(plan, expr, inner)
    stats = _aggregated(inner, ("COUNT", (), NOT_NULL_BIGINT), ("COUNT", (0,), NOT_NULL_BIGINT))
    wide, (rows, members) = join_single(plan, stats)
    wide, matched = _matched(wide, expr.operands, inner)
    operand = expr.operands[0]
    value = choose(
        t.BooleanType(),
        test("=", rows, bigint(0)),
        boolean(False),
        matched,
        boolean(True),
        predicate("OR", test("IS NULL", operand), test("<", members, rows)),
        boolean(None),
        boolean(False),
    )
    return wide, value


def _nullable_row_mark(
    plan: n.LogicalNode, expr: InSubquery, inner: n.LogicalNode
) -> tuple[n.LogicalNode, Expr]:
    """(a, b) IN (query): NULL where no member is equal and one is not known to differ."""
    wide, matched = _matched(plan, expr.operands, inner)
    operands = [map_expr(x, _seen_from_inside) for x in expr.operands]
    unknown = [or_null(a, b) for a, b in zip(operands, columns(inner), strict=True)]
    counted = _aggregated(filtered(inner, unknown), ("COUNT", (), NOT_NULL_BIGINT))
    wide, (candidates,) = join_single(wide, counted)
    unsure = predicate(">", candidates, bigint(0))
    value = choose(t.BooleanType(), matched, boolean(True), unsure, boolean(None), boolean(False))
    return wide, value


def _seen_from_inside(expr: Expr) -> Expr:
    if isinstance(expr, InputRef):
        return OuterRef(type=expr.type, level=1, index=expr.index)
    return replace(expr, level=expr.level + 1) if isinstance(expr, OuterRef) else expr


def _matched(
    plan: n.LogicalNode, operands: tuple[Expr, ...], inner: n.LogicalNode
) -> tuple[n.LogicalNode, Expr]:
    """``plan`` left-joined with the distinct members (of what the two are correlated by, too), and whether
    the operands met one. None where a member comes or goes beside others: it says nothing new."""
    count = len(operands)
    source = of_one_zero(inner) if count else inner
    members_only = source.fields[:count]
    distinct = n.Aggregate(fields=members_only, input=source, keys=tuple(range(count)), calls=())
    names = [*(f.name for f in members_only), "$m"]
    marked = project(distinct, [*columns(distinct), boolean(True)], names)
    found = correlate(plan, marked)
    width = len(plan.fields)
    members = [replace(c, index=c.index + width) for c in columns(found.plan, count)]
    equal = [predicate("=", a, b) for a, b in zip(operands, members, strict=True)]
    wide = join(plan, found.plan, n.JoinKind.LEFT, conjunction((*conjuncts(found.condition), *equal)))
    return wide, test("IS NOT NULL", column(wide, width + count))
