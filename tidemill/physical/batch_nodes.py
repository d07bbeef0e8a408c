"""What EXPLAIN shows of a batch plan: nodes that are only names, attributes and estimates.

Execution in batch mode is Spark's; these trees say in Flink's words how a batch plan looks. The
estimates are as coarse as they can be: whether a tree reads files (whose sizes are known, and taken
for small) and whether it was filtered, joined or grouped, after which few rows are expected.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from tidemill.physical.digest import Printer, order_text
from tidemill.plan.expressions import SortKey
from tidemill.types.logical import Field


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchNode:
    """``sized``: its row count is known to be small; ``reduced``: fewer rows than were read.
    ``partitioned``: the columns its rows are distributed by."""

    name: str
    fields: tuple[Field, ...]
    attributes: tuple[tuple[str, str], ...] = ()
    inputs: tuple[BatchNode, ...] = ()
    sized: bool = False
    reduced: bool = False
    partitioned: tuple[int, ...] = ()


def above(
    node: BatchNode,
    name: str,
    attributes: tuple[tuple[str, str], ...] = (),
    fields: tuple[Field, ...] | None = None,
) -> BatchNode:
    """A node over ``node`` with its estimates, and its fields unless told."""
    return replace(
        node,
        name=name,
        fields=node.fields if fields is None else fields,
        attributes=attributes,
        inputs=(node,),
        partitioned=(),
    )


def exchange(node: BatchNode, keys: tuple[int, ...]) -> BatchNode:
    names = ", ".join(node.fields[k].name for k in keys)
    return above(node, "Exchange", (("distribution", f"[hash[{names}]]" if keys else "[single]"),))


def broadcast(node: BatchNode) -> BatchNode:
    return above(node, "Exchange", (("distribution", "[broadcast]"),))


def sort(node: BatchNode, order: tuple[SortKey, ...]) -> BatchNode:
    printer = Printer.over(node.fields)
    shown = ", ".join(order_text(k, printer) for k in order)
    return above(node, "Sort", (("orderBy", f"[{shown}]"),))


def ascending(keys: tuple[int, ...]) -> tuple[SortKey, ...]:
    return tuple(SortKey(index=k) for k in keys)


def bracketed(texts: list[str]) -> str:
    return f"[{', '.join(texts)}]"
