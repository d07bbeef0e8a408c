"""The Steps of a batch plan: nodes of Flink's plan that Spark adds when it plans the operators."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tidemill.physical.batch.view.nodes import Step, ViewNode
from tidemill.physical.explain.printer import Printer, order_text
from tidemill.plan.expressions import SortKey
from tidemill.types.logical import Field

ADAPTIVE, AHEAD = "as adaptive execution finds best", "as planned ahead"
"""Who chooses between several ways: adaptive execution at run time, or Spark's planner ahead of it."""
MOVED = f"moved {ADAPTIVE}"
SORTED = "sorted where the operator above needs it"
SENT = "sent to every task where it is small"
WITHIN = "within the operator above"
"""How Spark does a Step, as EXPLAIN prints it."""


def step(
    below: ViewNode,
    title: str,
    by: str,
    attributes: tuple[tuple[str, str], ...],
    fields: tuple[Field, ...] | None = None,
) -> ViewNode:
    """A Step over ``below`` with the traits of ``below``, and its fields unless ``fields`` are given."""
    step_fields = below.fields if fields is None else fields
    node = Step(fields=step_fields, input=below.node, title=title, attributes=attributes, by=by)
    return ViewNode(node, replace(below.traits, partitioned=()))


def exchange(below: ViewNode, keys: tuple[int, ...]) -> ViewNode:
    names = ", ".join(below.fields[k].name for k in keys)
    distribution = f"[hash[{names}]]" if keys else "[single]"
    return step(below, "Exchange", MOVED, (("distribution", distribution),))


def broadcast(below: ViewNode) -> ViewNode:
    return step(below, "Exchange", SENT, (("distribution", "[broadcast]"),))


def sort(below: ViewNode, order: tuple[SortKey, ...]) -> ViewNode:
    return step(below, "Sort", SORTED, (("orderBy", ordered(order, below.fields)),))


def ordered(order: Sequence[SortKey], fields: Sequence[Field]) -> str:
    printer = Printer.over(fields)
    return bracketed([order_text(k, printer) for k in order])


def ascending(keys: tuple[int, ...]) -> tuple[SortKey, ...]:
    return tuple(SortKey(index=k) for k in keys)


def bracketed(texts: Sequence[str]) -> str:
    return f"[{', '.join(texts)}]"
