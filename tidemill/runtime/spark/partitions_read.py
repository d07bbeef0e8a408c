"""How many partitions the scans of a query that has run have read."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pyspark.sql import DataFrame

from tidemill.connectors.filesystem.native import PARTITIONS, TABLE
from tidemill.runtime.progress import PartitionsRead

_SCAN = "Scan "
"""What names of scans begin with."""
_SUBQUERY = "Subquery"
"""The name of one that is a condition; what is named otherwise is another one's rows."""


def partitions_read(frame: DataFrame, job: str) -> list[PartitionsRead]:
    """Of each scan of a partitioned table, by the plan that ran in the end. Cost: some calls into the JVM for
    each of its scans."""
    jvm: Any = frame.sparkSession._jvm
    through = jvm.org.apache.spark.sql.execution.ExplainUtils  # sees the stages that a plan was cut into
    plan = frame._jdf.queryExecution().executedPlan()
    subqueries = {x.id(): x for x in _each(through.subqueriesAll(plan)) if x.nodeName() == _SUBQUERY}
    plans = [plan, *(subquery.child() for subquery in subqueries.values())]
    leaves = (leaf for part in plans for leaf in _each(through.collectLeaves(part)))
    return [found for leaf in leaves for found in _scan(leaf, job)]


def _each(found: Any) -> Iterator[Any]:
    return map(found.apply, range(found.size()))


def _scan(leaf: Any, job: str) -> Iterator[PartitionsRead]:
    if not leaf.nodeName().startswith(_SCAN):
        return
    metrics = leaf.metrics()
    if not metrics.contains("numPartitions"):
        return
    options = leaf.relation().options()
    if options.contains(TABLE):
        read, of = metrics.apply("numPartitions").value(), int(options.apply(PARTITIONS))
        yield PartitionsRead(job_id=job, table=options.apply(TABLE), read=read, of=of)
