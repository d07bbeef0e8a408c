"""A statement's physical plan."""

from __future__ import annotations

from dataclasses import dataclass

from tidemill.physical import nodes as p


@dataclass(frozen=True, slots=True, kw_only=True)
class PhysicalPlan:
    """One plan in two views: ``shown`` is Flink's, ``runs`` what is compiled of it (see ``running``)."""

    shown: p.PhysicalNode
    runs: p.PhysicalNode
