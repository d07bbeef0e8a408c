"""The nodes of a job's plan, as people and records see them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class PlanRole(Enum):
    SOURCE = "source"
    OPERATOR = "operator"
    LOOKUP = "lookup"
    SINK = "sink"


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanNode:
    """``name`` is Flink's name (``GroupAggregate``), or a table's. ``detail``: its attributes, or columns.
    ``inputs``: the ids of the nodes that it reads. ``table``: the path of a source's or a sink's table."""

    id: str
    role: PlanRole
    name: str
    detail: str = ""
    inputs: tuple[str, ...] = ()
    table: str = ""
