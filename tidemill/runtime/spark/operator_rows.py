"""How many rows each operator of Spark's gave in a query that has run, by the plan that ran in the end."""

from __future__ import annotations

from typing import Any

from pyspark.sql import DataFrame

from tidemill.runtime.stage_runs import OperatorRows, with_rows_passed_on

_ROWS = ("numOutputRows", "pythonNumRowsReceived")
"""What operators count their rows as."""
_WRAPPING = ("AdaptiveSparkPlan", "WholeStageCodegen", "InputAdapter")
_STAGE = "QueryStage"
MOST = 100
"""Operators of one query."""


def operator_rows(frame: DataFrame) -> tuple[OperatorRows, ...]:
    """From the result down, what an operator reads below it. Cost: some calls into the JVM for each."""
    found: list[OperatorRows] = []
    waiting: list[tuple[Any, int]] = [(frame._jdf.queryExecution().executedPlan(), 0)]
    while waiting and len(found) < MOST:
        plan, depth = waiting.pop()
        name = plan.nodeName()
        wraps = name.startswith(_WRAPPING) or name.endswith(_STAGE)
        if not wraps:
            found.append(OperatorRows(name=name.strip(), depth=depth, rows=_rows(plan)))
        below = _below(plan, name)
        waiting += [(one, depth + (not wraps)) for one in reversed(below)]
    return with_rows_passed_on(found)


def _below(plan: Any, name: str) -> list[Any]:
    """Stages and adaptive plans hold theirs apart from their children."""
    if name.startswith("AdaptiveSparkPlan"):
        return [plan.executedPlan()]
    if name.endswith(_STAGE):
        return [plan.plan()]
    children = plan.children()
    return [children.apply(place) for place in range(children.size())]


def _rows(plan: Any) -> int | None:
    """None of one that does not count."""
    metrics = plan.metrics()
    for name in _ROWS:
        if metrics.contains(name):
            return int(metrics.apply(name).value())
    return None
