"""What a job tells of a query that has run, by the plan that ran in the end."""

from __future__ import annotations

from pyspark.sql import DataFrame

from tidemill.connectors.filesystem.native import PARTITIONS, TABLE
from tidemill.runtime.progress import PartitionsRead
from tidemill.runtime.stage_runs import OperatorRows, with_rows_passed_on
from tidemill.spark_internals.executed_plans import operators, partitioned_scans

_MOST = 100
"""Operators of one query."""


def operator_rows(frame: DataFrame) -> tuple[OperatorRows, ...]:
    """How many rows each of Spark's operators gave: from the result down, what an operator reads below it."""
    found = operators(frame, _MOST)
    return with_rows_passed_on([OperatorRows(name=o.name, depth=o.depth, rows=o.rows) for o in found])


def partitions_read(frame: DataFrame, job: str) -> list[PartitionsRead]:
    """How many partitions each scan of a partitioned table has read."""
    return [
        PartitionsRead(
            job_id=job, table=scan.options[TABLE], read=scan.partitions, of=int(scan.options[PARTITIONS])
        )
        for scan in partitioned_scans(frame, (TABLE, PARTITIONS))
    ]
