"""Non-deterministic expressions over a changelog: NOW, RAND, UUID, a user's function.

A -U or -D must carry the values of its +I or +U. Flink computes the values again (see its option
``table.optimizer.non-deterministic-update.strategy``); Tidemill's projection keeps them.
"""

from __future__ import annotations

from collections.abc import Iterable

from tidemill.changelog.rowkind import INSERT_ONLY, RowKind
from tidemill.errors import NotSupportedError
from tidemill.physical import nodes as p
from tidemill.plan.expressions import Call, Expr, UserCall
from tidemill.plan.rules.determinism import is_deterministic
from tidemill.user_functions.calls import BoundTable


def keeps_values(node: p.Calc) -> bool:
    """Whether the projection must keep the non-deterministic values of its rows for their retractions. A
    consumer that takes no -U deletes by key and ignores the other values of a deleted row."""
    kinds = node.traits.kinds
    by_value = RowKind.UPDATE_BEFORE in kinds or (
        RowKind.DELETE in kinds and RowKind.UPDATE_AFTER not in kinds
    )
    return by_value and not all(map(is_deterministic, _expressions(node)))


def refuse_changes(
    node: p.PhysicalNode, expressions: Iterable[Expr | None], where: str, function: BoundTable | None = None
) -> None:
    """NotSupportedError if one of the expressions, or the ``function`` over them, is non-deterministic and
    the input retracts rows."""
    anew = [_call(e) for e in expressions if e is not None and not is_deterministic(e)]
    if function is not None and not function.deterministic:
        anew.append(function.name)
    if not anew or all(i.traits.kinds == INSERT_ONLY for i in node.inputs):
        return
    raise NotSupportedError(
        f"{anew[0]} {where} over rows that can be taken back is not supported: it would give a row that "
        "goes another answer than when it came",
        hint="Compute it as a column of a sub-query or a view below: there its value stays with the row.",
    )


def _expressions(node: p.Calc) -> tuple[Expr, ...]:
    return (*node.projections, *(() if node.condition is None else (node.condition,)))


def _call(expr: Expr) -> str:
    for part in expr.walk():
        if isinstance(part, Call | UserCall) and not is_deterministic(part):
            inner = (c for c in part.children if not is_deterministic(c))
            if next(inner, None) is None:
                return part.function if isinstance(part, Call) else part.function.name
    return "It"
