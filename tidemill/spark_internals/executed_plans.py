"""What the plan of a query says when the query has run (``org.apache.spark.sql.execution.SparkPlan``).

Cost: some calls into the JVM for each operator, or for each scan.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame

from tidemill.spark_internals.java import SQL, each, executed_plan, java_class
from tidemill.spark_internals.versions import PLAN_RECORDS, is_on

_SCAN = "Scan "
"""What names of scans begin with."""
_SUBQUERY = "Subquery"
"""The name of a subquery that is a condition; others give rows to their readers."""
_READ = "numPartitions"
_ROWS = ("numOutputRows", "pythonNumRowsReceived")
"""What operators count their rows as."""
_ADAPTIVE = "AdaptiveSparkPlan"
_WRAPPING = (_ADAPTIVE, "WholeStageCodegen", "InputAdapter")
_STAGE = "QueryStage"


@dataclass(frozen=True, slots=True)
class Scan:
    """``options``: of the table that is read; ``partitions``: how many of its partitions were read."""

    options: dict[str, str]
    partitions: int


@dataclass(frozen=True, slots=True)
class Operator:
    """``depth``: below the result; ``rows``: how many it gave, None if it does not count them."""

    name: str
    depth: int
    rows: int | None


def partitioned_scans(frame: DataFrame, options: Sequence[str]) -> list[Scan]:
    """The scans of tables that have all of ``options`` and were pruned to some partitions."""
    # These utilities see the stages that adaptive execution cuts a plan into.
    through = java_class(frame.sparkSession.sparkContext, f"{SQL}.execution.ExplainUtils")
    plan = executed_plan(frame)
    subqueries = {x.id(): x for x in each(through.subqueriesAll(plan)) if x.nodeName() == _SUBQUERY}
    plans = [plan, *(subquery.child() for subquery in subqueries.values())]
    leaves = (leaf for part in plans for leaf in each(through.collectLeaves(part)))
    return [scan for leaf in leaves for scan in _scan(leaf, options)]


def _scan(leaf: Any, options: Sequence[str]) -> Iterator[Scan]:
    if not leaf.nodeName().startswith(_SCAN):
        return
    metrics = leaf.metrics()
    if not metrics.contains(_READ):
        return
    given = leaf.relation().options()
    if all(given.contains(key) for key in options):
        yield Scan({key: given.apply(key) for key in options}, int(metrics.apply(_READ).value()))


def operators(frame: DataFrame, most: int) -> list[Operator]:
    """The first ``most`` from the result down: an operator, then those that it reads."""
    operators: list[Operator] = []
    waiting: list[tuple[Any, int]] = [(executed_plan(frame), 0)] if is_on(PLAN_RECORDS) else []
    while waiting and len(operators) < most:
        plan, depth = waiting.pop()
        name = plan.nodeName()
        wraps = name.startswith(_WRAPPING) or name.endswith(_STAGE)
        if not wraps:
            operators.append(Operator(name=name.strip(), depth=depth, rows=_rows(plan)))
        below = _below(plan, name)
        waiting += [(one, depth + (not wraps)) for one in reversed(below)]
    return operators


def _below(plan: Any, name: str) -> list[Any]:
    """Stages and adaptive plans hold theirs apart from their children."""
    if name.startswith(_ADAPTIVE):
        return [plan.executedPlan()]
    if name.endswith(_STAGE):
        return [plan.plan()]
    return list(each(plan.children()))


def _rows(plan: Any) -> int | None:
    """None for an operator that does not count."""
    metrics = plan.metrics()
    for name in _ROWS:
        if metrics.contains(name):
            return int(metrics.apply(name).value())
    return None
