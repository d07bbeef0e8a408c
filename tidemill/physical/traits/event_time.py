"""Which rows of a plan must carry their watermark: those below an operator that works by event time."""

from __future__ import annotations

from tidemill.functions.datetime_now import CURRENT_WATERMARK
from tidemill.physical import nodes as p
from tidemill.physical.traits.mini_batch import needs_watermark
from tidemill.physical.tree import walk
from tidemill.plan.expressions import Call, Expr
from tidemill.plan.once import once_per_node


def timed_nodes(root: p.PhysicalNode, by_time: bool = False) -> list[p.PhysicalNode]:
    """All nodes that such an operator stands above. ``by_time``: the reader of ``root`` is one."""
    found: dict[int, p.PhysicalNode] = {}
    seen: set[tuple[int, bool]] = set()
    pending = [(root, by_time)]
    while pending:
        node, wanted = pending.pop()
        if (id(node), wanted) in seen:
            continue
        seen.add((id(node), wanted))
        if wanted:
            found[id(node)] = node
        needed = wanted or needs_watermark(node) or reads_watermark(node)
        pending += [(child, needed) for child in node.inputs]
    return list(found.values())


def reads_watermark(node: p.PhysicalNode) -> bool:
    """Whether a row's own watermark is among what the node computes."""
    if not isinstance(node, p.Calc):
        return False
    parts = (*node.projections, *(() if node.condition is None else (node.condition,)))
    return any(is_current_watermark(x) for part in parts for x in part.walk())


def waits_for_arrival(node: p.PhysicalNode) -> bool:
    """Whether the rows that the watermark is told of come from many partitions, a normalized changelog: it is
    that of all rows before, so they are put in order first."""
    return isinstance(node, p.WatermarkAssigner) and any(
        isinstance(below, p.ChangelogNormalize) for below in walk(node)
    )


def is_current_watermark(expr: Expr) -> bool:
    return isinstance(expr, Call) and expr.function == CURRENT_WATERMARK


def hands_time_on(node: p.PhysicalNode) -> bool:
    """Whether the rows of ``node`` carry the watermark that those of its input carry."""
    if tells_versions(node):
        return True
    if isinstance(node, p.Rank) and not isinstance(node, p.WindowRank):
        return waits_for_first(node)
    return isinstance(node, _HANDING_ON) or needs_watermark(node)


def tells_versions(node: p.PhysicalNode) -> bool:
    """Whether every change of its rows is given for itself, with the watermark before what made it."""
    return isinstance(node, p.GroupAggregate | p.Rank | p.ChangelogNormalize) and node.versions


def waits_for_first(node: p.Rank) -> bool:
    """Whether it is a deduplication that gives the first row by event time, once it is known."""
    return node.insert_only and node.is_deduplicate and node.time == "ROWTIME"


@once_per_node
def comes_at_its_time(node: p.PhysicalNode) -> bool:
    """Whether an operator gives rows of ``node`` when the watermark has reached their time: a window, a join,
    a match, a deduplication that gives first rows."""
    if needs_watermark(node) and not tells_versions(node):
        return True
    return hands_time_on(node) and any(map(comes_at_its_time, node.inputs))


@once_per_node
def has_watermark(node: p.PhysicalNode) -> bool:
    """Whether the rows of ``node`` carry a watermark, if they are asked for it; no rows do."""
    if isinstance(node, p.WatermarkAssigner) or (isinstance(node, p.Values) and not node.rows):
        return True
    return bool(node.inputs) and hands_time_on(node) and all(map(has_watermark, node.inputs))


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
