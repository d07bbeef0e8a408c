"""The value of an aggregate over no rows.

If a subquery's groups are joined to the outer rows, a group without rows is missing. Its aggregates must get
the value that a global aggregate has over no rows:

    COUNT(*) -> COALESCE(count, 0)
    MAX(x)   -> NULL
"""

from __future__ import annotations

from tidemill.errors import NotSupportedError
from tidemill.operators.aggregates.registry import declared
from tidemill.plan import nodes as n
from tidemill.plan.expressions import AggregateCall, Call, Expr, InputRef, Literal


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
