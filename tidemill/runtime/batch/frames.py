"""A batch plan as a lazy frame of Spark, in a session with the settings that it needs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial

from pyspark.sql import DataFrame

from tidemill.config.batch_options import DYNAMIC_FILTERING
from tidemill.deep_calls import with_room
from tidemill.errors import TidemillError
from tidemill.physical import nodes as p
from tidemill.physical.batch.volumes import exchanged_bytes
from tidemill.physical.tree import walk
from tidemill.runtime.batch.scans import BatchScans
from tidemill.runtime.batch.strategy import PIPELINED, SURELY, Strategy, asks_for_pipes
from tidemill.runtime.compile.constraints import constraints
from tidemill.runtime.job.request import JobRequest, parallelism
from tidemill.runtime.spark.adaptive import NOTHING_SENT, batch_settings
from tidemill.runtime.spark.batch_frames.existence import BESIDE_UNIONS, asks
from tidemill.runtime.spark.batch_frames.frames import BatchFrames, GroupedRows, ScanRows
from tidemill.runtime.spark.batch_frames.relation import Relation, Views, aliased
from tidemill.runtime.spark.batch_frames.sharing import Sharing
from tidemill.runtime.spark.failures import translated
from tidemill.runtime.spark.session import give_back, job_session, lent_session, time_zone, unless_given
from tidemill.spark_internals.pipelined import PIPELINED_SETTINGS, NotPipelined, tasks_at_once
from tidemill.types.logical import Field

RUN_AT_ONCE = {
    # Or each frame leaves a mark on the plan that it is of, and those that are kept are used again and again.
    "spark.sql.analyzer.failAmbiguousSelfJoin": "false",
}
"""Spark's settings of frames that nobody else gets to see."""
PIPED = "PIPELINED"
"""How EXPLAIN begins to say that exchanges are."""


def batch_frame(root: p.PhysicalNode, request: JobRequest, strategy: Strategy = SURELY) -> DataFrame:
    """The lazy frame of ``root``, in a Spark session of its own, and with columns of its own: two frames of
    one query can be joined."""
    settings = session_settings(root, request, strategy)
    spark = job_session(request.application, settings=settings)
    views = Views(spark=spark, settings=settings)
    return plan_frame(root, request, strategy, views, BatchScans.of(request))


def session_settings(root: p.PhysicalNode, request: JobRequest, strategy: Strategy) -> dict[str, str]:
    """Spark's, of the job's session."""
    volume = with_room(lambda: exchanged_bytes(root, request.config.read(DYNAMIC_FILTERING)))
    chosen = batch_settings(request.config, parallelism(request), volume)
    chosen |= BESIDE_UNIONS if asks(root) else {}
    found = unless_given(request.application, chosen) | time_zone(request.zone)
    return found | ({} if strategy.sends else NOTHING_SENT) | (PIPELINED_SETTINGS if strategy.pipes else {})


@contextmanager
def lent_views(request: JobRequest, settings: Mapping[str, str]) -> Iterator[Views]:
    """Within, the parts of what is run at once have their names."""
    spark = lent_session(request.application, settings=settings)
    views = Views(spark=spark, settings=settings)
    yield views
    if not views.has_frames:
        give_back(spark, settings=settings, has_views=views.has_views)


def plan_frame(
    root: p.PhysicalNode,
    request: JobRequest,
    strategy: Strategy,
    views: Views,
    scans: BatchScans,
    transform: Callable[[Relation], Relation] | None = None,
) -> DataFrame:
    """The rows of ``root``. ``transform``: what is made of them, to run at once; nobody else gets to see the
    frame's columns. None for a frame that others use."""

    def made() -> DataFrame:
        read, in_parts = partial(scans.rows, views.spark), partial(scans.grouped, views.spark)
        frames = batch_frames(views, read, in_parts, root, request, strategy)
        rows = frames.rows(root)
        if transform is None:
            return rows.frame()
        found = transform(rows)
        return found.known_frame() if frames.sharing.is_stable(root) else found.frame()

    try:
        return with_room(made)
    except Exception as e:
        raise translated(e, batch=True) from e


def batch_frames(
    views: Views,
    scan: ScanRows,
    grouped: GroupedRows,
    root: p.PhysicalNode,
    request: JobRequest,
    strategy: Strategy,
) -> BatchFrames:
    return BatchFrames(
        views=views,
        scan=scan,
        grouped=grouped,
        given=request.frames,
        zone=request.zone,
        sharing=Sharing.of(root),
        quick=strategy.quick,
        sends=strategy.sends,
        fence=request.fence,
    )


def shuffle_mode(root: p.PhysicalNode, request: JobRequest) -> str:
    """How the exchanges of ``root`` would run now, and why no other way; '' where tables cannot be read.
    Runs nothing."""
    if not asks_for_pipes(request):
        return "BLOCKING"
    try:
        tasks = tasks_at_once(batch_frame(root, request, PIPELINED), sorted_bytes(root))
        return f"{PIPED}: {tasks} tasks at once"
    except NotPipelined as e:
        return f"BLOCKING: {e}"
    except TidemillError:
        return ""


def sorted_bytes(root: p.PhysicalNode) -> int | None:
    """How many bytes all rows have at most that are put in order; None where nobody knows."""
    sizes = [node.input.most for node in walk(root) if isinstance(node, p.Sort)]
    return None if None in sizes else sum(size for size in sizes if size is not None)


def with_constraints(
    rows: Relation, root: p.PhysicalNode, targets: tuple[Field, ...], request: JobRequest
) -> Relation:
    """``rows`` that fail or leave out a row where a column of ``targets`` does not take its value."""
    names = tuple(f.name for f in root.fields)
    check = constraints(root, names, targets, request.config)
    if check is None:
        return rows
    where = "" if check.condition is None else f"WHERE {check.condition}"
    return rows.select(aliased(list(map(check.expression, names)), names), names, where)
