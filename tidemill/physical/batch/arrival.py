"""Which inputs of a batch plan's operators must come with the order of their arrival.

It costs a reader that numbers rows (Spark's own has none), so it is asked for only where an answer depends on
it: some aggregates, patterns, versions of a key, and ROW_NUMBER, whose ties go to the rows that came first.
"""

from __future__ import annotations

from functools import singledispatch

from tidemill.errors import InternalError
from tidemill.functions import registry
from tidemill.functions.api import AggregateFunction
from tidemill.functions.decimal_sums import needs_kernel
from tidemill.operators.aggregates.declaration import Merging
from tidemill.operators.aggregates.registry import declared
from tidemill.physical.batch import nodes as b
from tidemill.plan.expressions import AggregateCall


def scans(root: b.BatchNode) -> list[tuple[b.TableSourceScan, bool]]:
    """The scans of a plan, each once for every way it is read: with the order of its rows, or without."""
    found: dict[tuple[int, bool], b.BatchNode] = {}
    waiting = [(root, False)]
    while waiting:
        node, ordered = waiting.pop()
        if (id(node), ordered) in found:
            continue
        found[id(node), ordered] = node
        waiting += zip(node.inputs, asked(node, ordered), strict=True)
    return [(node, ordered) for (_, ordered), node in found.items() if isinstance(node, b.TableSourceScan)]


@singledispatch
def asked(node: b.BatchNode, ordered: bool) -> tuple[bool, ...]:
    """For each input whether its order is asked for, where the node's own is (``ordered``) or not."""
    return (ordered,) * len(node.inputs)


@asked.register
def _(node: b.Aggregate, ordered: bool) -> tuple[bool, ...]:
    return (needs_order(node),)


@asked.register
def _(node: b.OverAggregate, ordered: bool) -> tuple[bool, ...]:
    return (ordered or any(call.function == "ROW_NUMBER" for call in node.calls),)


@asked.register
def _(node: b.Match, ordered: bool) -> tuple[bool, ...]:
    return (True,)


@asked.register
def _(node: b.TemporalJoin, ordered: bool) -> tuple[bool, ...]:
    return (False, True)


@asked.register(b.Join)
@asked.register(b.LookupJoin)
@asked.register(b.CountedSets)
def _(node: b.BatchNode, ordered: bool) -> tuple[bool, ...]:
    return (False,) * len(node.inputs)


def needs_order(node: b.Aggregate) -> bool:
    """Whether any call depends on arrival order."""
    return by_kernel(node) or any(_is_ordered(c) for c in node.calls)


def _is_ordered(call: AggregateCall) -> bool:
    found = declared(call.function)
    return found is not None and found.ordered


def by_kernel(node: b.Aggregate) -> bool:
    """Whether some call cannot be said in Spark SQL: one of the user's, a DISTINCT sum of long decimals."""
    return any(c.user or _is_long_sum(c, node) for c in node.calls)


def function_of(call: AggregateCall) -> AggregateFunction:
    function = registry.aggregate(call.function)
    if function is None:
        raise InternalError(f"aggregate {call.function} is bound but not registered")
    return function


def _is_long_sum(call: AggregateCall, node: b.Aggregate) -> bool:
    found = declared(call.function)
    if found is None or found.merging is not Merging.IF_EXACT:
        return False
    return needs_kernel(node.input.fields[call.args[0]].type, call.distinct)
