"""Batch mode: a batch plan in, one Spark job out, with adaptive execution or with pipelined exchanges."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeVar

import pyarrow as pa
from pyspark.sql import DataFrame

from tidemill.config.batch_options import BLOCKING, DYNAMIC_FILTERING, SHUFFLE_MODE
from tidemill.connectors.api import Sink
from tidemill.connectors.grouping import UNLIKE
from tidemill.deep_calls import with_room
from tidemill.errors import (
    ExecutionError,
    InternalError,
    LostDriverError,
    LostProcessError,
    NotSupportedError,
    TidemillError,
)
from tidemill.functions.decimal_sums import RAN_OVER
from tidemill.functions.render import render_sql
from tidemill.interrupts import can_be_heard, ended_by_interrupt
from tidemill.physical import nodes as p
from tidemill.physical.batch import nodes as b
from tidemill.physical.batch.portions import limit_by_portions
from tidemill.physical.batch.view.flink_view import flink_view
from tidemill.physical.batch.volumes import exchanged_bytes
from tidemill.physical.tree import walk
from tidemill.runtime.batch_scans import BatchScans
from tidemill.runtime.compile.constraints import constraints
from tidemill.runtime.job.plan import batch_plan
from tidemill.runtime.job.recording import Recording, Seen
from tidemill.runtime.job.request import JobRequest, parallelism
from tidemill.runtime.limited_rows import limited_rows
from tidemill.runtime.progress import ExchangesBlocked, PartitionsRead, rows_of
from tidemill.runtime.row_changes import with_kinds
from tidemill.runtime.spark.adaptive import NOTHING_SENT, batch_settings
from tidemill.runtime.spark.batch_frames.existence import BESIDE_UNIONS, asks
from tidemill.runtime.spark.batch_frames.frames import BatchFrames, GroupedRows, ScanRows, TableRows
from tidemill.runtime.spark.batch_frames.relation import Relation, Views, aliased
from tidemill.runtime.spark.batch_frames.sharing import Sharing
from tidemill.runtime.spark.failures import SENT_TOO_MUCH, full_text, translated
from tidemill.runtime.spark.job_groups import give_up, grouped, wait_for_tasks, was_given_up
from tidemill.runtime.spark.plan_records import operator_rows, partitions_read
from tidemill.runtime.spark.results import collected, local_rows
from tidemill.runtime.spark.session import give_back, job_session, lent_session, time_zone, unless_given
from tidemill.runtime.stage_runs import OperatorRows
from tidemill.runtime.tables import make_sink
from tidemill.spark_internals.errors import JavaError
from tidemill.spark_internals.pipelined import (
    PIPELINED_SETTINGS,
    NothingExchanged,
    NotPipelined,
    pipelined,
    tasks_at_once,
    why_not,
)
from tidemill.types.logical import Field
from tidemill.types.physical import quote

_LOGGER = logging.getLogger("tidemill.history")

Found = TypeVar("Found")


@dataclass(frozen=True, slots=True)
class Way:
    """``quick``: the job may fail without need; ``sends``: sides of its joins may be sent to every task;
    ``pipes``: its exchanges are pipelined."""

    quick: bool
    sends: bool = True
    pipes: bool = False


AT_ONCE, SURELY, UNSENT = Way(quick=True), Way(quick=False), Way(quick=False, sends=False)
PIPELINED = Way(quick=True, pipes=True)
RUN_AT_ONCE = {
    # Or each frame leaves a mark on the plan that it is of, and those that are kept are used again and again.
    "spark.sql.analyzer.failAmbiguousSelfJoin": "false",
}
"""Spark's settings of frames that nobody else gets to see."""
PIPED = "PIPELINED"
"""How EXPLAIN begins to say that exchanges are."""


def batch_frame(root: p.PhysicalNode, request: JobRequest, way: Way = SURELY) -> DataFrame:
    """The lazy frame of ``root``, in a Spark session of its own, and with columns of its own: two frames of
    one query can be joined."""
    settings = _settings(root, request, way)
    spark = job_session(request.application, settings=settings)
    views = Views(spark=spark, settings=settings)
    return _frame_of(root, request, way, views, BatchScans.of(request))


def run_tasks(
    root: p.PhysicalNode, request: JobRequest, tasks: Callable[[DataFrame], DataFrame]
) -> list[str]:
    """Runs what ``tasks`` makes of the frame of ``root``: the texts in its one column."""
    with _interruptible(request) as own:
        frame = tasks(batch_frame(root, own))
        try:
            with grouped(own.application.sparkContext, own.group, own.name):
                return [row[0] for row in frame.collect()]
        except Exception as e:
            raise translated(e, batch=True) from e


def _settings(root: p.PhysicalNode, request: JobRequest, way: Way) -> dict[str, str]:
    """Spark's, of the job's session."""
    volume = with_room(lambda: exchanged_bytes(root, request.config.read(DYNAMIC_FILTERING)))
    chosen = batch_settings(request.config, parallelism(request), volume)
    chosen |= BESIDE_UNIONS if asks(root) else {}
    found = unless_given(request.application, chosen) | time_zone(request.zone)
    return found | ({} if way.sends else NOTHING_SENT) | (PIPELINED_SETTINGS if way.pipes else {})


@contextmanager
def _views(request: JobRequest, settings: Mapping[str, str]) -> Iterator[Views]:
    """Within, the parts of what is run at once have their names."""
    spark = lent_session(request.application, settings=settings)
    views = Views(spark=spark, settings=settings)
    yield views
    if not views.has_frames:
        give_back(spark, settings=settings, has_views=views.has_views)


def _frame_of(
    root: p.PhysicalNode,
    request: JobRequest,
    way: Way,
    views: Views,
    scans: BatchScans,
    shown: Callable[[Relation], Relation] | None = None,
) -> DataFrame:
    """The rows of ``root``. ``shown``: what is made of them, to run at once; nobody else gets to see the
    frame's columns. None for a frame that others use."""

    def made() -> DataFrame:
        read, in_parts = partial(scans.rows, views.spark), partial(scans.grouped, views.spark)
        frames = _frames(views, read, in_parts, root, request, way)
        rows = frames.rows(root)
        if shown is None:
            return rows.frame()
        found = shown(rows)
        return found.known_frame() if frames.sharing.is_stable(root) else found.frame()

    try:
        return with_room(made)
    except Exception as e:
        raise translated(e, batch=True) from e


def _frames(
    views: Views,
    scan: ScanRows,
    grouped: GroupedRows,
    root: p.PhysicalNode,
    request: JobRequest,
    way: Way,
) -> BatchFrames:
    return BatchFrames(
        views=views,
        scan=scan,
        grouped=grouped,
        given=request.frames,
        zone=request.zone,
        sharing=Sharing.of(root),
        quick=way.quick,
        sends=way.sends,
        fence=request.fence,
    )


def run_query(root: p.PhysicalNode, request: JobRequest) -> pa.Table:
    """The rows of a batch SELECT: the root's columns in order. KeyboardInterrupt after Ctrl-C, once its work
    has ended."""
    with _interruptible(request) as own, _recorded(root, own) as seen:
        return _run(lambda way: _rows(root, own, way, seen), own, seen)


def run_insert(sink: b.Sink, request: JobRequest) -> int:
    """Runs a batch INSERT: everything is staged, then published at once; returns the number of tasks. As
    ``run_query`` after Ctrl-C, of which a publication under way takes no notice."""
    named = replace(request, group=request.group or uuid.uuid4().hex)
    with _interruptible(named) as own, _recorded(sink, own) as seen:
        return _run(lambda way: _insert(sink, own, way, seen), own, seen)


@contextmanager
def _interruptible(request: JobRequest) -> Iterator[JobRequest]:
    """The request with a group that Ctrl-C gives up, where this thread hears of it."""
    if not can_be_heard():
        yield request
        return
    named = replace(request, group=request.group or uuid.uuid4().hex)
    with ended_by_interrupt(lambda: give_up(request.application.sparkContext, named.group)):
        yield named


@contextmanager
def _recorded(root: p.PhysicalNode, request: JobRequest) -> Iterator[Seen]:
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


def _run(job: Callable[[Way], Found], request: JobRequest, seen: Seen) -> Found:
    """What a job gives with pipelined exchanges if that is asked for and can be, else with blocking ones."""
    if not asks_for_pipes(request):
        return _blocking(job)
    try:
        return job(PIPELINED)
    except LostDriverError:
        raise
    except (NotPipelined, LostProcessError) as e:
        if not (isinstance(e, NothingExchanged) or was_given_up(request.group)):
            _tell_blocked(e, request, seen)
    except ExecutionError as e:
        if _other_way(e) is None:
            raise
    return _blocking(job)


def _tell_blocked(error: Exception, request: JobRequest, seen: Seen) -> None:
    reason = str(error) if isinstance(error, NotPipelined) else "a process of Spark's was lost"
    blocked = ExchangesBlocked(job_id=request.name, reason=reason)
    seen.notes.append(blocked.text)
    request.on_event(blocked)


def _blocking(job: Callable[[Way], Found]) -> Found:
    """What a job gives at once; where a sum ran over, a side of a join was too large to be sent to all, or a
    database has values that it cannot aggregate as we do, what one gives that takes its time."""
    try:
        return job(AT_ONCE)
    except ExecutionError as e:
        again = _other_way(e)
        if again is None:
            raise
    return job(again)


def _other_way(error: ExecutionError) -> Way | None:
    return next((way for text, way in _AGAIN.items() if text in str(error)), None)


_AGAIN = {RAN_OVER: SURELY, UNLIKE: SURELY, SENT_TOO_MUCH: UNSENT}


def asks_for_pipes(request: JobRequest) -> bool:
    return request.config.read(SHUFFLE_MODE).upper() != BLOCKING


def shuffle_mode(root: p.PhysicalNode, request: JobRequest) -> str:
    """How the exchanges of ``root`` would run now, and why no other way; '' where tables cannot be read.
    Runs nothing."""
    if not asks_for_pipes(request):
        return "BLOCKING"
    try:
        return f"{PIPED}: {tasks_at_once(batch_frame(root, request, PIPELINED), _sorted(root))} tasks at once"
    except NotPipelined as e:
        return f"BLOCKING: {e}"
    except TidemillError:
        return ""


def _sorted(root: p.PhysicalNode) -> int | None:
    """How many bytes all rows have at most that are put in order; None where nobody knows."""
    sizes = [node.input.most for node in walk(root) if isinstance(node, p.Sort)]
    return None if None in sizes else sum(size for size in sizes if size is not None)


def _rows(root: p.PhysicalNode, request: JobRequest, way: Way, seen: Seen) -> pa.Table:
    asked = with_room(lambda: limit_by_portions(root))
    source = None if asked is None else BatchScans.of(request).portioned(asked.scan)
    if asked is None or source is None:
        found = _all_rows(root, BatchScans.of(request), request, way, seen)
    else:
        found = limited_rows(
            asked,
            source,
            lambda part, stretch: _all_rows(part, BatchScans.of(request, stretch), request, way, seen),
        )
    seen.rows_out.append(found.num_rows)
    return found


def _all_rows(root: p.PhysicalNode, scans: BatchScans, request: JobRequest, way: Way, seen: Seen) -> pa.Table:
    with _views(request, _settings(root, request, way) | RUN_AT_ONCE) as views:
        frame = _frame_of(root, request, way, views, scans, lambda rows: _shown(rows, root, request))
        try:
            with grouped(request.application.sparkContext, request.group, request.name):
                ran = pipelined(frame, _sorted(root)) if way.pipes else frame
                found = collected(ran)
            scans.check_read()
        except Exception as e:
            raise _failure(e, way) from e
        seen.partitions.extend(_told_partitions(frame, root, request))
        seen.operators.extend(_operators(ran, request))
    return found


def _failure(error: Exception, way: Way) -> Exception:
    """What ``error`` of Spark's stands for."""
    if isinstance(error, NotPipelined):
        return error
    reason = why_not(full_text(error)) if way.pipes else ""
    return NotPipelined(reason) if reason else translated(error, batch=True)


def constant_rows(root: p.PhysicalNode, request: JobRequest) -> pa.Table:
    """The rows of a SELECT over literal rows (``plan.constants``): mostly without a job, which nobody is told
    of where there is one."""
    with _interruptible(request) as own:
        try:
            return _constant_rows(root, own)
        except Exception as e:
            raise translated(e, batch=True) from e


def _constant_rows(root: p.PhysicalNode, request: JobRequest) -> pa.Table:
    with _views(request, time_zone(request.zone)) as views:

        def made() -> DataFrame:
            frames = _frames(views, _unread, lambda node: None, root, request, AT_ONCE)
            return _shown(frames.rows(root), root, request).frame()

        frame = with_room(made)
        found = local_rows(frame)
        if found is None:
            with grouped(request.application.sparkContext, request.group, request.name):
                found = collected(frame)
        return found


def _unread(node: b.TableSourceScan, sequenced: bool) -> TableRows:
    raise InternalError("a query over literal rows reads a table")


def _shown(rows: Relation, root: p.PhysicalNode, request: JobRequest) -> Relation:
    """What is collected of the rows of ``root``."""
    kept = _enforcing(rows, root, root.fields, request)
    if not request.text:
        return kept
    names = tuple(f.name for f in root.fields)
    texts = [render_sql(quote(f.name), f.type, request.zone) for f in root.fields]
    return kept.select(aliased(texts, names), names)


def _operators(frame: DataFrame, request: JobRequest) -> tuple[OperatorRows, ...]:
    """A job never fails for its record."""
    if not request.recorded:
        return ()
    try:
        return operator_rows(frame)
    except JavaError:
        _LOGGER.warning("the rows of Spark's operators could not be read", exc_info=True)
        return ()


def _told_partitions(frame: DataFrame, root: p.PhysicalNode, request: JobRequest) -> list[PartitionsRead]:
    reads = (node.table for node in walk(root) if isinstance(node, b.TableSourceScan))
    if not (request.heard and any(table.partitioned_by for table in reads)):
        return []
    found = partitions_read(frame, request.name)
    for event in found:
        request.on_event(event)
    return found


def _insert(sink: b.Sink, request: JobRequest, way: Way, seen: Seen) -> int:
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
        staged = _staged(sink, made, request, way, seen)
    except Exception as e:
        # Spark ends the tasks of a failed job later than the job.
        wait_for_tasks(request.application.sparkContext, request.group)
        made.discard(1)
        raise _failure(e, way) from e
    except BaseException:
        made.discard(1)
        raise
    made.publish_with(request.application)
    made.publish(1, staged)
    made.finish()
    seen.rows_out.append(sum(map(rows_of, staged)))
    return len(staged)


def _staged(sink: b.Sink, made: Sink, request: JobRequest, way: Way, seen: Seen) -> list[str]:
    """What each task has left for ``made`` to publish."""
    targets = tuple(Field(c.name, c.type) for c in sink.target.table.written_columns)
    scans = BatchScans.of(request)
    with _views(request, _settings(sink, request, way) | RUN_AT_ONCE) as views:
        frame = _frame_of(
            sink, request, way, views, scans, lambda rows: _enforcing(rows, sink, targets, request)
        )
        with grouped(request.application.sparkContext, request.group, request.name):
            staging = made.stage(with_kinds(frame, sink.target), 1)
            ran = pipelined(staging, _sorted(sink)) if way.pipes else staging
            staged = ran.collect()
        scans.check_read()
        seen.partitions.extend(_told_partitions(staging, sink, request))
        seen.operators.extend(_operators(ran, request))
    return [row[0] for row in staged]


def _enforcing(
    rows: Relation, root: p.PhysicalNode, targets: tuple[Field, ...], request: JobRequest
) -> Relation:
    names = tuple(f.name for f in root.fields)
    check = constraints(root, names, targets, request.config)
    if check is None:
        return rows
    where = "" if check.condition is None else f"WHERE {check.condition}"
    return rows.select(aliased(list(map(check.expression, names)), names), names, where)
