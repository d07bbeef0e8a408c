"""The rows of a batch SELECT."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
from pyspark.sql import DataFrame

from tidemill.deep_calls import with_room
from tidemill.errors import InternalError
from tidemill.functions.render import render_sql
from tidemill.physical import nodes as p
from tidemill.physical.batch import nodes as b
from tidemill.physical.batch.portions import limit_by_portions
from tidemill.runtime.batch.frames import (
    RUN_AT_ONCE,
    batch_frame,
    batch_frames,
    lent_views,
    plan_frame,
    session_settings,
    sorted_bytes,
    with_constraints,
)
from tidemill.runtime.batch.limited_rows import limited_rows
from tidemill.runtime.batch.recording import interruptible, recorded, recorded_operators, reported_partitions
from tidemill.runtime.batch.scans import BatchScans
from tidemill.runtime.batch.strategy import AT_ONCE, Strategy, failure_of, run_with_fallback
from tidemill.runtime.job.recording import Seen
from tidemill.runtime.job.request import JobRequest
from tidemill.runtime.spark.batch_frames.frames import TableRows
from tidemill.runtime.spark.batch_frames.relation import Relation, aliased
from tidemill.runtime.spark.failures import translated
from tidemill.runtime.spark.job_groups import grouped
from tidemill.runtime.spark.results import collected, local_rows
from tidemill.runtime.spark.session import time_zone
from tidemill.spark_internals.pipelined import pipelined
from tidemill.types.physical import quote


def run_tasks(
    root: p.PhysicalNode, request: JobRequest, tasks: Callable[[DataFrame], DataFrame]
) -> list[str]:
    """Runs what ``tasks`` makes of the frame of ``root``: the texts in its one column."""
    with interruptible(request) as own:
        frame = tasks(batch_frame(root, own))
        try:
            with grouped(own.application.sparkContext, own.group, own.name):
                return [row[0] for row in frame.collect()]
        except Exception as e:
            raise translated(e, batch=True) from e


def run_query(root: p.PhysicalNode, request: JobRequest) -> pa.Table:
    """The rows of a batch SELECT: the root's columns in order. KeyboardInterrupt after Ctrl-C, once its work
    has ended."""
    with interruptible(request) as own, recorded(root, own) as seen:
        return run_with_fallback(lambda strategy: _rows(root, own, strategy, seen), own, seen)


def _rows(root: p.PhysicalNode, request: JobRequest, strategy: Strategy, seen: Seen) -> pa.Table:
    asked = with_room(lambda: limit_by_portions(root))
    source = None if asked is None else BatchScans.of(request).portioned(asked.scan)
    if asked is None or source is None:
        found = _all_rows(root, BatchScans.of(request), request, strategy, seen)
    else:
        found = limited_rows(
            asked,
            source,
            lambda part, stretch: _all_rows(part, BatchScans.of(request, stretch), request, strategy, seen),
        )
    seen.rows_out.append(found.num_rows)
    return found


def _all_rows(
    root: p.PhysicalNode, scans: BatchScans, request: JobRequest, strategy: Strategy, seen: Seen
) -> pa.Table:
    with lent_views(request, session_settings(root, request, strategy) | RUN_AT_ONCE) as views:
        frame = plan_frame(
            root, request, strategy, views, scans, lambda rows: _collected_columns(rows, root, request)
        )
        try:
            with grouped(request.application.sparkContext, request.group, request.name):
                ran = pipelined(frame, sorted_bytes(root)) if strategy.pipes else frame
                found = collected(ran)
            scans.check_read()
        except Exception as e:
            raise failure_of(e, strategy) from e
        seen.partitions.extend(reported_partitions(frame, root, request))
        seen.operators.extend(recorded_operators(ran, request))
    return found


def constant_rows(root: p.PhysicalNode, request: JobRequest) -> pa.Table:
    """The rows of a SELECT over literal rows (``plan.constants``): mostly without a job, which nobody is told
    of where there is one."""
    with interruptible(request) as own:
        try:
            return _constant_rows(root, own)
        except Exception as e:
            raise translated(e, batch=True) from e


def _constant_rows(root: p.PhysicalNode, request: JobRequest) -> pa.Table:
    with lent_views(request, time_zone(request.zone)) as views:

        def made() -> DataFrame:
            frames = batch_frames(views, _unread, lambda node: None, root, request, AT_ONCE)
            return _collected_columns(frames.rows(root), root, request).frame()

        frame = with_room(made)
        found = local_rows(frame)
        if found is None:
            with grouped(request.application.sparkContext, request.group, request.name):
                found = collected(frame)
        return found


def _unread(node: b.TableSourceScan, sequenced: bool) -> TableRows:
    raise InternalError("a query over literal rows reads a table")


def _collected_columns(rows: Relation, root: p.PhysicalNode, request: JobRequest) -> Relation:
    """What is collected of the rows of ``root``."""
    kept = with_constraints(rows, root, root.fields, request)
    if not request.text:
        return kept
    names = tuple(f.name for f in root.fields)
    texts = [render_sql(quote(f.name), f.type, request.zone) for f in root.fields]
    return kept.select(aliased(texts, names), names)
