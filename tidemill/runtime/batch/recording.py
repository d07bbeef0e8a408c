"""A batch job as people see it: Ctrl-C ends it, and what it has read and passed on is recorded."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from pyspark.sql import DataFrame

from tidemill.connectors.filesystem.native import PARTITIONS, TABLE
from tidemill.deep_calls import with_room
from tidemill.interrupts import can_be_heard, ended_by_interrupt
from tidemill.physical import nodes as p
from tidemill.physical.batch import nodes as b
from tidemill.physical.batch.view.flink_view import flink_view
from tidemill.physical.tree import walk
from tidemill.runtime.events import PartitionsRead
from tidemill.runtime.job.plan import batch_plan
from tidemill.runtime.job.recording import Recording, Seen
from tidemill.runtime.job.request import JobRequest
from tidemill.runtime.spark.job_groups import give_up, was_given_up
from tidemill.runtime.stage_runs import OperatorRows, with_rows_passed_on
from tidemill.spark_internals.errors import JavaError
from tidemill.spark_internals.executed_plans import operators, partitioned_scans

_LOGGER = logging.getLogger("tidemill.history")
_MOST = 100
"""Operators of one query."""


@contextmanager
def interruptible(request: JobRequest) -> Iterator[JobRequest]:
    """The request with a group that Ctrl-C gives up, where this thread hears of it."""
    if not can_be_heard():
        yield request
        return
    named = replace(request, group=request.group or uuid.uuid4().hex)
    with ended_by_interrupt(lambda: give_up(request.application.sparkContext, named.group)):
        yield named


@contextmanager
def recorded(root: p.PhysicalNode, request: JobRequest) -> Iterator[Seen]:
    """What runs within is a job of its own, for whom it may concern; it adds what it has seen of itself."""
    if not request.recorded:
        yield Seen()
        return
    recording = Recording(
        context=request.application.sparkContext,
        job_id=request.group or uuid.uuid4().hex,
        name=request.name,
        mode="batch",
        tell=request.on_event,
        plan=with_room(lambda: batch_plan(flink_view(root, request.config))),
        statement=request.statement,
        options=request.shown_options,
    )
    try:
        with recording.running():
            yield recording.seen
    except BaseException as e:
        recording.end("CANCELED" if was_given_up(request.group) else "FAILED", str(e))
        raise
    recording.end("FINISHED")


def recorded_operators(frame: DataFrame, request: JobRequest) -> tuple[OperatorRows, ...]:
    """A job never fails for its record."""
    if not request.recorded:
        return ()
    try:
        return operator_rows(frame)
    except JavaError:
        _LOGGER.warning("the rows of Spark's operators could not be read", exc_info=True)
        return ()


def reported_partitions(frame: DataFrame, root: p.PhysicalNode, request: JobRequest) -> list[PartitionsRead]:
    """How many partitions were read, as a listener was told; nothing where nobody listens."""
    reads = (node.table for node in walk(root) if isinstance(node, b.TableSourceScan))
    if not (request.has_listener and any(table.partitioned_by for table in reads)):
        return []
    found = partitions_read(frame, request.name)
    for event in found:
        request.on_event(event)
    return found


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
