"""Parts of a correlated subquery that hold for each group of its rows.

If the groups are joined to the outer rows, a group without rows is missing. Its aggregates must get the value
that a global aggregate has over no rows:

    COUNT(*) -> COALESCE(count, 0)
    MAX(x)   -> NULL

A LIMIT per group is a Top-N:

    for each k: ORDER BY x LIMIT 2 -> ROW_NUMBER() OVER (PARTITION BY k ORDER BY x) <= 2
"""

from __future__ import annotations

from tidemill.errors import NotSupportedError
from tidemill.operators.aggregates.registry import declared
from tidemill.plan import nodes as n
from tidemill.plan.expressions import AggregateCall, Call, Expr, InputRef, Literal, OverCall
from tidemill.plan.rules.construct import NOT_NULL_BIGINT, bigint, columns, named, predicate, project
from tidemill.plan.rules.push_filters import filtered


def or_value_over_no_rows(value: InputRef, call: AggregateCall) -> Expr:
    """``value`` of ``call``, or the aggregate's value over no rows if the group is missing."""
    aggregate = declared(call.function)
    if aggregate is None or aggregate.over_no_rows is None:
        return value
    kind = call.type.with_nullable(False)
    nothing = Literal(type=kind, value=aggregate.over_no_rows)
    return Call(type=kind, function="COALESCE", args=(value, nothing))


def refuse_user_calls(aggregate: n.Aggregate) -> None:
    """NotSupportedError for a user's aggregate: only running it gives its value over no rows."""
    user = next((c.user for c in aggregate.calls if c.user is not None), None)
    if user is not None:
        raise NotSupportedError(
            f"The user-defined aggregate function {user.name} in a correlated subquery is not supported"
        )


def first_rows(plan: n.LogicalNode, sort: n.Sort, partition: tuple[int, ...]) -> n.LogicalNode:
    """The LIMIT of ``sort``, applied within each ``partition`` of ``plan``."""
    number = OverCall(
        function="ROW_NUMBER",
        args=(),
        type=NOT_NULL_BIGINT,
        name="w0$o0",
        partition=partition,
        order=sort.keys,
    )
    width = len(plan.fields)
    typed = (*columns(plan), InputRef(type=NOT_NULL_BIGINT, index=width))
    fields = named([*(f.name for f in plan.fields), number.name], typed)
    ranked = n.Over(fields=fields, input=plan, calls=(number,))
    top_rows = filtered(ranked, _rank_range(InputRef(type=NOT_NULL_BIGINT, index=width), sort))
    return project(top_rows, columns(top_rows, width), [f.name for f in plan.fields])


def _rank_range(rank: Expr, sort: n.Sort) -> list[Expr]:
    parts: list[Expr] = []
    if sort.offset:
        parts.append(predicate(">", rank, bigint(sort.offset)))
    if sort.fetch is not None:
        parts.append(predicate("<=", rank, bigint(sort.offset + sort.fetch)))
    return parts
