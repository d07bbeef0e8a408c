"""EXPLAIN PLAN_ADVICE: aggregations that run in one phase because options prevent two phases."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tidemill.config.mini_batch_options import MINI_BATCH_ENABLED
from tidemill.config.optimizer_options import AGG_PHASE_STRATEGY
from tidemill.config.option import Configuration
from tidemill.physical import nodes as p
from tidemill.physical.aggregates.parts import mergeable
from tidemill.physical.explain.view.nodes import is_global
from tidemill.physical.tree import walk


@dataclass(frozen=True, slots=True, kw_only=True)
class Advice:
    """``nodes``: the ids of nodes with advice. ``text``: the lines below the trees."""

    nodes: frozenset[int]
    text: str


def advice_of(roots: Sequence[p.PhysicalNode], config: Configuration) -> Advice:
    settings = _settings(config)
    nodes = [node for root in roots for node in walk(root) if _is_one_phase(node)] if settings else []
    if not nodes:
        return Advice(nodes=frozenset(), text="No available advice...")
    text = (
        "advice[1]: [ADVICE] You might want to enable local-global two-phase optimization by configuring "
        f"({', '.join(settings)})."
    )
    return Advice(nodes=frozenset(map(id, nodes)), text=text)


def _settings(config: Configuration) -> list[str]:
    settings = []
    if config.read(AGG_PHASE_STRATEGY).upper() == "ONE_PHASE":
        settings.append(f"'{AGG_PHASE_STRATEGY.key}' to 'AUTO'")
    if not config.read(MINI_BATCH_ENABLED):
        settings.append(f"'{MINI_BATCH_ENABLED.key}' to 'true'")
    return settings


def _is_one_phase(node: p.PhysicalNode) -> bool:
    return isinstance(node, p.GroupAggregate) and not is_global(node) and mergeable(node.calls)
