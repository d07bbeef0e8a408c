"""A batch INSERT, DELETE, UPDATE or MERGE INTO: everything is staged, then published at once."""

from __future__ import annotations

import uuid
from dataclasses import replace

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from tidemill.changelog.rowkind import INSERT_ONLY, KIND_COLUMN, RowKind
from tidemill.connectors.api import Sink
from tidemill.errors import NotSupportedError
from tidemill.physical.batch import nodes as b
from tidemill.plan import nodes as n
from tidemill.runtime.batch.frames import (
    RUN_AT_ONCE,
    lent_views,
    plan_frame,
    session_settings,
    sorted_bytes,
    with_constraints,
)
from tidemill.runtime.batch.recording import interruptible, recorded, recorded_operators, reported_partitions
from tidemill.runtime.batch.scans import BatchScans
from tidemill.runtime.batch.strategy import Strategy, failure_of, run_with_fallback
from tidemill.runtime.job.recording import Seen
from tidemill.runtime.job.request import JobRequest
from tidemill.runtime.progress import rows_of
from tidemill.runtime.spark.job_groups import grouped, wait_for_tasks
from tidemill.runtime.tables import make_sink
from tidemill.spark_internals.pipelined import pipelined
from tidemill.types.logical import Field
from tidemill.types.physical import quote

_ROWS = "$rows"


def run_insert(sink: b.Sink, request: JobRequest) -> int:
    """Runs a batch INSERT: everything is staged, then published at once; returns the number of tasks. As
    ``query.run_query`` after Ctrl-C, of which a publication under way takes no notice."""
    named = replace(request, group=request.group or uuid.uuid4().hex)
    with interruptible(named) as own, recorded(sink, own) as seen:
        return run_with_fallback(lambda strategy: _insert(sink, own, strategy, seen), own, seen)


def _insert(sink: b.Sink, request: JobRequest, strategy: Strategy, seen: Seen) -> int:
    target = sink.target
    if target.conflict in ("NOTHING", "ERROR"):
        raise NotSupportedError(
            f"ON CONFLICT DO {target.conflict} in batch mode.", hint="It tells which of two rows came first."
        )
    made = make_sink(
        target,
        target.kinds,
        uuid.uuid4().hex,
        request.zone,
        request.shared,
        streaming=False,
        fence=request.fence,
    )
    try:
        staged = _staged(sink, made, request, strategy, seen)
    except Exception as e:
        # Spark ends the tasks of a failed job later than the job.
        wait_for_tasks(request.application.sparkContext, request.group)
        made.discard(1)
        raise failure_of(e, strategy) from e
    except BaseException:
        made.discard(1)
        raise
    made.publish_with(request.application)
    made.publish(1, staged)
    made.finish()
    seen.rows_out.append(sum(map(rows_of, staged)))
    return len(staged)


def _staged(sink: b.Sink, made: Sink, request: JobRequest, strategy: Strategy, seen: Seen) -> list[str]:
    """What each task has left for ``made`` to publish."""
    targets = tuple(Field(c.name, c.type) for c in sink.target.table.written_columns)
    scans = BatchScans.of(request)
    with lent_views(request, session_settings(sink, request, strategy) | RUN_AT_ONCE) as views:
        frame = plan_frame(
            sink, request, strategy, views, scans, lambda rows: with_constraints(rows, sink, targets, request)
        )
        with grouped(request.application.sparkContext, request.group, request.name):
            staging = made.stage(_with_kinds(frame, sink.target), 1)
            ran = pipelined(staging, sorted_bytes(sink)) if strategy.pipes else staging
            staged = ran.collect()
        scans.check_read()
        seen.partitions.extend(reported_partitions(staging, sink, request))
        seen.operators.extend(recorded_operators(ran, request))
    return [row[0] for row in staged]


def _with_kinds(frame: DataFrame, target: n.Sink) -> DataFrame:
    """The rows as the sink takes them. The job fails if two rows of a MERGE have the same key."""
    if target.merges:
        frame = _unique(frame, target)
        return frame.drop(KIND_COLUMN) if target.kinds == INSERT_ONLY else frame
    if target.kinds == INSERT_ONLY:
        return frame
    return frame.withColumn(KIND_COLUMN, F.lit(int(RowKind.DELETE)).cast("tinyint"))


def _unique(frame: DataFrame, target: n.Sink) -> DataFrame:
    keys = [F.col(quote(name)) for name in target.table.primary_key]
    if not keys:
        return frame  # The sink has rules of its own for what is one row, and checks them.
    what = f"MERGE INTO '{target.table.path}': two source rows match or insert the same target row: "
    said = [F.lit(what)]
    for number, (name, key) in enumerate(zip(target.table.primary_key, keys, strict=True)):
        said += [F.lit(f"{', ' * bool(number)}{name} = "), key.cast("string")]
    frame = frame.withColumn(_ROWS, F.count(F.lit(1)).over(Window.partitionBy(*keys)))
    alone = F.col(quote(_ROWS)) == 1
    failure = F.raise_error(F.concat(*said)).cast("boolean")
    # A filter: Spark would leave out a column that nobody reads, and its check.
    return frame.filter(F.when(alone, True).otherwise(failure)).drop(_ROWS)
