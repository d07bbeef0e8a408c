"""MINI_BATCH hints. They apply to the whole statement, because an epoch is one mini-batch for all
operators."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tidemill.config.mini_batch_options import MINI_BATCH_ALLOW_LATENCY, MINI_BATCH_ENABLED, MINI_BATCH_SIZE
from tidemill.config.option import Configuration
from tidemill.deep_calls import with_room
from tidemill.plan import nodes as n
from tidemill.plan.once import once_per_node
from tidemill.plan.rewrite import node_expressions, subplan


def bundled(config: Configuration, plans: Sequence[n.LogicalNode]) -> Configuration:
    """``config`` with the hints of the bound ``plans``: mini-batch is on, with the smallest latency and size
    of all hints. Without hints ``config`` is unchanged."""
    hints = with_room(lambda: [b for plan in plans for b in _bundles(plan)])
    if not hints:
        return config
    config = config.with_value(MINI_BATCH_ENABLED.key, "true")
    latencies = [b.latency for b in hints if b.latency is not None]
    sizes = [b.size for b in hints if b.size is not None]
    if latencies:
        config = config.with_value(MINI_BATCH_ALLOW_LATENCY.key, f"{min(latencies)} ms")
    return config.with_value(MINI_BATCH_SIZE.key, str(min(sizes))) if sizes else config


@once_per_node
def _bundles(node: n.LogicalNode) -> frozenset[n.Bundle]:
    own_hints = {node.bundle} if isinstance(node, n.Project) and node.bundle is not None else set()
    return frozenset(own_hints).union(*map(_bundles, _below(node)))


def _below(node: n.LogicalNode) -> Iterator[n.LogicalNode]:
    yield from node.inputs
    for expr in node_expressions(node):
        yield from filter(None, (subplan(part) for part in expr.walk()))
