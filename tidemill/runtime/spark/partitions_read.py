"""How many partitions the scans of a query that has run have read."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pyspark.sql import DataFrame

from tidemill.connectors.filesystem.native import PARTITIONS, TABLE
from tidemill.runtime.progress import PartitionsRead

_WRAPPED = {"AdaptiveSparkPlanExec": "executedPlan"}
_STAGE = "QueryStageExec"
_SCAN = "FileSourceScanExec"


def partitions_read(frame: DataFrame, job: str) -> list[PartitionsRead]:
    """Of each scan of a partitioned table, by the plan that ran in the end. Cost: some calls into the JVM for
    each of its nodes."""
    return list(_scans(frame._jdf.queryExecution().executedPlan(), job))


def _scans(plan: Any, job: str) -> Iterator[PartitionsRead]:
    name = plan.getClass().getSimpleName()
    if name in _WRAPPED:
        yield from _scans(getattr(plan, _WRAPPED[name])(), job)
    elif name.endswith(_STAGE):
        yield from _scans(plan.plan(), job)
    elif name == _SCAN:
        options, metrics = plan.relation().options(), plan.metrics()
        if options.contains(TABLE) and metrics.contains("numPartitions"):
            read = metrics.apply("numPartitions").value()
            of = int(options.apply(PARTITIONS))
            yield PartitionsRead(job_id=job, table=options.apply(TABLE), read=read, of=of)
    else:
        children = plan.children()
        for i in range(children.size()):
            yield from _scans(children.apply(i), job)
