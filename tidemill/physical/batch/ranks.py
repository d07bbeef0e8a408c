"""OVER, Top-N, ORDER BY and LIMIT of a batch plan.

RANK under a limit is a Rank, cut before the exchange too; ROW_NUMBER and DENSE_RANK are an OverAggregate and
a filter above, as in Flink's plans (Spark cuts both before it sorts).
"""

from __future__ import annotations

from dataclasses import replace

from tidemill.physical.batch.nodes import BatchNode, Calc, Limit, OverAggregate, Rank, Sort
from tidemill.physical.batch.pushed import limited
from tidemill.physical.batch.sizes import width
from tidemill.physical.batch.steps import WITHIN, ascending, derived, exchange, ordered, sort, step
from tidemill.physical.explain.printer import Printer
from tidemill.physical.finish import references
from tidemill.physical.ranks import TopN
from tidemill.plan import nodes as n
from tidemill.plan.expressions import OverCall, SortKey
from tidemill.types.logical import Field


def plan_sort(node: n.Sort, child: BatchNode) -> BatchNode:
    if node.fetch is None and not node.offset:
        if not node.keys:
            return child
        moved = exchange(child, ())
        return Sort(fields=child.fields, traits=child.traits, input=moved, order=node.keys)
    # The local phase takes the skipped rows along.
    taken = None if node.fetch is None else node.fetch + node.offset
    title = "SortLimit" if node.keys else "Limit"
    if taken is not None and not node.keys:
        child = limited(child, taken)
    local = step(child, title, WITHIN, limit_attributes(node.keys, child.fields, 0, taken, first=True))
    traits = derived(child, node.fields)
    if node.fetch is not None:
        rows = node.fetch * width(node.fields)
        traits = replace(traits, most=rows if traits.most is None else min(rows, traits.most))
    return Limit(
        fields=node.fields,
        traits=traits,
        input=exchange(local, ()),
        order=node.keys,
        offset=node.offset,
        fetch=node.fetch,
    )


def limit_attributes(
    order: tuple[SortKey, ...], fields: tuple[Field, ...], offset: int, fetch: int | None, *, first: bool
) -> tuple[tuple[str, str], ...]:
    """``first``: of the local phase."""
    shown = (
        ("offset", f"[{offset}]"),
        ("fetch", f"[{'unlimited' if fetch is None else fetch}]"),
        ("global", f"[{str(not first).lower()}]"),
    )
    return (("orderBy", ordered(order, fields)), *shown) if order else shown


def plan_rank(found: TopN, child: BatchNode, fields: tuple[Field, ...]) -> Rank:
    order = (*ascending(found.call.partition), *found.call.order)
    shown = rank_attributes(found.call, 1, found.end, child.fields, child.fields, first=True)
    local = step(sort(child, order), "Rank", WITHIN, shown)
    ready = sort(exchange(local, found.call.partition), order)
    return Rank(
        fields=fields,
        traits=derived(child, fields),
        input=ready,
        call=found.call,
        start=found.start,
        end=found.end,
    )


def rank_attributes(
    call: OverCall,
    start: int,
    end: int,
    inputs: tuple[Field, ...],
    fields: tuple[Field, ...],
    *,
    first: bool,
) -> tuple[tuple[str, str], ...]:
    return (
        ("rankType", f"[{call.function}]"),
        ("rankRange", f"[rankStart={start}, rankEnd={end}]"),
        ("partitionBy", f"[{Printer.over(inputs).columns(call.partition)}]"),
        ("orderBy", ordered(call.order, inputs)),
        ("global", f"[{str(not first).lower()}]"),
        ("select", f"[{', '.join(f.name for f in fields)}]"),
    )


def plan_over(node: n.Over, child: BatchNode, *, last_first: bool = False) -> BatchNode:
    """One OverAggregate per different window, one above the other, then the calls in their order."""
    windows: dict[tuple[object, ...], list[int]] = {}
    for i, call in enumerate(node.calls):
        windows.setdefault((call.partition, call.order), []).append(i)
    base = len(child.fields)
    for members in windows.values():
        calls = tuple(node.calls[i] for i in members)
        child = _over(calls, child, tuple(node.fields[base + i] for i in members), last_first)
    made = [i for members in windows.values() for i in members]
    if made == sorted(made):
        return child
    refs = references(child.fields)
    order = (*range(base), *(base + made.index(i) for i in range(len(made))))
    projections = tuple(refs[i] for i in order)
    return Calc(fields=node.fields, traits=child.traits, input=child, projections=projections)


def _over(
    calls: tuple[OverCall, ...], child: BatchNode, made: tuple[Field, ...], last_first: bool
) -> OverAggregate:
    first = calls[0]
    order = (*ascending(first.partition), *first.order)
    moved = exchange(child, first.partition)
    fields = (*child.fields, *made)
    return OverAggregate(
        fields=fields,
        traits=derived(child, fields),
        input=sort(moved, order) if order else moved,
        calls=calls,
        last_first=last_first,
    )
