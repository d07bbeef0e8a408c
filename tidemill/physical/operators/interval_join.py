"""IntervalJoin: a join with a bounded distance between the sides' times."""

from __future__ import annotations

import dataclasses
from dataclasses import replace

from tidemill.physical import nodes as p
from tidemill.physical.conditions import conjunction, conjuncts
from tidemill.physical.digests import canonical
from tidemill.physical.explain.attributes.dispatch import attributes
from tidemill.physical.explain.attributes.texts import Attributes, names
from tidemill.physical.explain.notes import runs_otherwise
from tidemill.physical.explain.printer import Form
from tidemill.physical.finish import exchange
from tidemill.physical.joins.by_pairs import join_by_pairs
from tidemill.physical.lineage import Lineages, lineage_of
from tidemill.physical.lineage_text import Lineage
from tidemill.physical.operators.join import join_condition, join_lineage, null_notes, where_text
from tidemill.physical.running import running
from tidemill.physical.traits.arrival import Arrival, arrival_of
from tidemill.physical.traits.changelog_mode import insert_only, modifications, only_inserts
from tidemill.physical.traits.event_time import has_watermark
from tidemill.physical.traits.mini_batch import needs_watermark
from tidemill.plan.nodes import JoinKind
from tidemill.plan.predicates import equal_columns

_KINDS = {
    JoinKind.INNER: "InnerJoin",
    JoinKind.LEFT: "LeftOuterJoin",
    JoinKind.RIGHT: "RightOuterJoin",
    JoinKind.FULL: "FullOuterJoin",
}

modifications.register(p.IntervalJoin, only_inserts)


@arrival_of.register
def _(node: p.IntervalJoin) -> Arrival:
    """It emits rows at times that its watermark does not determine."""
    return Arrival.UNTOLD


@needs_watermark.register
def _(node: p.IntervalJoin) -> bool:
    return node.bounds.rowtime


@running.register
def _(node: p.IntervalJoin) -> p.PhysicalNode:
    """Without a watermark a wait would never end. Equal times, a bound in Flink, become a key then."""
    if node.bounds.rowtime and all(insert_only(i) and has_watermark(i) for i in node.inputs):
        # The kernel of an outer one waits for what Spark says of its pairs.
        return join_by_pairs(node) if node.kind is JoinKind.INNER else node
    parts = {f.name: getattr(node, f.name) for f in dataclasses.fields(p.Join)}
    join = p.Join(**parts)
    width = len(node.left.fields)
    keys, residual = [], []
    for part in [] if node.residual is None else conjuncts(node.residual):
        pair = equal_columns(part, width)
        residual.append(part) if pair is None else keys.append(pair)
    if not keys:
        return join_by_pairs(replace(join, overwrites=False))
    left_keys = (*node.left_keys, *(a for a, _ in keys))
    right_keys = (*node.right_keys, *(b for _, b in keys))
    return join_by_pairs(
        replace(
            join,
            left=exchange(node.left.inputs[0], left_keys),
            right=exchange(node.right.inputs[0], right_keys),
            left_keys=left_keys,
            right_keys=right_keys,
            null_safe=(*node.null_safe, *[False] * len(keys)),
            by_identity=(*(node.by_identity or [False] * len(node.left_keys)), *[False] * len(keys)),
            residual=conjunction(residual),
            overwrites=False,
        )
    )


@lineage_of.register
def _(node: p.IntervalJoin, lineages: Lineages) -> Lineage:
    left, right, bounds = lineages.of(node.left), lineages.of(node.right), node.bounds
    times = left.columns[bounds.left], right.columns[bounds.right]
    settings = [canonical(x) for x in (bounds.rowtime, bounds.lower, bounds.upper)]
    return join_lineage(node, left, right, *times, *settings)


@attributes.register
def _(node: p.IntervalJoin, form: Form) -> Attributes:
    bounds = node.bounds
    times = (
        f"isRowTime={str(bounds.rowtime).lower()}, leftLowerBound={bounds.lower}, "
        f"leftUpperBound={bounds.upper}, leftTimeIndex={bounds.left}, rightTimeIndex={bounds.right}"
    )
    return [
        ("joinType", f"[{_KINDS[node.kind]}]"),
        ("windowBounds", f"[{times}]"),
        ("where", f"[{where_text(node, join_condition(node), form)}]"),
        ("select", f"[{names(node)}]"),
    ]


@runs_otherwise.register
def _(shown: p.IntervalJoin, runs: p.PhysicalNode) -> list[str]:
    bounded = isinstance(runs, p.IntervalJoin)
    return [*null_notes(shown), *([] if bounded else ["Join without bounds"])]
