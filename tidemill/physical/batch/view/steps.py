"""The Steps of a batch plan: what Flink shows between operators and Spark does when it plans them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tidemill.physical.batch.view.nodes import Seen, Step
from tidemill.physical.explain.printer import Printer, order_text
from tidemill.plan.expressions import SortKey
from tidemill.types.logical import Field

ADAPTIVE, AHEAD = "as adaptive execution finds best", "as planned ahead"
"""How what has more than one way is done, and how where nothing is known but what the planner knew."""
MOVED = f"moved {ADAPTIVE}"
SORTED = "sorted where the operator above needs it"
SENT = "sent to every task where it is small"
WITHIN = "within the operator above"
"""How a Step comes about; part of what EXPLAIN shows."""


def step(
    below: Seen,
    title: str,
    by: str,
    attributes: tuple[tuple[str, str], ...],
    fields: tuple[Field, ...] | None = None,
) -> Seen:
    """A Step over ``below`` with its traits, and its fields unless told."""
    made = below.fields if fields is None else fields
    node = Step(fields=made, input=below.node, title=title, attributes=attributes, by=by)
    return Seen(node, replace(below.traits, partitioned=()))


def exchange(below: Seen, keys: tuple[int, ...]) -> Seen:
    names = ", ".join(below.fields[k].name for k in keys)
    distribution = f"[hash[{names}]]" if keys else "[single]"
    return step(below, "Exchange", MOVED, (("distribution", distribution),))


def broadcast(below: Seen) -> Seen:
    return step(below, "Exchange", SENT, (("distribution", "[broadcast]"),))


def sort(below: Seen, order: tuple[SortKey, ...]) -> Seen:
    return step(below, "Sort", SORTED, (("orderBy", ordered(order, below.fields)),))


def ordered(order: Sequence[SortKey], fields: Sequence[Field]) -> str:
    printer = Printer.over(fields)
    return bracketed([order_text(k, printer) for k in order])


def ascending(keys: tuple[int, ...]) -> tuple[SortKey, ...]:
    return tuple(SortKey(index=k) for k in keys)


def bracketed(texts: Sequence[str]) -> str:
    return f"[{', '.join(texts)}]"
