"""Write a LIMIT per group as a Top-N.

before: for each k: ORDER BY x LIMIT 2
after:  ROW_NUMBER() OVER (PARTITION BY k ORDER BY x) <= 2
"""

from __future__ import annotations

from tidemill.plan import nodes as n
from tidemill.plan.expressions import Expr, InputRef, OverCall
from tidemill.plan.rules.construct import NOT_NULL_BIGINT, bigint, columns, named, predicate, project
from tidemill.plan.rules.push_filters import filtered


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
