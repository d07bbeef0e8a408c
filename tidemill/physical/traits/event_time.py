"""The nodes whose rows must carry their watermark: nodes below an operator by event time."""

from __future__ import annotations

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


def reads_watermark(node: p.PhysicalNode) -> bool:
    """Whether the node computes CURRENT_WATERMARK."""
    if not isinstance(node, p.Calc):
        return False
    parts = (*node.projections, *(() if node.condition is None else (node.condition,)))
    return any(is_current_watermark(x) for part in parts for x in part.walk())


def needs_arrival_order(node: p.PhysicalNode) -> bool:
    """Whether a watermark is computed over a normalized changelog. Its rows come from many partitions, and
    must be put in order first, because a watermark depends on all rows before."""
    return isinstance(node, p.WatermarkAssigner) and any(
        isinstance(below, p.ChangelogNormalize) for below in walk(node)
    )


def is_current_watermark(expr: Expr) -> bool:
    return isinstance(expr, Call) and expr.function == CURRENT_WATERMARK


def passes_watermarks(node: p.PhysicalNode) -> bool:
    """Whether the rows of ``node`` carry the watermarks of its input's rows."""
    if emits_each_change(node):
        return True
    if isinstance(node, p.Rank) and not isinstance(node, p.WindowRank):
        return waits_for_first(node)
    return isinstance(node, _HANDING_ON) or needs_watermark(node)


def emits_each_change(node: p.PhysicalNode) -> bool:
    """Whether every change is emitted by itself, with the watermark before the row that caused it."""
    return isinstance(node, p.GroupAggregate | p.Rank | p.ChangelogNormalize) and node.versions


def waits_for_first(node: p.Rank) -> bool:
    """Whether it is a deduplication that emits the first row by event time once it is known."""
    return node.insert_only and node.is_deduplicate and node.time == "ROWTIME"


@once_per_node
def is_emitted_at_its_time(node: p.PhysicalNode) -> bool:
    """Whether the rows of ``node`` are emitted when the watermark reaches their time: by a window, a join, a
    match, or a deduplication that keeps first rows. With mini-batch the deduplication emits a row at once,
    and retracts the row if an earlier one comes; this counts, too."""
    if needs_watermark(node) and not emits_each_change(node):
        return True
    if isinstance(node, p.Rank) and node.is_deduplicate and node.keeps_first and node.time == "ROWTIME":
        return True
    return passes_watermarks(node) and any(map(is_emitted_at_its_time, node.inputs))


@once_per_node
def has_watermark(node: p.PhysicalNode) -> bool:
    """Whether the rows of ``node`` can carry a watermark. This also holds for an empty node."""
    if isinstance(node, p.WatermarkAssigner) or (isinstance(node, p.Values) and not node.rows):
        return True
    return bool(node.inputs) and passes_watermarks(node) and all(map(has_watermark, node.inputs))


_HANDING_ON = (
    p.Calc,
    p.Correlate,
    p.DropUpdateBefore,
    p.Exchange,
    p.Expand,
    p.LookupJoin,
    p.MiniBatchAssigner,
    p.TableSourceScan,
    p.Union,
    p.WatermarkAssigner,
    p.WindowTableFunction,
)
