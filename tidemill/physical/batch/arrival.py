"""The inputs of batch operators that need the order of arrival of their rows.

The order costs a reader that numbers rows, because Spark's own readers do not. So only operators whose answer
depends on it ask for it: some aggregates, patterns, versions of a key, and ROW_NUMBER, whose ties go to the
rows that came first.
"""

from __future__ import annotations

from functools import singledispatch

from tidemill.errors import InternalError
from tidemill.functions import registry
from tidemill.functions.api import AggregateFunction
from tidemill.functions.decimal_sums import needs_kernel
from tidemill.operators.aggregates.declaration import Merging
from tidemill.operators.aggregates.registry import declared
from tidemill.physical import nodes as p
from tidemill.physical.batch import nodes as b
from tidemill.plan.expressions import AggregateCall


def scans(root: p.PhysicalNode) -> list[tuple[b.TableSourceScan, bool]]:
    """The scans of a plan, and whether they are read with the order of their rows; a scan may be read both
    ways."""
    visited: dict[tuple[int, bool], p.PhysicalNode] = {}
    waiting = [(root, False)]
    while waiting:
        node, ordered = waiting.pop()
        if (id(node), ordered) in visited:
            continue
        visited[id(node), ordered] = node
        waiting += zip(node.inputs, ordered_inputs(node, ordered), strict=True)
    return [(node, ordered) for (_, ordered), node in visited.items() if isinstance(node, b.TableSourceScan)]


@singledispatch
def ordered_inputs(node: p.PhysicalNode, ordered: bool) -> tuple[bool, ...]:
    """For each input whether its order is needed. ``ordered``: whether the order of the node's rows is
    needed."""
    return (ordered,) * len(node.inputs)


@ordered_inputs.register
def _(node: b.Aggregate, ordered: bool) -> tuple[bool, ...]:
    return (needs_order(node),)


@ordered_inputs.register
def _(node: b.OverAggregate, ordered: bool) -> tuple[bool, ...]:
    return (ordered or any(call.function == "ROW_NUMBER" for call in node.calls),)


@ordered_inputs.register
def _(node: p.Match, ordered: bool) -> tuple[bool, ...]:
    return (True,)


@ordered_inputs.register
def _(node: b.TemporalJoin, ordered: bool) -> tuple[bool, ...]:
    return (False, True)


@ordered_inputs.register(b.Join)
@ordered_inputs.register(b.LookupJoin)
@ordered_inputs.register(b.CountedSets)
def _(node: p.PhysicalNode, ordered: bool) -> tuple[bool, ...]:
    return (False,) * len(node.inputs)


def needs_order(node: b.Aggregate) -> bool:
    """Whether any call depends on arrival order."""
    return runs_in_kernel(node) or any(_is_ordered(c) for c in node.calls)


def _is_ordered(call: AggregateCall) -> bool:
    function = declared(call.function)
    return function is not None and function.ordered


def runs_in_kernel(node: b.Aggregate) -> bool:
    """Whether Spark SQL cannot express a call: a user's function, or a DISTINCT sum of long decimals."""
    return any(c.user or _is_long_sum(c, node) for c in node.calls)


def function_of(call: AggregateCall) -> AggregateFunction:
    function = registry.aggregate(call.function)
    if function is None:
        raise InternalError(f"aggregate {call.function} is bound but not registered")
    return function


def _is_long_sum(call: AggregateCall, node: b.Aggregate) -> bool:
    function = declared(call.function)
    if function is None or function.merging is not Merging.IF_EXACT:
        return False
    return needs_kernel(node.input.fields[call.args[0]].type, call.distinct)
