"""Mini-batch in the plan: its configuration, and the MiniBatchAssigner nodes.

Every source gets an assigner (above its watermark, if it has one) if the plan has more than filters,
projections, unions and semi joins over tables without watermark. Nodes of sub-queries in conditions do not
count. There is no assigner below a window of GROUP BY, because all its watermarks pass. An assigner marks
bundles by processing time, or by event time if an operator between it and the root needs watermarks.

In Flink's plan a watermark passes every ``allow-latency``, so many windows may fire at once. In the running
plan a watermark passes every greatest common divisor of the windows' steps, so each window fires alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from functools import singledispatch
from math import gcd

from tidemill.config.mini_batch_options import MINI_BATCH_ALLOW_LATENCY, MINI_BATCH_ENABLED, MINI_BATCH_SIZE
from tidemill.config.option import Configuration
from tidemill.errors import ValidationError
from tidemill.physical import nodes as p
from tidemill.physical.tree import with_inputs
from tidemill.plan.once import once_per_node


@dataclass(frozen=True, slots=True, kw_only=True)
class MiniBatchConfig:
    """``latency`` in milliseconds (0: not set); ``size`` in rows (None: no limit)."""

    latency: int
    size: int | None


def mini_batch_config(config: Configuration, *, explicit: bool) -> MiniBatchConfig | None:
    """The checked options; None if mini-batch is off.

    ``explicit``: it is only on if the user set it, as in Flink's EXPLAIN. Raises
    ValidationError that names the key of a bad value.
    """
    enabled = config.read(MINI_BATCH_ENABLED)
    if not enabled or (explicit and MINI_BATCH_ENABLED.key not in config):
        return None
    size = config.read(MINI_BATCH_SIZE) if MINI_BATCH_SIZE.key in config else None
    if size is not None and size <= 0:
        raise ValidationError(f"Key: '{MINI_BATCH_SIZE.key}', value '{size}' must be > 0.")
    return MiniBatchConfig(latency=config.read(MINI_BATCH_ALLOW_LATENCY).milliseconds, size=size)


class Mode(Enum):
    PROC_TIME = "ProcTime"
    ROW_TIME = "RowTime"


@dataclass(frozen=True, slots=True)
class Bundles:
    """The bundles that an operator and the operators above it accept. ``steps``: windows need watermarks at
    their multiples, in ms; 0: at any time."""

    mode: Mode
    steps: int = 0

    def and_windows(self, steps: int) -> Bundles:
        return Bundles(Mode.ROW_TIME, gcd(self.steps, steps))


def add_assigners(root: p.PhysicalNode, config: MiniBatchConfig | None) -> p.PhysicalNode:
    """The plan with MiniBatchAssigner nodes, if an operator profits from bundles."""
    if config is None:
        return root
    profits = any(folds(node) for node in _outside_conditions(root))
    return _with_assigners(root, Bundles(Mode.PROC_TIME) if profits else None, config.latency)


def _outside_conditions(root: p.PhysicalNode) -> Iterator[p.PhysicalNode]:
    """The nodes of the plan, without nodes of sub-queries in conditions."""
    waiting = [root]
    while waiting:
        node = waiting.pop()
        yield node
        waiting += inputs_outside_conditions(node)


@singledispatch
def inputs_outside_conditions(node: p.PhysicalNode) -> tuple[p.PhysicalNode, ...]:
    """The inputs that are no sub-query in a condition. By default all."""
    return node.inputs


@once_per_node
def _with_assigners(node: p.PhysicalNode, bundles: Bundles | None, latency: int) -> p.PhysicalNode:
    if starts_bundles(node):
        return node if bundles is None else _assigner(node, bundles, latency)
    if needs_all_watermarks(node):
        return node
    if waits_or_attaches(node):
        bundles = (bundles or Bundles(Mode.ROW_TIME)).and_windows(gcd(*map(_steps, awaited_windows(node))))
    return with_inputs(node, tuple(_with_assigners(i, bundles, latency) for i in node.inputs))


def _assigner(node: p.PhysicalNode, bundles: Bundles, latency: int) -> p.PhysicalNode:
    return p.MiniBatchAssigner(
        fields=node.fields,
        traits=node.traits,
        input=node,
        interval=latency,
        passes=min(bundles.steps or latency, latency),
        mode=bundles.mode.value,
    )


_DAY = 86_400_000


def _steps(window: p.Window) -> int:
    """The step in ms of which all window ends are multiples; 0 for sessions, which end at any time."""
    sizes = (0,) if window.kind.is_data_driven else (window.size, window.offset)
    return gcd(window.slide, *sizes, _DAY if window.months else 0)


@singledispatch
def awaited_windows(node: p.PhysicalNode) -> tuple[p.Window, ...]:
    """The windows whose end the operator waits for. By default none."""
    return ()


@singledispatch
def starts_bundles(node: p.PhysicalNode) -> bool:
    """Whether a MiniBatchAssigner stands above the node. By default it does not."""
    return False


@singledispatch
def needs_all_watermarks(node: p.PhysicalNode) -> bool:
    """Whether all watermarks must pass below the operator, so that it has no bundles. By default they need
    not."""
    return False


@singledispatch
def needs_watermark(node: p.PhysicalNode) -> bool:
    """Whether the operator fires by event time. By default it does not."""
    return False


@singledispatch
def waits_or_attaches(node: p.PhysicalNode) -> bool:
    """Whether the operator or an operator above it needs watermarks. By default the operator decides."""
    return needs_watermark(node)


@singledispatch
def folds(node: p.PhysicalNode) -> bool:
    """Whether the operator profits from bundles. By default it does not."""
    return False


def always(node: p.PhysicalNode) -> bool:
    return True
