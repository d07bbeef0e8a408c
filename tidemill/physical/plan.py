"""A statement's physical plan."""

from __future__ import annotations

from dataclasses import dataclass

from tidemill.physical import nodes as p


@dataclass(frozen=True, slots=True, kw_only=True)
class PhysicalPlan:
    """``planned``: the operators of the query, as Flink chooses them; ``runs``: what is compiled of them (see
    ``running``)."""

    planned: p.PhysicalNode
    runs: p.PhysicalNode
