"""How many partitions the scans of a query that has run have read."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pyspark.sql import DataFrame

from tidemill.connectors.filesystem.native import PARTITIONS, TABLE
from tidemill.runtime.progress import PartitionsRead

_WRAPPED = {
    "AdaptiveSparkPlanExec": "executedPlan",
    "ShuffleQueryStageExec": "plan",
    "BroadcastQueryStageExec": "plan",
    "TableCacheQueryStageExec": "plan",
    "ResultQueryStageExec": "plan",
}
"""Leaves by name, and what gives the plan within."""
_SCAN = "FileSourceScanExec"
_SUBQUERY = "SubqueryExec"


def partitions_read(frame: DataFrame, job: str) -> list[PartitionsRead]:
    """Of each scan of a partitioned table, by the plan that ran in the end. Cost: some calls into the JVM for
    each of its exchanges and scans."""
    return list(_scans(frame._jdf.queryExecution().executedPlan(), job))


def _scans(plan: Any, job: str) -> Iterator[PartitionsRead]:
    """Sub-queries that are conditions are no leaves, but run as plans of their own."""
    found = plan.subqueriesAll()
    subqueries = {x.id(): x for x in map(found.apply, range(found.size()))}
    for subquery in subqueries.values():
        if subquery.getClass().getSimpleName() == _SUBQUERY:
            yield from _scans(subquery.child(), job)
    leaves = plan.collectLeaves()
    for i in range(leaves.size()):
        leaf = leaves.apply(i)
        name = leaf.getClass().getSimpleName()
        if name in _WRAPPED:
            yield from _scans(getattr(leaf, _WRAPPED[name])(), job)
        elif name == _SCAN:
            yield from _scan(leaf, job)


def _scan(scan: Any, job: str) -> Iterator[PartitionsRead]:
    options, metrics = scan.relation().options(), scan.metrics()
    if options.contains(TABLE) and metrics.contains("numPartitions"):
        read = metrics.apply("numPartitions").value()
        yield PartitionsRead(
            job_id=job, table=options.apply(TABLE), read=read, of=int(options.apply(PARTITIONS))
        )
