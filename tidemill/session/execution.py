"""Starts the job of a statement: a streaming job, or a batch job that runs to its end.

The rows of a streaming SELECT come through a bounded queue, one committed epoch at a time: a slow reader
holds the job back, an abandoned one is cancelled with its result.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from functools import partial

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from tidemill.catalog.table import CatalogTable
from tidemill.config import execution_options, pipeline_options
from tidemill.config.emit_options import LATE_ROWS_TABLE
from tidemill.config.epoch_options import RESIDENT
from tidemill.connectors.registry import connector
from tidemill.errors import NotSupportedError, TidemillError, ValidationError
from tidemill.files.file_snapshot import file_snapshot
from tidemill.physical import nodes as p
from tidemill.plan import nodes as n
from tidemill.plan.constants import is_constant
from tidemill.plan.optimizer import optimize
from tidemill.runtime.batch import query as batch_query
from tidemill.runtime.batch.frames import batch_frame
from tidemill.runtime.events import (
    ExchangesBlocked,
    FunctionsChanged,
    JobAudited,
    JobEvent,
    StateTakenOver,
    unheard,
)
from tidemill.runtime.job.request import JobRequest
from tidemill.runtime.job.running import RunningJob
from tidemill.runtime.job.start import InsertsStart, start_query
from tidemill.runtime.spark.session import spark_application
from tidemill.session import binding, planning
from tidemill.session.constant_query import constant_result
from tidemill.session.context import SessionContext
from tidemill.session.jobs.kept_query import kept_query
from tidemill.session.mode import is_batch
from tidemill.session.planning import bundled
from tidemill.session.result import TableResult, query_result
from tidemill.session.time_zone import zone_of
from tidemill.sql import statements as s
from tidemill.sql.parser import parse_statement
from tidemill.sql.redaction import redacted_statement
from tidemill.types.physical import quote

QUEUED_EPOCHS = 4
_POLL_SECONDS = 0.05
_LAST_SECONDS = 3.0
"""How long Ctrl-C waits for the end of an epoch; a second Ctrl-C does not."""


def run_query(context: SessionContext, plan: n.LogicalNode, optimized: n.LogicalNode) -> TableResult:
    """Runs the SELECT of a bound ``plan`` and the same plan ``optimized``."""
    if is_batch(context):
        run = batch_query.constant_rows if is_constant(optimized) else batch_query.run_query
        with file_snapshot():
            table = run(planning.batch(context, optimized), job_request(context, "select"))
        return query_result(context, plan.fields, iter((table,)))
    config = bundled(context.configuration, [plan])
    node = planning.physical(config, optimized)
    with own_directory(context) if context.place_job is None else nullcontext("") as place:
        request = replace(job_request(context, "select", place), config=config)
        if not place and is_constant(optimized):
            compute = partial(batch_query.constant_rows, planning.batch(context, optimized), request)
            return constant_result(context, plan.fields, compute)
        rows = EpochRows()
        job = QueryJob(rows=rows, job=start_query(node, rows.put, request))
    return query_result(context, plan.fields, job.epochs(), job, changelog=True)


def starter(
    context: SessionContext,
    sinks: Sequence[n.Sink],
    name: str,
    place: str = "",
    written: Sequence[s.Insert] = (),
) -> InsertsStart:
    """The start of INSERTs as one streaming job, with its state in ``place``. ``written``: the statements,
    which the job's record keeps."""
    config = bundled(context.configuration, sinks)
    planned = planning.physical_job(config, [optimized_insert(sink) for sink in sinks])
    query = kept_query(context, written) if place else {}
    request = replace(job_request(context, name, place), config=config, query=query)
    roots = [node for node in planned if isinstance(node, p.Sink)]
    return InsertsStart(roots, request)


def optimized_insert(sink: n.Sink) -> n.Sink:
    optimized = optimize(sink)
    assert isinstance(optimized, n.Sink)
    return optimized


def frame(context: SessionContext, plan: n.LogicalNode) -> DataFrame:
    """The plan as a lazy batch frame."""
    with file_snapshot():
        root = planning.batch(context, optimize(plan))
        return batch_frame(root, job_request(context, "frame"))


def table_now(context: SessionContext, sink: p.Sink) -> DataFrame | str:
    """The rows of the sink's table, or the reason why its rows cannot be read."""
    options = dict(sink.options)
    path, found = sink.table.path, connector(options)
    if not found.is_source:
        return f"the connector {found.identifier} cannot read its tables"
    columns = ", ".join(quote(f.name) for f in sink.fields)
    query = parse_statement(f"SELECT {columns} FROM `{path.catalog}`.`{path.database}`.`{path.name}`")
    assert isinstance(query, s.Query)
    try:
        return frame(context, binding.bind(context, query))
    except (NotSupportedError, ValidationError) as e:
        return f"the table cannot be read as it is: {e.message}"


def application(context: SessionContext) -> SparkSession:
    """The process's Spark application, started on first use."""
    config = context.configuration
    has_epochs = not is_batch(context) and config.read(RESIDENT)
    return spark_application(config, for_epochs=has_epochs)


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
        statement=redacted_statement(context.statement),
        zone=context.time_zone,
        text=context.rendered,
        group=context.work,
        checkpoint_directory=checkpoint_directory,
        recorded=context.history is not None and context.history.keeps,
        has_listener=context.history is not None or context.on_event is not unheard,
        on_progress=on_progress,
        on_event=on_event,
        fault=context.fault,
        clock=context.clock,
        fence=context.permissions.fence,
        late_table=None if is_batch(context) else _late_table(context),
    )


def _warn_and_forward(context: SessionContext, event: JobEvent) -> None:
    if isinstance(event, ExchangesBlocked | FunctionsChanged | StateTakenOver | JobAudited):
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


@contextmanager
def own_directory(context: SessionContext) -> Iterator[str]:
    """The checkpoint directory of the streaming job that starts within; '' for a temporary directory.

    The first job of a session uses the configured directory, the others ``job-2``, ``job-3``... below it. So
    a script that runs again finds the directory of each of its jobs. If the job is refused, the next job of
    the session gets the directory: a statement that is corrected finds the state of its job.
    """
    directory = context.configuration.read(execution_options.CHECKPOINT_DIRECTORY)
    if not directory:
        yield ""
        return
    number = context.jobs_in[directory] = context.jobs_in.get(directory, 0) + 1
    try:
        yield directory if number == 1 else f"{directory.rstrip('/')}/job-{number}"
    except TidemillError:
        if context.jobs_in[directory] == number:
            context.jobs_in[directory] = number - 1
        raise


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
        """The rows of each epoch, until the job ends. Raises the job's error after the committed rows.
        Ctrl-C ends the job, and its temporary state goes."""
        try:
            while True:
                running = self.job.is_running()
                epoch = self.rows.take(wait=running)
                if epoch is not None:
                    yield epoch
                elif not running:
                    return self.job.wait()
        except KeyboardInterrupt:
            self.rows.closed.set()
            self.stop()
            with suppress(TimeoutError, TidemillError):
                self.job.wait(_LAST_SECONDS)
            raise
