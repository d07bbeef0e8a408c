"""The event time at which a job begins whose state is built: its sources and its operators have reached it.

watermark 10:30, an operator that holds it back by 5 minutes  ->  source 10:30, operator 10:25
"""

from __future__ import annotations

from collections.abc import Iterable

from tidemill.changelog.watermarks import NONE, held_back
from tidemill.operators.api import Delayed
from tidemill.runtime import graph as g
from tidemill.runtime.placement import origins_of


def watermarks_at(watermark: int, nodes: Iterable[g.ExecNode]) -> dict[str, int]:
    """By source and operator in ms, as a commit has them; none if ``watermark`` is NONE."""
    if watermark == NONE:
        return {}
    every = list(nodes)
    keyed = {n.operator: n for n in every if isinstance(n, g.Keyed) and n.works_by_time}
    marks = {n.source: watermark for n in every if isinstance(n, g.AssignWatermark)}

    def mark(origin: str) -> int:
        if origin not in marks:
            node = keyed[origin]
            reached = min(held_back(mark(o), port.behind) for port in node.ports for o in origins_of(port))
            marks[origin] = reached - node.spec.delay if isinstance(node.spec, Delayed) else reached
        return marks[origin]

    for operator in keyed:
        mark(operator)
    return marks
