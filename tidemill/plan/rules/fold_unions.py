"""Replace the many branches of a long UNION ALL by few nodes.

    before: SELECT 1 UNION ALL SELECT 2 UNION ALL ...
    after:  VALUES (1), (2), ...

    before: SELECT a FROM t WHERE a > 1 UNION ALL SELECT b FROM t UNION ALL ...
    after:  one read of t, an Expand with a copy of each row per branch, a filter over the copies

Each branch costs a scan, a task, and time in every pass over the plan. Generated scripts have a thousand
branches. A branch that filters by a partition column of its table stays, because it may skip most of the
table. Short unions stay as they were written.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from tidemill.plan.expressions import Expr, InputRef, Literal
from tidemill.plan.nodes import (
    Expand,
    Filter,
    FrameScan,
    LogicalNode,
    Project,
    Scan,
    SetKind,
    SetOp,
    Values,
)
from tidemill.plan.predicates import TRUE, conjunction
from tidemill.plan.rewrite import input_indexes
from tidemill.plan.rules.construct import column, columns
from tidemill.plan.rules.determinism import has_subquery, has_user_call, is_deterministic
from tidemill.types.logical import BOOLEAN, Field

MANY = 32
WIDEST = 100
"""The most projections of one Expand, because one Spark expression computes all its rows."""
KEPT = Field("$kept", BOOLEAN)


@dataclass(frozen=True, slots=True)
class _Branch:
    """A branch: its source, and its condition and columns over the source."""

    plan: LogicalNode
    source: LogicalNode
    condition: Expr
    expressions: tuple[Expr, ...]

    @classmethod
    def of(cls, plan: LogicalNode) -> _Branch:
        source, expressions = (
            (plan.input, plan.expressions) if isinstance(plan, Project) else (plan, columns(plan))
        )
        if isinstance(source, Filter):
            return cls(plan, source.input, source.condition, expressions)
        return cls(plan, source, TRUE, expressions)

    @property
    def rows(self) -> list[list[Expr]]:
        """The rows of a constant branch; none if the branch is not constant."""
        if not isinstance(self.source, Values) or self.condition != TRUE:
            return []
        source = self.source.rows
        rows = [[row[x.index] if isinstance(x, InputRef) else x for x in self.expressions] for row in source]
        return rows if all(isinstance(x, Literal) for row in rows for x in row) else []

    @property
    def may_share(self) -> bool:
        """Whether other branches may share the read of its source."""
        parts = (self.condition, *self.expressions)
        if not all(is_deterministic(x) and not has_subquery(x) and not has_user_call(x) for x in parts):
            return False
        if self.condition != TRUE and not all(isinstance(x, InputRef | Literal) for x in self.expressions):
            # An expression may fail for rows that the branch's filter rejects.
            return False
        if isinstance(self.source, Scan):
            read = {self.source.columns[i] for i in input_indexes(self.condition)}
            return not read & set(self.source.table.partitioned_by)
        return isinstance(self.source, FrameScan | Values)


def fold_unions(node: LogicalNode) -> LogicalNode | None:
    if not isinstance(node, SetOp) or node.kind is not SetKind.UNION or not node.all:
        return None
    if len(node.branches) <= MANY:
        return None
    rows: list[list[Expr]] = []
    shared: dict[LogicalNode, list[_Branch]] = {}
    folded: list[LogicalNode] = []
    for plan in node.branches:
        branch = _Branch.of(plan)
        if constant_rows := branch.rows:
            rows += constant_rows
        elif branch.may_share:
            shared.setdefault(branch.source, []).append(branch)
        else:
            folded.append(plan)
    for source, branches in shared.items():
        for start in range(0, len(branches), WIDEST):
            folded.append(_read_once(source, branches[start : start + WIDEST], node.fields))
    if rows:
        folded.append(_values(rows, node.fields))
    if len(folded) >= len(node.branches):
        return None
    return folded[0] if len(folded) == 1 else replace(node, branches=tuple(folded))


def _values(rows: Sequence[Sequence[Expr]], fields: tuple[Field, ...]) -> Values:
    typed = (
        tuple(replace(x, type=f.type) for x, f in zip(row, fields, strict=True) if isinstance(x, Literal))
        for row in rows
    )
    return Values(fields=fields, rows=tuple(typed))


def _read_once(source: LogicalNode, branches: Sequence[_Branch], fields: tuple[Field, ...]) -> LogicalNode:
    if len(branches) == 1:
        return branches[0].plan
    if all(branch.condition == TRUE for branch in branches):
        return Expand(fields=fields, input=source, projections=tuple(b.expressions for b in branches))
    expand = Expand(
        fields=(*fields, KEPT),
        input=source,
        projections=tuple((*b.expressions, b.condition) for b in branches),
    )
    condition = conjunction((column(expand, len(fields)),))
    chosen = Filter(fields=expand.fields, input=expand, condition=condition)
    return Project(fields=fields, input=chosen, expressions=columns(chosen, len(fields)))
