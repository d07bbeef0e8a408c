"""Flink's names of physical nodes, and shared formatting of attributes."""

from __future__ import annotations

from collections.abc import Sequence
from functools import singledispatch

from tidemill.physical import nodes as p
from tidemill.physical.explain.view.nodes import BundledJoin, is_global
from tidemill.plan.expressions import UserCall

Attributes = list[tuple[str, str]]


@singledispatch
def node_name(node: p.PhysicalNode) -> str:
    return type(node).__name__


@node_name.register
def _(node: p.SortLimit) -> str:
    return "SortLimit" if node.order else "Limit"


@node_name.register
def _(node: p.Sort) -> str:
    return "TemporalSort" if node.by_time else "Sort"


@node_name.register
def _(node: p.Calc) -> str:
    return "PythonCalc" if any(isinstance(x, UserCall) for x in node.projections) else "Calc"


@node_name.register
def _(node: p.WindowAggregate) -> str:
    if node.window.group:
        return "GroupWindowAggregate"
    return "GlobalWindowAggregate" if is_global(node) else "WindowAggregate"


@node_name.register
def _(node: BundledJoin) -> str:
    return "Join"


@node_name.register
def _(node: p.WindowsOfRows) -> str:
    return "WindowTableFunction"


@node_name.register
def _(node: p.WindowRank) -> str:
    return "WindowDeduplicate" if node.is_deduplicate else "WindowRank"


@node_name.register(p.ToChangelog)
@node_name.register(p.FromChangelog)
def _(node: p.PhysicalNode) -> str:
    return "ProcessTableFunction"


@node_name.register
def _(node: p.Correlate) -> str:
    return "Correlate" if node.user is None else "PythonCorrelate"


@node_name.register
def _(node: p.GroupAggregate) -> str:
    if is_global(node):
        return "GlobalGroupAggregate"
    return "PythonGroupAggregate" if any(c.user for c in node.calls) else "GroupAggregate"


def joined(pairs: Sequence[tuple[str, str]]) -> str:
    return ", ".join(f"{name}={value}" for name, value in pairs)


def execution_name(node: p.PhysicalNode) -> str:
    if isinstance(node, p.WindowRank):
        return node_name(node)
    return "Deduplicate" if isinstance(node, p.Rank) and node.is_deduplicate else node_name(node)


def names(node: p.PhysicalNode) -> str:
    return ", ".join(f.name for f in node.fields)


def bracket(parts: Sequence[str]) -> str:
    return f"[{', '.join(parts)}]"
