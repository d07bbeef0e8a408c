"""A UNION ALL of very many branches is a few nodes: constants are rows, and one input is read once.

A branch costs a scan, a task and its share of every pass over the plan, whatever it holds; scripts that are
written by programs have a thousand of them. Branches of constants become the rows of one Values; projections
of equal inputs become an Expand, which gives each row once for each of them. A branch that filters stays:
its filter may spare it the scan. Short unions stay as they were written.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tidemill.plan.expressions import Expr, InputRef, Literal
from tidemill.plan.nodes import Expand, FrameScan, LogicalNode, Project, Scan, SetKind, SetOp, Values
from tidemill.plan.rules.construct import columns
from tidemill.plan.rules.determinism import has_subquery, has_user_call, is_deterministic
from tidemill.types.logical import Field

MANY = 32
WIDEST = 100
"""Projections of one Expand: its rows are made by one expression."""


def fold_unions(node: LogicalNode) -> LogicalNode | None:
    if not isinstance(node, SetOp) or node.kind is not SetKind.UNION or not node.all:
        return None
    if len(node.branches) <= MANY:
        return None
    rows: list[tuple[Literal, ...]] = []
    projections: dict[LogicalNode, list[tuple[Expr, ...]]] = {}
    branches: list[LogicalNode] = []
    for branch in node.branches:
        constants = _constants(branch, node.fields)
        below = _projected(branch)
        if constants is not None:
            rows += constants
        elif below is not None:
            projections.setdefault(below[0], []).append(below[1])
        else:
            branches.append(branch)
    for source, found in projections.items():
        branches += _expanded(source, found, node.fields)
    if rows:
        branches.append(Values(fields=node.fields, rows=tuple(rows)))
    if len(branches) >= len(node.branches):
        return None
    return branches[0] if len(branches) == 1 else replace(node, branches=tuple(branches))


def _constants(branch: LogicalNode, fields: tuple[Field, ...]) -> list[tuple[Literal, ...]] | None:
    """The rows of a branch of constants."""
    source, cells = _source(branch)
    if not isinstance(source, Values):
        return None
    made = [[row[x.index] if isinstance(x, InputRef) else x for x in cells] for row in source.rows]
    if not all(isinstance(x, Literal) for row in made for x in row):
        return None
    return [
        tuple(replace(x, type=f.type) for x, f in zip(row, fields, strict=True) if isinstance(x, Literal))
        for row in made
    ]


def _projected(branch: LogicalNode) -> tuple[LogicalNode, tuple[Expr, ...]] | None:
    """The input of a branch that others may read, too, and what it makes of each row."""
    source, expressions = _source(branch)
    if not isinstance(source, Scan | FrameScan | Values):
        return None
    plain = all(is_deterministic(x) and not has_subquery(x) and not has_user_call(x) for x in expressions)
    return (source, expressions) if plain else None


def _source(branch: LogicalNode) -> tuple[LogicalNode, tuple[Expr, ...]]:
    """What a branch reads, and its columns over that."""
    if isinstance(branch, Project):
        return branch.input, branch.expressions
    return branch, columns(branch)


def _expanded(
    source: LogicalNode, projections: Sequence[tuple[Expr, ...]], fields: tuple[Field, ...]
) -> list[LogicalNode]:
    if len(projections) == 1:
        return [Project(fields=fields, input=source, expressions=projections[0])]
    return [
        Expand(fields=fields, input=source, projections=tuple(projections[start : start + WIDEST]))
        for start in range(0, len(projections), WIDEST)
    ]
