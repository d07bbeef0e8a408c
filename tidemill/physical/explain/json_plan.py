"""EXPLAIN JSON_EXECUTION_PLAN: the tree of a plan as a graph of operators, in the form of Flink's job graphs.

Exchanges are no nodes: they are the ship strategy of an edge. Equal subtrees are one node.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

T = TypeVar("T")
Json = dict[str, Any]
_ROLES = {"Data Source": "Source: ", "Operator": "", "Data Sink": "Sink: "}


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading(Generic[T]):
    """How to read a tree. ``exchange``: the ship strategy of an exchange, '' for other nodes. ``sink``:
    whether a node is a sink."""

    name: Callable[[T], str]
    line: Callable[[T], str]
    inputs: Callable[[T], Sequence[T]]
    exchange: Callable[[T], str]
    sink: Callable[[T], bool]
    parallelism: int


def json_plan(roots: Sequence[T], reading: Reading[T]) -> str:
    """The section's text."""
    graph = _Graph(reading)
    for root in roots:
        graph.add(root)
    return _written({"nodes": graph.nodes})


def _written(value: Any, margin: str = "") -> str:
    """JSON in Flink's layout: a list starts on the same line as the objects in it."""
    if isinstance(value, list):
        return f"[ {', '.join(_written(x, margin) for x in value)} ]"
    if not isinstance(value, dict):
        return json.dumps(value, ensure_ascii=False)
    inner = f"{margin}  "
    lines = ",\n".join(f"{inner}{json.dumps(k)} : {_written(x, inner)}" for k, x in value.items())
    return f"{{\n{lines}\n{margin}}}"


@dataclass(slots=True)
class _Graph(Generic[T]):
    reading: Reading[T]
    nodes: list[Json] = field(default_factory=list)
    _ids: dict[tuple[str, tuple[tuple[int, str], ...]], int] = field(default_factory=dict)

    def add(self, node: T) -> int:
        """The id of the node."""
        below = tuple(self._way(child) for child in self.reading.inputs(node))
        key = self.reading.line(node), below
        if key not in self._ids:
            self._ids[key] = len(self._ids) + 1
            self.nodes.append(self._entry(node, self._ids[key], below))
        return self._ids[key]

    def _way(self, node: T) -> tuple[int, str]:
        """The id of the node that makes the rows, and the ship strategy."""
        shipped = self.reading.exchange(node)
        if not shipped:
            return self.add(node), "FORWARD"
        return self.add(self.reading.inputs(node)[0]), shipped

    def _entry(self, node: T, number: int, below: Sequence[tuple[int, str]]) -> Json:
        name = self.reading.name(node)
        kind = "Data Source" if not below else "Data Sink" if self.reading.sink(node) else "Operator"
        entry: Json = {
            "id": number,
            "type": f"{_ROLES[kind]}{name}[{number}]",
            "pact": kind,
            "contents": f"[{number}]:{self.reading.line(node)}",
            "parallelism": self.reading.parallelism,
        }
        if below:
            ways = [{"id": key, "ship_strategy": way, "side": "second"} for key, way in below]
            entry["predecessors"] = ways
        return entry
