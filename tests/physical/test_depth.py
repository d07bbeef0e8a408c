"""What a statement reads twice, thirty levels deep, is planned once in both modes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import pytest

from tests.plan.environment import sample
from tests.plan.test_depth import TWICE, chained
from tidemill.changelog.rowkind import INSERT_ONLY
from tidemill.config.option import Configuration
from tidemill.physical.batch.planner import plan_batch
from tidemill.physical.conversion import PlannerContext
from tidemill.physical.digests import Digests
from tidemill.physical.explain.view.flink_view import flink_view
from tidemill.physical.nodes import PhysicalNode
from tidemill.physical.planner import plan_job
from tidemill.plan import nodes as n
from tidemill.plan.once import once_per_node
from tidemill.plan.optimizer import optimize
from tidemill.runtime.spark.batch_frames.sharing import LARGE, Sharing


class Node(Protocol):
    @property
    def inputs(self) -> Sequence[Node]: ...


def distinct(plan: Node) -> int:
    seen: set[int] = set()
    waiting = [plan]
    while waiting:
        node = waiting.pop()
        if id(node) not in seen:
            seen.add(id(node))
            waiting.extend(node.inputs)
    return len(seen)


def deep(body: str) -> n.LogicalNode:
    return optimize(sample().bind(chained(30, body)))


@pytest.mark.parametrize("body", TWICE)
def test_batch_plan(body: str) -> None:
    plan = plan_batch(deep(body), Configuration({}), lambda _: None)
    assert distinct(plan) < 1000
    sharing = Sharing.of(plan)

    @once_per_node
    def size(node: PhysicalNode) -> int:
        """What Spark's planner sees below ``node``: what is kept is a leaf."""
        below = sum(1 if sharing.keeps(child) else size(child) for child in node.inputs)
        return 1 + below

    assert size(plan) < 20 * LARGE


@pytest.mark.parametrize("body", TWICE)
def test_streaming_plan(body: str) -> None:
    context = PlannerContext(
        config=Configuration({}),
        source_kinds=lambda *_: INSERT_ONLY,
        sink_kinds=lambda *_: INSERT_ONLY,
    )
    logical = deep(body)
    for root in (flink_view(logical, context), *plan_job([logical], context)):
        assert distinct(root) < 2000
        assert Digests().of(root)
