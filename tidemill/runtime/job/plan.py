"""The plan of a job as a graph for people: sources, stateful operators, lookups and sinks.

Work that is done row by row between two nodes is not a node. The ids are the ids in the reports of epochs. An
operator's id is also the folder of its state.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tidemill.physical.batch.nodes import Sink, TableSourceScan
from tidemill.physical.batch.view.attributes import attributes
from tidemill.physical.explain.attributes import node_name
from tidemill.physical.nodes import PhysicalNode
from tidemill.runtime import graph as g
from tidemill.runtime.job.plan_nodes import PlanNode, PlanRole


def job_plan(
    outputs: Mapping[str, g.ExecNode],
    sinks: Mapping[str, str],
    descriptions: Mapping[str, str],
    tables: Mapping[str, str],
) -> tuple[PlanNode, ...]:
    """The nodes, inputs before their readers. ``sinks``: the names of the outputs. ``descriptions`` and
    ``tables`` are as in ``CompileContext``."""
    found: dict[int, PlanNode] = {}
    for root in outputs.values():
        for node in root.walk():
            if isinstance(node, _SHOWN) and id(node) not in found:
                found[id(node)] = _shown(node, descriptions, tables)
    nodes = {node.id: node for node in found.values()}
    ends = [
        PlanNode(
            id=key,
            role=PlanRole.SINK,
            name=sinks[key],
            inputs=tuple(_below(root)),
            table=tables.get(key, ""),
        )
        for key, root in outputs.items()
    ]
    return (*_inputs_first(nodes), *ends)


_SHOWN = (g.Read, g.Keyed, g.Lookup)


_LONGEST = 2_000
"""Characters that are kept of what a node does."""


def batch_plan(root: PhysicalNode) -> tuple[PlanNode, ...]:
    """The nodes of the view of a batch plan, inputs before their readers."""
    found: dict[int, PlanNode] = {}
    waiting = [root]
    while waiting:
        node = waiting[-1]
        missing = [below for below in node.inputs if id(below) not in found]
        if missing:
            waiting += missing
        elif id(waiting.pop()) not in found:
            found[id(node)] = _batch_node(node, str(len(found)), [found[id(x)].id for x in node.inputs])
    return tuple(found.values())


def _batch_node(node: PhysicalNode, key: str, inputs: list[str]) -> PlanNode:
    role = PlanRole.OPERATOR if node.inputs else PlanRole.SOURCE
    detail = ", ".join(f"{k}={v}" for k, v in attributes(node))
    return PlanNode(
        id=key,
        role=PlanRole.SINK if isinstance(node, Sink) else role,
        name=node_name(node),
        detail=detail if len(detail) <= _LONGEST else f"{detail[:_LONGEST]}...",
        inputs=tuple(inputs),
        table=_table(node),
    )


def _table(node: PhysicalNode) -> str:
    if isinstance(node, Sink):
        return str(node.target.table.path)
    return str(node.table.path) if isinstance(node, TableSourceScan) else ""


def _shown(node: g.ExecNode, descriptions: Mapping[str, str], tables: Mapping[str, str]) -> PlanNode:
    if isinstance(node, g.Read):
        return PlanNode(
            id=node.source,
            role=PlanRole.SOURCE,
            name=descriptions.get(node.source, node.source),
            detail=", ".join(node.columns),
            table=tables.get(node.source, ""),
        )
    inputs = tuple(dict.fromkeys(key for below in node.inputs for key in _below(below)))
    if isinstance(node, g.Keyed):
        name, _, detail = descriptions.get(node.operator, node.operator).partition("(")
        return PlanNode(
            id=node.operator,
            role=PlanRole.OPERATOR,
            name=name,
            detail=detail.removesuffix(")"),
            inputs=inputs,
        )
    return PlanNode(id=_id(node), role=PlanRole.LOOKUP, name=_id(node), inputs=inputs)


def _below(node: g.ExecNode) -> Iterator[str]:
    """The ids of the nearest nodes of the graph, which may be ``node`` itself. Not recursive: graphs may
    be deep."""
    waiting, seen = [node], set[int]()
    while waiting:
        here = waiting.pop(0)
        if id(here) in seen:
            continue
        seen.add(id(here))
        if isinstance(here, _SHOWN):
            yield _id(here)
        else:
            waiting += here.inputs


def _id(node: g.ExecNode) -> str:
    if isinstance(node, g.Keyed):
        return node.operator
    if isinstance(node, g.Lookup):
        return f"lookup {node.name}"
    return node.source if isinstance(node, g.Read) else ""


def _inputs_first(nodes: Mapping[str, PlanNode]) -> list[PlanNode]:
    ordered: dict[str, PlanNode] = {}
    waiting = list(nodes.values())
    while waiting:
        node = waiting[-1]
        missing = [key for key in node.inputs if key not in ordered]
        if missing:
            waiting += (nodes[key] for key in missing)
        else:
            ordered.setdefault(waiting.pop().id, node)
    return list(ordered.values())
