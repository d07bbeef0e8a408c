"""Nodes only for EXPLAIN: the phases of Flink's aggregations, and its joins of bundles.

Texts (``select``, ``merged``) are as EXPLAIN prints them.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass

from tidemill.physical import nodes as p
from tidemill.plan.expressions import AggregateCall


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalGroupAggregate(p.Unary):
    """The aggregation of a bundle before the exchange."""

    keys: tuple[int, ...]
    calls: tuple[AggregateCall, ...]
    phase: str
    select: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class IncrementalGroupAggregate(p.Unary):
    """The end of the PARTIAL half and the beginning of the FINAL half of an aggregation."""

    partial_keys: tuple[int, ...]
    final_keys: tuple[int, ...]
    select: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PhasedGroupAggregate(p.GroupAggregate):
    """A node of an aggregation in phases. ``phase``: PARTIAL or FINAL, if DISTINCT is split. ``select``: the
    text over a local phase. ``whole``, only in the last node: the unsplit aggregation over the input of the
    first phase."""

    phase: str = ""
    select: tuple[str, ...] = ()
    whole: p.GroupAggregate | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalWindowAggregate(p.Unary):
    """The aggregation by window before the exchange."""

    keys: tuple[int, ...]
    window: p.Window
    time: int
    attached: bool
    select: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PhasedWindowAggregate(p.WindowAggregate):
    """As PhasedGroupAggregate; ``merged``: the calls over a local phase."""

    merged: tuple[str, ...] = ()
    whole: p.WindowAggregate | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class BundledJoin(p.Join):
    """A join under mini-batch."""


def bundled_join(node: p.Join) -> BundledJoin:
    return BundledJoin(**{f.name: getattr(node, f.name) for f in dataclasses.fields(p.Join)})


def phased_group(node: p.GroupAggregate, whole: p.GroupAggregate) -> PhasedGroupAggregate:
    parts = {f.name: getattr(node, f.name) for f in dataclasses.fields(p.GroupAggregate)}
    return PhasedGroupAggregate(**(parts | {"ttl_hints": ()}), whole=whole)


def phased_window(node: p.WindowAggregate, whole: p.WindowAggregate) -> PhasedWindowAggregate:
    parts = {f.name: getattr(node, f.name) for f in dataclasses.fields(p.WindowAggregate)}
    return PhasedWindowAggregate(**parts, whole=whole)


def is_global(node: p.PhysicalNode) -> bool:
    """Whether it merges the accumulators of a local phase."""
    local = (LocalGroupAggregate, IncrementalGroupAggregate, LocalWindowAggregate)
    phased = isinstance(node, PhasedGroupAggregate | PhasedWindowAggregate)
    return phased and isinstance(node.inputs[0].inputs[0], local)


def phases(node: p.PhysicalNode) -> Iterator[p.PhysicalNode]:
    """The nodes of an aggregation below its last node, top-down, without exchanges."""
    if not isinstance(node, PhasedGroupAggregate | PhasedWindowAggregate) or node.whole is None:
        return
    (below,) = node.input.inputs
    while below is not node.whole.source:
        if not isinstance(below, p.Exchange):
            yield below
        (below,) = below.inputs
