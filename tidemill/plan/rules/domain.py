"""The domain of a correlated subquery: the distinct values of the outer columns that the subquery reads.

    SELECT (SELECT MAX(v) FROM i WHERE i.k < o.k) FROM o
    domain: SELECT DISTINCT k FROM o

The domain is computed beside the outer rows, from the same plan. So the outer rows must not contain values
that are computed anew each time, such as RAND().
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from tidemill.errors import NotSupportedError
from tidemill.plan import nodes as n
from tidemill.plan.expressions import Expr, InputRef
from tidemill.plan.once import once_per_node
from tidemill.plan.predicates import conjunction
from tidemill.plan.rewrite import node_expressions, outer_refs_at
from tidemill.plan.rules.construct import column, project, same_value
from tidemill.plan.rules.determinism import drawn_by
from tidemill.plan.rules.prune_columns import narrow


@dataclass(frozen=True, slots=True)
class Domain:
    """``plan``: the distinct outer values. ``columns``: the column of ``plan`` for each outer column."""

    plan: n.LogicalNode
    columns: dict[int, int]

    @classmethod
    def of(cls, outer: n.LogicalNode, inner: n.LogicalNode) -> Domain:
        """Of the columns of ``outer`` that ``inner`` reads."""
        used = sorted({ref.index for ref in outer_refs_at(inner, 1)})
        source, source_columns = _source(outer, used)
        picked = project(
            source, [column(source, i) for i in source_columns], [outer.fields[i].name for i in used]
        )
        keys = tuple(range(len(used)))
        _refuse_draws(narrow(picked, frozenset(keys))[0])
        distinct = n.Aggregate(fields=picked.fields, input=picked, keys=keys, calls=())
        return cls(distinct, {old: new for new, old in enumerate(used)})

    @property
    def width(self) -> int:
        return len(self.plan.fields)

    def belongs(self, outer: n.LogicalNode, inner: n.LogicalNode) -> Expr:
        """The condition that matches an ``outer`` row with the rows of ``inner``, whose last columns are the
        domain."""
        first = len(outer.fields) + len(inner.fields)
        pairs = (
            (column(outer, old), replace(column(outer, old), index=first + new))
            for old, new in self.columns.items()
        )
        return conjunction(same_value(a, b) for a, b in pairs)


def _source(outer: n.LogicalNode, used: list[int]) -> tuple[n.LogicalNode, list[int]]:
    """A plan below ``outer`` with the same distinct values in the columns ``used``, and their places in it.

    A left join keeps each row of its left side; other subqueries have become such joins.
    """
    while True:
        if isinstance(outer, n.Project):
            picks = [outer.expressions[i] for i in used]
            below_columns = [x.index for x in picks if isinstance(x, InputRef)]
            if len(below_columns) < len(used):
                return outer, used
            outer, used = outer.input, below_columns
        elif (
            isinstance(outer, n.Join) and outer.kind is n.JoinKind.LEFT and max(used) < len(outer.left.fields)
        ):
            outer = outer.left
        else:
            return outer, used


def _matches_domain(outer: n.LogicalNode, plan: n.LogicalNode, domain: Domain) -> Expr:
    first = len(outer.fields) + len(plan.fields)
    pairs = (
        (column(outer, old), replace(column(outer, old), index=first + new))
        for old, new in domain.columns.items()
    )
    return conjunction(same_value(a, b) for a, b in pairs)


@once_per_node
def _refuse_draws(plan: n.LogicalNode) -> None:
    for below in plan.inputs:
        _refuse_draws(below)
    drawn = {name for expr in node_expressions(plan) for name in drawn_by(expr)}
    if drawn:
        names = ", ".join(sorted(drawn))
        raise NotSupportedError(
            f"A correlated subquery over rows that contain a value of {names} is not supported"
        )
