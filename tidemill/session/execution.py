"""Starts the job of a statement: a streaming job, or a batch job that runs to its end.

The rows of a streaming SELECT come through a bounded queue, one committed epoch at a time: a slow reader
holds the job back, an abandoned one is cancelled with its result.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from tidemill.catalog.table import CatalogTable
from tidemill.config import execution_options, pipeline_options, table_options
from tidemill.config.emit_options import LATE_ROWS_TABLE
from tidemill.config.option import Configuration
from tidemill.errors import NotSupportedError, StateError, ValidationError
from tidemill.files.file_snapshot import file_snapshot
from tidemill.files.storage import Storage
from tidemill.physical import nodes as p
from tidemill.physical.batch import nodes as b
from tidemill.plan import nodes as n
from tidemill.plan.constants import is_constant, literal_rows
from tidemill.runtime import batch_job, job_start
from tidemill.runtime.checkpoint.evolution import Evolution, backfilled, evolution
from tidemill.runtime.checkpoint.savepoint import Savepoint
from tidemill.runtime.job_identity import job_identity
from tidemill.runtime.job_start import JobRequest
from tidemill.runtime.progress import ExchangesBlocked, FunctionsChanged, JobEvent, StateTakenOver, unheard
from tidemill.runtime.replay.backfill import Backfill, has_same_sinks
from tidemill.runtime.restarts.job import RestartingJob
from tidemill.runtime.restarts.strategy import NoRestart, strategy_of
from tidemill.runtime.running_job import RunningJob
from tidemill.runtime.spark.session import spark_application
from tidemill.session import planning
from tidemill.session.bundles import bundled
from tidemill.session.constant_query import ConstantQuery
from tidemill.session.context import SessionContext
from tidemill.session.job import JobHandle
from tidemill.session.result import StatementKind, TableResult
from tidemill.session.time_zone import zone_of
from tidemill.sql.shown import shown_statement
from tidemill.types.logical import BIGINT, Field
from tidemill.types.physical import arrow_type

QUEUED_EPOCHS = 4
_POLL_SECONDS = 0.05
READS_AHEAD = 2
"""How often a backfill reads the available history while the old job runs; the second read is short."""


def is_batch(context: SessionContext) -> bool:
    """Whether the session plans in batch mode. NotSupportedError for AUTOMATIC, as in Flink's SQL."""
    mode = context.configuration.read(execution_options.RUNTIME_MODE).upper()
    if mode == "AUTOMATIC":
        raise NotSupportedError(
            f"Unsupported mode '{mode}' for '{execution_options.RUNTIME_MODE.key}'. Only an explicit BATCH "
            "mode or STREAMING mode is supported currently."
        )
    return mode == "BATCH"


def run_query(context: SessionContext, plan: n.LogicalNode) -> TableResult:
    """Runs a SELECT. In batch mode the result is complete on return; in streaming mode rows arrive per
    epoch."""
    optimized = planning.optimized(plan)
    if is_batch(context):
        rows_without_job = _literal_table(context, optimized)
        if rows_without_job is not None:
            return _result(context, plan.fields, iter((rows_without_job,)), None, changelog=False)
        run = batch_job.constant_rows if is_constant(optimized) else batch_job.run_query
        with file_snapshot():
            table = run(planning.batch(context, optimized), job_request(context, "select"))
        return _result(context, plan.fields, iter((table,)), None, changelog=False)
    config = bundled(context.configuration, [plan])
    node = planning.physical(config, optimized)
    place = _next_directory(context) if context.place_job is None else ""
    if not place and is_constant(optimized):
        return _constant(context, optimized, config)
    request = replace(job_request(context, "select", place), config=config)
    rows = EpochRows()
    job = QueryJob(rows=rows, job=job_start.start_query(node, rows.put, request))
    return _result(context, plan.fields, job.epochs(), job, changelog=True)


def _constant(context: SessionContext, plan: n.LogicalNode, config: Configuration) -> TableResult:
    """A streaming SELECT over literal rows: a finite result of inserts, in order."""
    rows_without_job = _literal_table(context, plan)
    if rows_without_job is None:
        request = replace(job_request(context, "select"), config=config)
        compute = partial(batch_job.constant_rows, planning.batch(context, plan), request)
    else:
        compute = partial(_same, rows_without_job)
    query = ConstantQuery(name=config.read(pipeline_options.NAME) or "select", compute=compute)
    return _result(context, plan.fields, query.tables(), query, changelog=True)


def _literal_table(context: SessionContext, plan: n.LogicalNode) -> pa.Table | None:
    """The rows of an optimised plan of literals, without Spark; None if Spark must compute them."""
    if context.rendered or not is_constant(plan):
        return None
    zone_of(context.time_zone)  # refuses a zone that does not exist
    rows = literal_rows(plan)
    if rows is None:
        return None
    columns = [
        pa.array([row[place] for row in rows], arrow_type(field.type))
        for place, field in enumerate(plan.fields)
    ]
    return pa.Table.from_arrays(columns, names=[field.name for field in plan.fields])


def _same(rows: pa.Table) -> pa.Table:
    return rows


@contextmanager
def in_mode(context: SessionContext, mode: str) -> Iterator[None]:
    """Within the context, the session plans in this runtime mode."""
    before = context.configuration
    context.configuration = before.with_value(execution_options.RUNTIME_MODE.key, mode)
    try:
        yield
    finally:
        context.configuration = before


def run_inserts(context: SessionContext, sinks: Sequence[n.Sink], *, waits: bool = True) -> TableResult:
    """Runs INSERTs as one job. In batch mode they have ended on return. In streaming mode the job has
    started; with ``waits`` and ``table.dml-sync`` it has ended."""
    names = [str(sink.table.path) for sink in sinks]
    name = "insert-into_" + ",".join(names)
    fields = tuple(Field(name, BIGINT) for name in dict.fromkeys(names))
    if is_batch(context):
        for sink in sinks:
            with file_snapshot():
                batch_job.run_insert(_batch_insert(context, sink), job_request(context, name))
        return _inserted(context, fields, None)
    place = (context.place_job or partial(_next_directory, context))()
    start = starter(context, sinks, name, place)
    strategy = strategy_of(start.request.config) if place else NoRestart()
    job = RestartingJob.follow(start(), start, strategy, start.request.on_event)
    context.jobs.add(job)
    context.on_job(job)
    result = _inserted(context, fields, job)
    if waits and context.configuration.read(table_options.DML_SYNC):
        job.wait()
    return result


def alter_job(context: SessionContext, job: RestartingJob, sinks: Sequence[n.Sink]) -> None:
    """Replaces the query of the running ``job`` by the INSERTs ``sinks`` after its epoch, with its state;
    with a backfill, as if they had run from the beginning. If the state does not fit, it raises StateError
    and the job continues unchanged."""
    state_evolution = state_under(context, sinks, job.directory)
    start = starter(context, sinks, job.name, job.directory)
    former_start = job.restart
    assert isinstance(former_start, job_start.InsertsStart)
    if is_backfilled(context) and not (state_evolution.is_same and has_same_sinks(former_start, start)):
        _backfill(job, Backfill.of(former_start, start))
        changes = tuple(map(str, backfilled(state_evolution).changes))
        start.request.on_event(StateTakenOver(job_id=job.job_id, changes=changes))
    else:
        _check_kept(context, state_evolution, job)
        job.alter(start)
    context.on_altered(job)


def _check_kept(context: SessionContext, state_evolution: Evolution, job: RestartingJob) -> None:
    drops = context.configuration.read(execution_options.IGNORE_UNCLAIMED)
    try:
        state_evolution.check(f"the state of job {job.job_id}", drops=drops)
    except StateError as e:
        option = execution_options.EVOLUTION.key
        e.hint += f" With '{option}' = 'backfill' the query is computed from the beginning of its sources."
        raise


def _backfill(job: RestartingJob, backfill: Backfill) -> None:
    """Reads most of the job's history while the job runs, then switches it to the new query."""
    try:
        for _ in range(READS_AHEAD):
            resting_job = job.rest()
            resting_job.rested.set()
            resting_job.release()
            backfill.ahead(resting_job.commit)
        job.alter(backfill.wanted, backfill.switch)
    except BaseException:
        backfill.drop()
        raise


def is_backfilled(context: SessionContext) -> bool:
    return context.configuration.read(execution_options.EVOLUTION) == "backfill"


def state_under(context: SessionContext, plans: Sequence[n.LogicalNode], place: str) -> Evolution:
    """How the state in the directory ``place``, a savepoint or a job's checkpoint, changes if a job of these
    plans resumes from it. StateError if there is no state."""
    config = bundled(context.configuration, plans)
    savepoint = Savepoint.open(Storage.configured(place, config))
    roots = planning.physical_job(config, [planning.optimized(plan) for plan in plans])
    names = job_start.state_names(savepoint.identity, savepoint.commit)
    zone = context.time_zone
    _, compiled = job_start.unread_job(roots, config, frames=context.frames, zone=zone, names=names)
    return evolution(savepoint.identity, job_identity(roots, compiled, "", savepoint.identity.rules))


def starter(
    context: SessionContext, sinks: Sequence[n.Sink], name: str, place: str = ""
) -> job_start.InsertsStart:
    """The start of INSERTs as one streaming job, with its state in ``place``."""
    config = bundled(context.configuration, sinks)
    planned = planning.physical_job(config, [_optimized(s) for s in sinks])
    request = replace(job_request(context, name, place), config=config)
    roots = [node for node in planned if isinstance(node, p.Sink)]
    return job_start.InsertsStart(roots, request)


def frame(context: SessionContext, plan: n.LogicalNode) -> DataFrame:
    """The plan as a lazy batch frame."""
    with file_snapshot():
        root = planning.batch(context, planning.optimized(plan))
        return batch_job.batch_frame(root, job_request(context, "frame"))


def application(context: SessionContext) -> SparkSession:
    """The process's Spark application, started on first use."""
    return spark_application(context.configuration)


def _batch_insert(context: SessionContext, sink: n.Sink) -> b.Sink:
    planned = planning.batch(context, _optimized(sink))
    assert isinstance(planned, b.Sink)
    return planned


def _optimized(sink: n.Sink) -> n.Sink:
    optimized = planning.optimized(sink)
    assert isinstance(optimized, n.Sink)
    return optimized


def job_request(context: SessionContext, name: str, checkpoint_directory: str = "") -> JobRequest:
    """The request to start a job of this session."""
    config = context.configuration
    zone_of(context.time_zone)  # refuses a zone that does not exist, in terms of our option
    on_progress = context.on_progress
    on_event: Callable[[JobEvent], None] = partial(_warn_and_forward, context)
    if context.history is not None:
        on_progress, on_event = context.history.beside(on_progress, on_event)
    return JobRequest(
        application=application(context),
        config=config,
        frames=context.frames,
        name=config.read(pipeline_options.NAME) or name,
        statement=shown_statement(context.statement),
        zone=context.time_zone,
        text=context.rendered,
        group=context.work,
        checkpoint_directory=checkpoint_directory,
        recorded=context.history is not None and context.history.keeps,
        heard=context.history is not None or context.on_event is not unheard,
        on_progress=on_progress,
        on_event=on_event,
        fault=context.fault,
        clock=context.clock,
        fence=context.permissions.fence,
        late_table=None if is_batch(context) else _late_table(context),
    )


def _warn_and_forward(context: SessionContext, event: JobEvent) -> None:
    if isinstance(event, ExchangesBlocked | FunctionsChanged | StateTakenOver):
        context.warn(event.text)
    context.on_event(event)


def _late_table(context: SessionContext) -> CatalogTable | None:
    """The table for late rows. ValidationError if the option names a table that does not exist."""
    name = context.configuration.read(LATE_ROWS_TABLE)
    if not name:
        return None
    table = context.resolve(context.catalogs.qualify(tuple(name.split("."))))
    if not isinstance(table, CatalogTable):
        raise ValidationError(f"'{LATE_ROWS_TABLE.key}': there is no table '{name}'")
    context.check_table(table, table.options, None)
    return table


def _next_directory(context: SessionContext) -> str:
    """The checkpoint directory of the next streaming job; '' for a temporary directory.

    The first job of a session uses the configured directory, the others ``job-2``, ``job-3``... below it. So
    a script that runs again finds the directory of each of its jobs.
    """
    directory = context.configuration.read(execution_options.CHECKPOINT_DIRECTORY)
    if not directory:
        return ""
    number = context.jobs_in[directory] = context.jobs_in.get(directory, 0) + 1
    return directory if number == 1 else f"{directory.rstrip('/')}/job-{number}"


def _result(
    context: SessionContext,
    fields: tuple[Field, ...],
    tables: Iterator[pa.Table],
    job: JobHandle | None,
    *,
    changelog: bool,
) -> TableResult:
    return TableResult(
        kind=StatementKind.QUERY,
        fields=fields,
        tables=tables,
        zone=context.zone,
        changelog=changelog,
        rendered=context.rendered,
        job=job,
        max_width=context.configuration.read(table_options.MAX_COLUMN_WIDTH),
    )


def _inserted(context: SessionContext, fields: tuple[Field, ...], job: JobHandle | None) -> TableResult:
    return TableResult(kind=StatementKind.INSERT, fields=fields, rows=(), zone=context.zone, job=job)


@dataclass(slots=True, kw_only=True)
class EpochRows:
    """A bounded queue of committed epochs between the job's thread and the reader's."""

    closed: threading.Event = field(default_factory=threading.Event)
    _epochs: queue.Queue[pa.Table] = field(default_factory=lambda: queue.Queue(QUEUED_EPOCHS))

    def put(self, epoch: int, rows: pa.Table) -> None:
        """Adds an epoch. Waits while the reader is ``QUEUED_EPOCHS`` behind; drops the rows if it has
        gone."""
        while not self.closed.is_set():
            try:
                return self._epochs.put(rows, timeout=_POLL_SECONDS)
            except queue.Full:
                continue

    def take(self, *, wait: bool) -> pa.Table | None:
        """The next epoch's rows; None if there are none (yet)."""
        try:
            return self._epochs.get(timeout=_POLL_SECONDS) if wait else self._epochs.get_nowait()
        except queue.Empty:
            return None


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryJob:
    """A running SELECT: its job and the rows that come from it."""

    rows: EpochRows
    job: RunningJob

    @property
    def job_id(self) -> str:
        return self.job.job_id

    @property
    def name(self) -> str:
        return self.job.name

    @property
    def status(self) -> str:
        return self.job.status

    def is_running(self) -> bool:
        return self.job.is_running()

    def wait(self, timeout: float | None = None) -> None:
        self.job.wait(timeout)

    def stop(self) -> None:
        """Stops after the current epoch, whose rows still arrive."""
        self.job.stop()

    def cancel(self) -> None:
        self.rows.closed.set()
        self.job.cancel()

    def abort(self) -> None:
        self.rows.closed.set()
        self.job.abort()

    def stop_with_savepoint(self, directory: str, *, drain: bool = False) -> str:
        raise NotSupportedError("Savepoints of queries are not supported: only INSERTs keep their state.")

    def create_savepoint(self, directory: str = "", *, path: str = "") -> str:
        raise NotSupportedError("Savepoints of queries are not supported: only INSERTs keep their state.")

    def epochs(self) -> Iterator[pa.Table]:
        """The rows of each epoch, until the job ends. Raises the job's error after the committed rows."""
        while True:
            running = self.job.is_running()
            epoch = self.rows.take(wait=running)
            if epoch is not None:
                yield epoch
            elif not running:
                return self.job.wait()
