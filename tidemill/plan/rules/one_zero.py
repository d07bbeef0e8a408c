"""Keys in which 0.0 and -0.0 are one value.

    before: GROUP BY f               0.0 and -0.0 are two groups
    after:  GROUP BY one_zero(f)     one group

GROUP BY, DISTINCT and PARTITION BY tell 0.0 and -0.0 apart, but ``=`` does not. If groups are joined by
``=``, a row must not meet two of them. Keys without floats stay as they are.
"""

from __future__ import annotations

from collections.abc import Sequence

from tidemill.functions.comparison import ONE_ZERO
from tidemill.plan import nodes as n
from tidemill.plan.expressions import Call, Expr, InputRef
from tidemill.plan.rules.construct import column, columns, project
from tidemill.types.values import has_two_zeros


def fold_zeros(plan: n.LogicalNode) -> n.LogicalNode:
    """``plan`` with one zero in its columns."""
    if not any(has_two_zeros(f.type) for f in plan.fields):
        return plan
    return project(plan, [_folded(c) for c in columns(plan)], [f.name for f in plan.fields])


def with_folded_keys(plan: n.LogicalNode, keys: Sequence[int]) -> tuple[n.LogicalNode, tuple[int, ...]]:
    """``plan`` with an extra column for each key that has two zeros, and the new indexes of all keys."""
    changed = [k for k in keys if has_two_zeros(plan.fields[k].type)]
    if not changed:
        return plan, tuple(keys)
    width = len(plan.fields)
    folded_index = {k: width + i for i, k in enumerate(changed)}
    added = [_folded(column(plan, k)) for k in changed]
    names = [*(f.name for f in plan.fields), *(plan.fields[k].name for k in changed)]
    wide = project(plan, [*columns(plan), *added], names)
    return wide, tuple(folded_index.get(k, k) for k in keys)


def _folded(key: InputRef) -> Expr:
    return Call(type=key.type, function=ONE_ZERO, args=(key,)) if has_two_zeros(key.type) else key
