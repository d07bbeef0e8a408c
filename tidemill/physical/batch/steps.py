"""The Steps of a batch plan: what Flink shows between operators and Spark does when it plans them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tidemill.physical.batch.nodes import BatchNode, Step, Traits
from tidemill.physical.batch.sizes import with_fields
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


def derived(node: BatchNode, fields: tuple[Field, ...], copies: int = 1) -> Traits:
    """The traits of rows made one by one (or ``copies`` each) of those of ``node``."""
    return replace(node.traits, partitioned=(), most=with_fields(node.traits, node.fields, fields, copies))


def step(
    node: BatchNode,
    title: str,
    by: str,
    attributes: tuple[tuple[str, str], ...],
    fields: tuple[Field, ...] | None = None,
) -> Step:
    """A Step over ``node`` with its traits, and its fields unless told."""
    made = node.fields if fields is None else fields
    return Step(
        fields=made, traits=derived(node, made), input=node, title=title, attributes=attributes, by=by
    )


def exchange(node: BatchNode, keys: tuple[int, ...]) -> Step:
    names = ", ".join(node.fields[k].name for k in keys)
    distribution = f"[hash[{names}]]" if keys else "[single]"
    return step(node, "Exchange", MOVED, (("distribution", distribution),))


def broadcast(node: BatchNode) -> Step:
    return step(node, "Exchange", SENT, (("distribution", "[broadcast]"),))


def sort(node: BatchNode, order: tuple[SortKey, ...]) -> Step:
    return step(node, "Sort", SORTED, (("orderBy", ordered(order, node.fields)),))


def ordered(order: Sequence[SortKey], fields: Sequence[Field]) -> str:
    printer = Printer.over(fields)
    return bracketed([order_text(k, printer) for k in order])


def ascending(keys: tuple[int, ...]) -> tuple[SortKey, ...]:
    return tuple(SortKey(index=k) for k in keys)


def bracketed(texts: Sequence[str]) -> str:
    return f"[{', '.join(texts)}]"
