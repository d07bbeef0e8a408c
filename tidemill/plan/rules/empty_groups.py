"""What an aggregate gives over no rows.

A group without rows is missing where groups are joined: what a global aggregate says of no rows is put in
its place. ``COUNT(*)`` of a missing group is ``COALESCE(count, 0)``, ``MAX(x)`` of it is NULL.
"""

from __future__ import annotations

from tidemill.errors import NotSupportedError
from tidemill.operators.aggregates.registry import declared
from tidemill.plan import nodes as n
from tidemill.plan.expressions import AggregateCall, Call, Expr, InputRef, Literal


def or_of_nothing(value: InputRef, call: AggregateCall) -> Expr:
    """The value of ``call`` where ``value`` is NULL for want of a group."""
    found = declared(call.function)
    if found is None or found.over_no_rows is None:
        return value
    kind = call.type.with_nullable(False)
    nothing = Literal(type=kind, value=found.over_no_rows)
    return Call(type=kind, function="COALESCE", args=(value, nothing))


def refuse_user_calls(aggregate: n.Aggregate) -> None:
    """What a user's aggregate gives for no rows is known only where it runs."""
    user = next((c.user for c in aggregate.calls if c.user is not None), None)
    if user is not None:
        raise NotSupportedError(
            f"The user-defined aggregate function {user.name} in a correlated subquery is not supported"
        )
