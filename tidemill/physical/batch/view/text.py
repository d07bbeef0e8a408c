"""EXPLAIN of batch statements: Flink's view of the plan that runs, as text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tidemill.physical.batch import nodes as b
from tidemill.physical.batch.view.attributes import Attributes, attributes
from tidemill.physical.batch.view.steps import ADAPTIVE, AHEAD
from tidemill.physical.explain.attributes import joined, node_name
from tidemill.physical.explain.json_plan import Reading, json_plan
from tidemill.physical.explain.syntax_tree import syntax_tree
from tidemill.physical.explain.text import draw
from tidemill.physical.nodes import PhysicalNode
from tidemill.physical.tree import walk
from tidemill.plan import nodes as n

Runs = Mapping[int, Attributes]
"""How nodes run, by node id: extra attributes, or replacements of attributes."""


def explain_batch_text(
    logical: Sequence[n.LogicalNode], plans: Sequence[PhysicalNode], runs: Sequence[Runs]
) -> str:
    """The three sections. ``logical``: the bound plans. ``plans``: the views of the plans that run, with
    their ``runs``."""
    texts = [batch_text(x, r) for x, r in zip(plans, runs, strict=True)]
    sections = (
        ("Abstract Syntax Tree", [syntax_tree(x) for x in logical]),
        ("Optimized Physical Plan", texts),
        ("Optimized Execution Plan", texts),
    )
    return "\n".join(f"== {title} ==\n" + "\n\n".join(parts) + "\n" for title, parts in sections)


def batch_text(plan: PhysicalNode, runs: Runs) -> str:
    return draw(plan, lambda node: _line(node, runs.get(id(node), ())), lambda node: node.inputs)


def batch_graph(plans: Sequence[PhysicalNode], parallelism: int) -> str:
    """EXPLAIN JSON_EXECUTION_PLAN."""
    reading = Reading(
        name=_graph_name,
        line=lambda node: _line(node, ()),
        inputs=lambda node: node.inputs,
        exchange=_shipped,
        sink=lambda node: isinstance(node, b.Sink),
        parallelism=parallelism,
    )
    return json_plan(plans, reading)


def _graph_name(node: PhysicalNode) -> str:
    """A node's name; for scans and sinks the table's name."""
    if isinstance(node, b.TableSourceScan):
        return node.table.path.name
    return node.target.table.path.name if isinstance(node, b.Sink) else node_name(node)


def _shipped(node: PhysicalNode) -> str:
    """``distribution=[hash[a]]`` ships HASH[a]."""
    if node_name(node) != "Exchange":
        return ""
    way = dict(attributes(node))["distribution"].removeprefix("[").removesuffix("]")
    kind, bracket, keys = way.partition("[")
    return f"{_WAYS.get(kind, kind.upper())}{bracket}{keys}"


_WAYS = {"single": "GLOBAL"}


def exchange_modes(root: PhysicalNode, mode: str, *, adaptive: bool) -> Runs:
    """How exchanges run, if the options choose a ``mode``. Without adaptive execution the Steps also say that
    Spark plans them ahead."""
    if not mode:
        return {}
    nodes = list(walk(root))
    modes = {id(node): (("shuffle_mode", f"[{mode}]"),) for node in nodes if node_name(node) == "Exchange"}
    ahead = {} if adaptive else {id(node): _planned_ahead(node) for node in nodes}
    return {key: (*ahead.get(key, ()), *modes.get(key, ())) for key in modes.keys() | ahead.keys()}


def _planned_ahead(node: PhysicalNode) -> Attributes:
    runs = dict(attributes(node)).get("runs", "")
    return (("runs", runs.replace(ADAPTIVE, AHEAD)),) if ADAPTIVE in runs else ()


def _line(node: PhysicalNode, runs: Attributes) -> str:
    run_attributes = dict(runs)
    shown_attributes = [(key, run_attributes.pop(key, value)) for key, value in attributes(node)]
    return f"{node_name(node)}({joined([*shown_attributes, *run_attributes.items()])})"
