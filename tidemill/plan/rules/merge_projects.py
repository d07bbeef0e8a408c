"""Merge a Project over a Project, and remove Projects that change nothing.

    before: SELECT y + 1 FROM (SELECT x * 2 AS y FROM t)
    after:  SELECT x * 2 + 1 FROM t

A Project that only picks columns of constant rows becomes constant rows. Merging copies an inner expression
into every place that reads it. So an expression with a call is only merged if it is read once, and a
non-deterministic expression is never merged.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from tidemill.plan.expressions import Expr, InputRef, Literal
from tidemill.plan.nodes import LogicalNode, Project, Values
from tidemill.plan.rewrite import input_indexes, replace_inputs
from tidemill.plan.rules.determinism import has_subquery, is_deterministic


def merge_projects(node: LogicalNode) -> LogicalNode | None:
    if not isinstance(node, Project):
        return None
    if is_identity(node):
        return node.input
    below = node.input
    if isinstance(below, Values) and all(isinstance(x, InputRef) for x in node.expressions):
        picks = [i for x in node.expressions for i in input_indexes(x)]
        return Values(fields=node.fields, rows=tuple(tuple(row[i] for i in picks) for row in below.rows))
    if not isinstance(below, Project) or not can_inline(node.expressions, below):
        return None
    merged = tuple(replace_inputs(x, lambda i: below.expressions[i]) for x in node.expressions)
    return replace(node, input=below.input, expressions=merged)


def merge_picks(node: LogicalNode) -> LogicalNode | None:
    """As ``merge_projects``, but only over a Project that computes nothing."""
    below = node.input if isinstance(node, Project) else None
    if not isinstance(below, Project) or not all(isinstance(x, InputRef) for x in below.expressions):
        return None
    return merge_projects(node)


def is_identity(node: Project) -> bool:
    """Whether it passes on the same columns under the same names in the same order."""
    columns = tuple(InputRef(type=f.type, index=i) for i, f in enumerate(node.input.fields))
    return node.fields == node.input.fields and node.expressions == columns


def can_inline(readers: tuple[Expr, ...], below: Project) -> bool:
    """Whether the expressions of ``below`` may replace the columns that ``readers`` read."""
    reads = Counter(x.index for r in readers for x in r.walk() if isinstance(x, InputRef))
    for index in {i for r in readers for i in input_indexes(r)}:
        inner = below.expressions[index]
        if isinstance(inner, InputRef):
            continue
        if any(has_subquery(r) for r in readers) or not is_deterministic(inner):
            return False
        if reads[index] > 1 and not isinstance(inner, Literal):
            return False
    return True
