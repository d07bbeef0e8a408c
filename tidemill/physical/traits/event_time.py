"""The nodes whose rows must carry their watermark: nodes below an operator by event time."""

from __future__ import annotations

from functools import singledispatch

from tidemill.functions.datetime_now import CURRENT_WATERMARK
from tidemill.physical import nodes as p
from tidemill.physical.traits.mini_batch import needs_watermark
from tidemill.physical.tree import walk
from tidemill.plan.expressions import Call, Expr
from tidemill.plan.once import once_per_node


def timed_nodes(root: p.PhysicalNode, by_time: bool = False) -> list[p.PhysicalNode]:
    """All nodes below an operator by event time. ``by_time``: the reader of ``root`` is such an operator."""
    timed: dict[int, p.PhysicalNode] = {}
    visited: set[tuple[int, bool]] = set()
    pending = [(root, by_time)]
    while pending:
        node, is_timed = pending.pop()
        if (id(node), is_timed) in visited:
            continue
        visited.add((id(node), is_timed))
        if is_timed:
            timed[id(node)] = node
        needed = is_timed or needs_watermark(node) or reads_watermark(node)
        pending += [(child, needed) for child in node.inputs]
    return list(timed.values())


@singledispatch
def reads_watermark(node: p.PhysicalNode) -> bool:
    """Whether the node computes CURRENT_WATERMARK. By default it does not."""
    return False


def needs_arrival_order(node: p.PhysicalNode) -> bool:
    """Whether a watermark is computed over a normalized changelog. Its rows come from many partitions, and
    must be put in order first, because a watermark depends on all rows before."""
    return isinstance(node, p.WatermarkAssigner) and any(
        isinstance(below, p.ChangelogNormalize) for below in walk(node)
    )


def is_current_watermark(expr: Expr) -> bool:
    return isinstance(expr, Call) and expr.function == CURRENT_WATERMARK


@singledispatch
def passes_watermarks(node: p.PhysicalNode) -> bool:
    """Whether the rows of ``node`` carry the watermarks of its input's rows. By default, if the operator
    fires by event time."""
    return passes_if_timed(node)


def passes_if_timed(node: p.PhysicalNode) -> bool:
    """The default of ``passes_watermarks``."""
    return emits_each_change(node) or needs_watermark(node)


def emits_each_change(node: p.PhysicalNode) -> bool:
    """Whether every change is emitted by itself, with the watermark before the row that caused it."""
    return isinstance(node, p.Versioned) and node.versions


@once_per_node
def is_emitted_at_its_time(node: p.PhysicalNode) -> bool:
    """Whether the rows of ``node`` are emitted when the watermark reaches their time."""
    if emits_at_their_time(node):
        return True
    return passes_watermarks(node) and any(map(is_emitted_at_its_time, node.inputs))


@singledispatch
def emits_at_their_time(node: p.PhysicalNode) -> bool:
    """Whether the operator emits rows when the watermark reaches their time. By default a window, a join or a
    match by event time does, unless it emits every change by itself."""
    return emits_if_timed(node)


def emits_if_timed(node: p.PhysicalNode) -> bool:
    """The default of ``emits_at_their_time``."""
    return needs_watermark(node) and not emits_each_change(node)


@once_per_node
def has_watermark(node: p.PhysicalNode) -> bool:
    """Whether the rows of ``node`` can carry a watermark. This also holds for an empty node."""
    if isinstance(node, p.WatermarkAssigner) or (isinstance(node, p.Values) and not node.rows):
        return True
    return bool(node.inputs) and passes_watermarks(node) and all(map(has_watermark, node.inputs))
