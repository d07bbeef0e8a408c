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
from tidemill.plan.nodes import JoinKind
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
    folds = any(_folds(node) for node in _outside_conditions(root))
    return _with_assigners(root, Bundles(Mode.PROC_TIME) if folds else None, config.latency)


def _outside_conditions(root: p.PhysicalNode) -> Iterator[p.PhysicalNode]:
    """The nodes of the plan, without nodes of sub-queries in conditions."""
    waiting = [root]
    while waiting:
        node = waiting.pop()
        yield node
        in_condition = isinstance(node, p.Join) and node.kind in (JoinKind.SEMI, JoinKind.ANTI)
        waiting += node.inputs[:1] if in_condition else node.inputs


@once_per_node
def _with_assigners(node: p.PhysicalNode, bundles: Bundles | None, latency: int) -> p.PhysicalNode:
    if _starts_bundles(node):
        return node if bundles is None else _assigner(node, bundles, latency)
    if isinstance(node, p.WindowAggregate) and node.window.group:
        return node
    if _waits(node):
        bundles = (bundles or Bundles(Mode.ROW_TIME)).and_windows(gcd(*map(_steps, _windows_of(node))))
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


@singledispatch
def _windows_of(node: p.PhysicalNode) -> tuple[p.Window, ...]:
    """The windows whose end the operator waits for."""
    return ()


@_windows_of.register(p.WindowAggregate)
@_windows_of.register(p.WindowTableFunction)
@_windows_of.register(p.WindowsOfRows)
def _(node: p.WindowAggregate | p.WindowTableFunction | p.WindowsOfRows) -> tuple[p.Window, ...]:
    return (node.window,)


@_windows_of.register
def _(node: p.WindowRank) -> tuple[p.Window, ...]:
    return (node.attached.window,)


@_windows_of.register
def _(node: p.WindowJoin) -> tuple[p.Window, ...]:
    return (node.left_window.window, node.right_window.window)


_DAY = 86_400_000


def _steps(window: p.Window) -> int:
    """The step in ms of which all window ends are multiples; 0 for sessions, which end at any time."""
    sizes = (0,) if window.kind.is_data_driven else (window.size, window.offset)
    return gcd(window.slide, *sizes, _DAY if window.months else 0)


@singledispatch
def _starts_bundles(node: p.PhysicalNode) -> bool:
    return False


@_starts_bundles.register(p.TableSourceScan)
@_starts_bundles.register(p.DataFrameScan)
@_starts_bundles.register(p.WatermarkAssigner)
def _(node: p.PhysicalNode) -> bool:
    return True


@singledispatch
def needs_watermark(node: p.PhysicalNode) -> bool:
    """Whether the operator fires by event time."""
    return False


@needs_watermark.register
def _(node: p.Rank) -> bool:
    return node.is_deduplicate and node.time == "ROWTIME"


@needs_watermark.register
def _(node: p.Sort) -> bool:
    return node.by_time and node.fields[node.order[0].index].type.time_attribute == "ROWTIME"


@needs_watermark.register
def _(node: p.Match) -> bool:
    return node.input.fields[node.order[0].index].type.time_attribute == "ROWTIME"


@needs_watermark.register(p.WindowAggregate)
@needs_watermark.register(p.WindowsOfRows)
def _(node: p.WindowAggregate | p.WindowsOfRows) -> bool:
    return not node.window.proctime


@needs_watermark.register
def _(node: p.WindowRank) -> bool:
    return not node.attached.window.proctime


@needs_watermark.register
def _(node: p.WindowJoin) -> bool:
    return not node.left_window.window.proctime


@needs_watermark.register
def _(node: p.IntervalJoin) -> bool:
    return node.bounds.rowtime


@needs_watermark.register
def _(node: p.TemporalJoin) -> bool:
    return True


@needs_watermark.register
def _(node: p.OverAggregate) -> bool:
    return node.time == "ROWTIME"


def _waits(node: p.PhysicalNode) -> bool:
    """Whether the operator or an operator above it needs watermarks."""
    attaches = isinstance(node, p.WindowTableFunction) and not node.window.proctime
    return attaches or needs_watermark(node)


@singledispatch
def _folds(node: p.PhysicalNode) -> bool:
    """Whether the operator profits from bundles."""
    return False


@_folds.register(p.GroupAggregate)
@_folds.register(p.Rank)
@_folds.register(p.SortLimit)
@_folds.register(p.Sort)
@_folds.register(p.Correlate)
@_folds.register(p.Match)
@_folds.register(p.WatermarkAssigner)
@_folds.register(p.WindowAggregate)
@_folds.register(p.WindowTableFunction)
@_folds.register(p.WindowsOfRows)
def _(node: p.PhysicalNode) -> bool:
    return True


@_folds.register
def _(node: p.Join) -> bool:
    return node.kind not in (JoinKind.SEMI, JoinKind.ANTI)
