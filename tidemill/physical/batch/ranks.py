"""OVER, Top-N, ORDER BY and LIMIT of a batch plan.

RANK under a limit is a Rank; ROW_NUMBER and DENSE_RANK are an OverAggregate and
a filter above, as in Flink's plans (Spark cuts both before it sorts).
"""

from __future__ import annotations

from tidemill.physical.batch.nodes import OverAggregate, Rank
from tidemill.physical.batch.pushed import with_row_limit
from tidemill.physical.batch.sizes import width, with_fields
from tidemill.physical.finish import references
from tidemill.physical.nodes import Calc, PhysicalNode, Sort, SortLimit
from tidemill.physical.ranks import TopN
from tidemill.plan import nodes as n
from tidemill.plan.expressions import OverCall
from tidemill.types.logical import Field


def plan_sort(node: n.Sort, child: PhysicalNode) -> PhysicalNode:
    if node.fetch is None and not node.offset:
        return (
            Sort(fields=child.fields, most=child.most, input=child, order=node.keys) if node.keys else child
        )
    if node.fetch is not None and not node.keys:
        child = with_row_limit(child, node.fetch + node.offset)
    most = with_fields(child, node.fields)
    if node.fetch is not None:
        rows = node.fetch * width(node.fields)
        most = rows if most is None else min(rows, most)
    return SortLimit(
        fields=node.fields, most=most, input=child, order=node.keys, offset=node.offset, fetch=node.fetch
    )


def plan_rank(top: TopN, child: PhysicalNode, fields: tuple[Field, ...]) -> Rank:
    return Rank(
        fields=fields,
        most=with_fields(child, fields),
        input=child,
        call=top.call,
        start=top.start,
        end=top.end,
    )


def plan_over(node: n.Over, child: PhysicalNode, *, last_first: bool = False) -> PhysicalNode:
    """A stack with one OverAggregate per distinct window, then a projection into the order of the calls."""
    windows: dict[tuple[object, ...], list[int]] = {}
    for i, call in enumerate(node.calls):
        windows.setdefault((call.partition, call.order), []).append(i)
    base = len(child.fields)
    for members in windows.values():
        calls = tuple(node.calls[i] for i in members)
        child = _over(calls, child, tuple(node.fields[base + i] for i in members), last_first)
    call_order = [i for members in windows.values() for i in members]
    if call_order == sorted(call_order):
        return child
    refs = references(child.fields)
    order = (*range(base), *(base + call_order.index(i) for i in range(len(call_order))))
    projections = tuple(refs[i] for i in order)
    return Calc(fields=node.fields, most=child.most, input=child, projections=projections)


def _over(
    calls: tuple[OverCall, ...], child: PhysicalNode, call_fields: tuple[Field, ...], last_first: bool
) -> OverAggregate:
    fields = (*child.fields, *call_fields)
    most = with_fields(child, fields)
    return OverAggregate(fields=fields, most=most, input=child, calls=calls, last_first=last_first)
