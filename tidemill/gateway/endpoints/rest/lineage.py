"""Which tables a user's jobs read and write, over all of his jobs: a graph of tables and jobs.

Jobs of one name that read and write the same are one node, which stands for the last of them. An edge that
would close a circle is left out of the graph, and named beside it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

Json = dict[str, Any]
TABLE, JOB = "table", "job"


@dataclass(frozen=True, slots=True, kw_only=True)
class Flow:
    """What a job has to do with tables, by their paths. ``past``: only the history knows it."""

    job_id: str
    name: str
    status: str
    reads: frozenset[str]
    writes: frozenset[str]
    past: bool = False

    @classmethod
    def of(cls, job_id: str, name: str, status: str, plan: Iterable[tuple[str, str]], *, past: bool) -> Flow:
        """``plan``: role and table of each node."""
        found = list(plan)
        return cls(
            job_id=job_id,
            name=name,
            status=status,
            reads=frozenset(table for role, table in found if table and role == "source"),
            writes=frozenset(table for role, table in found if table and role == "sink"),
            past=past,
        )


@dataclass(slots=True)
class _Graph:
    nodes: dict[str, Json] = field(default_factory=dict)
    circles: list[list[str]] = field(default_factory=list)

    def table(self, path: str) -> str:
        key = f"{TABLE} {path}"
        name = path.rpartition(".")[2]
        self.nodes.setdefault(key, {"id": key, "role": TABLE, "name": name, "detail": path, "inputs": []})
        return key

    def add(self, flow: Flow, runs: int) -> None:
        key = f"{JOB} {flow.job_id}"
        self.nodes[key] = {
            "id": key,
            "role": JOB,
            "name": flow.name,
            "detail": flow.name,
            "inputs": [],
            "job": flow.job_id,
            "status": flow.status,
            "past": flow.past,
            "runs": runs,
        }
        for path in sorted(flow.reads):
            self._edge(self.table(path), key)
        for path in sorted(flow.writes):
            self._edge(key, self.table(path))

    def _edge(self, start: str, end: str) -> None:
        if self._reaches(end, start):
            self.circles.append([self.nodes[start]["detail"], self.nodes[end]["detail"]])
        else:
            self.nodes[end]["inputs"].append(start)

    def _reaches(self, start: str, end: str) -> bool:
        """Whether ``start`` is among what ``end`` comes from."""
        waiting, seen = [end], set[str]()
        while waiting:
            here = waiting.pop()
            if here == start:
                return True
            if here not in seen:
                seen.add(here)
                waiting += self.nodes[here]["inputs"]
        return False


def lineage(flows: Iterable[Flow]) -> Json:
    """``nodes``, inputs first, and ``circles``. ``flows``: the youngest first; those that touch no table are
    left out."""
    last: dict[tuple[str, frozenset[str], frozenset[str]], tuple[Flow, int]] = {}
    for flow in flows:
        if flow.writes:
            kind = (flow.name, flow.reads, flow.writes)
            kept, runs = last.get(kind, (flow, 0))
            last[kind] = (kept, runs + 1)
    graph = _Graph()
    for flow, runs in last.values():
        graph.add(flow, runs)
    return {"nodes": _inputs_first(graph.nodes), "circles": graph.circles}


def _inputs_first(nodes: dict[str, Json]) -> list[Json]:
    ordered: dict[str, Json] = {}
    waiting = list(nodes)
    while waiting:
        missing = [key for key in nodes[waiting[-1]]["inputs"] if key not in ordered]
        if missing:
            waiting += missing
        else:
            key = waiting.pop()
            ordered[key] = nodes[key]
    return list(ordered.values())
