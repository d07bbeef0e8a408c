"""Flink's view of a streaming plan: the nodes that Flink's planner has and Tidemill's has not.

``flink_view.flink_view`` makes the view for EXPLAIN. Flink splits an aggregation into phases; Tidemill has
one operator for all phases. Flink runs some Top-N without -U; Tidemill needs each -U. Only this package knows
these differences. ``answers`` has what EXPLAIN asks of these nodes; importing the package registers it.
"""

from __future__ import annotations

from tidemill.physical.explain.view import answers

__all__ = ["answers"]
