"""Starts jobs: takes physical plans, and gives a running epoch loop.

``start_query`` runs a SELECT whose rows go to a collector. ``start_inserts`` runs one INSERT or a whole
STATEMENT SET as one job, so all its sinks commit together. Both return a ``RunningJob`` at once. The
loop runs in its own thread and Spark session, and each epoch in its own scheduler pool.
"""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Self

from pyspark.sql import DataFrame, SparkSession

from tidemill.catalog.table import CatalogTable
from tidemill.config.emit_options import LATE_ROWS_TABLE
from tidemill.config.epoch_options import MAX_BYTES, MAX_ROWS
from tidemill.config.execution_options import CHECKPOINT_DIRECTORY, PARALLELISM, RECOVERY_PATH
from tidemill.config.mini_batch_options import (
    DEDUPLICATE_COMPACT,
    MINI_BATCH_ALLOW_LATENCY,
    MINI_BATCH_ENABLED,
    MINI_BATCH_SIZE,
)
from tidemill.config.option import Configuration
from tidemill.config.secrets import shown_value
from tidemill.config.watermark_options import IDLE_TIMEOUT
from tidemill.connectors.api import ReadLimit, RecordingSource, SearchingSource
from tidemill.deep_calls import with_room
from tidemill.errors import (
    NOTHING_COMMITTED,
    NOTHING_KEPT,
    InternalError,
    TidemillError,
    ValidationError,
)
from tidemill.files.fence import OPEN, Fence
from tidemill.files.storage import Storage
from tidemill.files.systems import SETTINGS
from tidemill.functions.render import render_sql
from tidemill.physical import nodes as p
from tidemill.runtime import graph as g
from tidemill.runtime.checkpoint.directory import CheckpointDirectory, JobIdentity
from tidemill.runtime.checkpoint.savepoint import MARK, take_savepoint, write_savepoint
from tidemill.runtime.compile.context import CompileContext, unused
from tidemill.runtime.compile.shared import compiled
from tidemill.runtime.compile.sink import compile_result, compile_sink
from tidemill.runtime.epoch_loop import JobSettings, StreamingJob
from tidemill.runtime.job_identity import job_identity
from tidemill.runtime.job_plan import PlanNode, job_plan
from tidemill.runtime.late_table import LateTable, late_table
from tidemill.runtime.outputs import Collector, CollectOutput, Output, SinkOutput
from tidemill.runtime.progress import EpochProgress, JobBegun, JobEvent, SavepointWritten, unheard
from tidemill.runtime.recording import Recording
from tidemill.runtime.shared_files import ONE_MACHINE, SharedFiles
from tidemill.runtime.spark.job_groups import give_up, grouped
from tidemill.runtime.spark.session import job_session, time_zone
from tidemill.runtime.tables import make_sink, make_source
from tidemill.runtime.values_source import ValuesSource
from tidemill.state.slices import KEY_GROUPS
from tidemill.types.physical import quote

QUERY_OUTPUT = "query"


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRequest:
    """What every job needs.

    - ``frames``: registered DataFrames by key.
    - ``text``: collected values are texts as of CAST(x AS STRING), except booleans and plain numbers.
    - ``group``: the name under which Spark's work for a batch statement can be canceled.
    - ``recorded``: ``on_event`` wants to know how a job ran. ``heard``: ``on_event`` has a listener.
    """

    application: SparkSession
    config: Configuration
    frames: Mapping[str, DataFrame]
    name: str
    zone: str
    text: bool = False
    group: str = ""
    recorded: bool = False
    heard: bool = True
    checkpoint_directory: str = ""
    on_progress: Callable[[EpochProgress], None] = lambda _: None
    on_event: Callable[[JobEvent], None] = lambda _: None
    fault: Callable[[str], None] = lambda _: None
    clock: Callable[[], float] = time.time
    late_table: CatalogTable | None = None
    fence: Fence = OPEN
    statement: str = ""
    """As it may be shown."""

    @property
    def shown_options(self) -> dict[str, str]:
        return {key: shown_value(key, value) for key, value in self.config.items()}

    @property
    def shared(self) -> SharedFiles:
        return SharedFiles.of(self.application.sparkContext.master or "", self.config)


@dataclass(slots=True, kw_only=True)
class RunningJob:
    """A job's handle. ``wait`` raises the error of a failed job."""

    job_id: str
    name: str
    _job: StreamingJob
    _cleanup: Callable[[], None]
    _thread: threading.Thread | None = None
    _error: BaseException | None = None
    _done: threading.Event = field(default_factory=threading.Event)
    _group: str = field(default_factory=lambda: uuid.uuid4().hex)
    _aborted: bool = False
    _savepoint: Storage | None = None
    _recording: Recording | None = None
    _tell: Callable[[JobEvent], None] = unheard
    _end: str = ""
    """How it ended: who stops it afterwards changes nothing."""

    def is_running(self) -> bool:
        return not self._done.is_set()

    @property
    def status(self) -> str:
        """RUNNING, FINISHED, CANCELED or FAILED, as in Flink."""
        return "RUNNING" if self.is_running() else self._end

    def _how_it_ended(self) -> str:
        if self._error is not None:
            return "FAILED"
        if self._savepoint is not None and not self._aborted:
            return "FINISHED"  # stopped as it was to be: Flink says so, too
        return "CANCELED" if self._job.stopping.is_set() else "FINISHED"

    def wait(self, timeout: float | None = None) -> None:
        """Blocks until the job has ended. Raises the job's error, or TimeoutError after ``timeout``
        seconds."""
        if not self._done.wait(timeout):
            raise TimeoutError(f"job '{self.name}' still runs after {timeout} seconds")
        if self._error is not None:
            raise self._error

    def stop(self) -> None:
        """Asks the job to stop after its current epoch, and returns at once."""
        self._job.stopping.set()

    def cancel(self) -> None:
        """Asks the job to stop after its current epoch, and returns when it has stopped."""
        self.stop()
        self._done.wait()

    def stop_with_savepoint(self, directory: str, *, drain: bool = False) -> str:
        """Stops the job after its current epoch and writes a savepoint; gives the savepoint's path. With
        ``drain``, open windows emit their results first. Raises the error of a failed job, and
        ValidationError for an ended job."""
        if not self.is_running():
            raise ValidationError(f"Job {self.job_id} does not run: it is {self.status}.")
        name = f"savepoint-{self.job_id[:6]}-{uuid.uuid4().hex[:12]}"
        target = Storage(f"{directory.rstrip('/')}/{name}", self._job.checkpoint.root.settings)
        self._job.draining, self._savepoint = drain, target
        self.stop()
        self.wait()
        if target.stat(MARK) is None:
            raise ValidationError(f"Job {self.job_id} had ended before its savepoint: it is {self.status}.")
        return target.shown("")

    def abort(self) -> None:
        """Aborts the current epoch, of which nothing is kept, and stops; returns at once."""
        self._aborted = True
        self.stop()
        give_up(self._job.spark.sparkContext, self._group)

    def start(self) -> None:
        self._thread = threading.Thread(target=self._run, name=f"tidemill-job-{self.name}", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            context = self._job.spark.sparkContext
            with self._recorded(), grouped(context, self._group, self.name, in_parts=True):
                self._job.run()
            if self._savepoint is not None:
                write_savepoint(self._job.checkpoint.root, self._savepoint, self.job_id)
                path = self._savepoint.shown("")
                self._tell(SavepointWritten(job_id=self.job_id, path=path, at=time.time()))
        except TidemillError as e:
            if not self._job.settings.resumable:
                e.hint = e.hint.replace(NOTHING_COMMITTED, NOTHING_KEPT)
            self._error = e
        except Exception as e:
            self._error = InternalError(f"{type(e).__name__}: {e}")
            self._error.__cause__ = e
        except BaseException as e:
            # Not an error of the job but the end of its thread: whoever waits must learn of it.
            self._error = e
        finally:
            if self._aborted and isinstance(self._error, Exception):
                self._error = None  # what failed is what was given up
            self._end = self._how_it_ended()
            self._job.checkpoint.close()
            self._cleanup()
            if self._recording is not None:  # before anybody learns of the end otherwise
                self._recording.end(self._end, "" if self._error is None else str(self._error))
            self._done.set()

    def _recorded(self) -> AbstractContextManager[None]:
        return nullcontext() if self._recording is None else self._recording.running()


def start_query(root: p.PhysicalNode, collector: Collector, request: JobRequest) -> RunningJob:
    """Runs ``root``. The rows of every committed epoch go to ``collector``."""
    context = _context(request, [root])
    node = compiled(context, lambda: compile_result(root, context, request.config))
    shown = g.Select(
        columns=node.columns,
        kinds=node.kinds,
        sequenced=False,
        input=node,
        expressions=_shown(root, node, request),
        references=(None,) * len(node.columns),
    )
    with _Preparation(context, request) as preparation:
        preparation.open([root])
        output = CollectOutput(node=shown, collector=collector)
        return preparation.start({QUERY_OUTPUT: output}, {QUERY_OUTPUT: "Result"})


def start_inserts(sinks: Sequence[p.Sink], request: JobRequest) -> RunningJob:
    """Runs all ``sinks`` as one job. Their epochs commit together."""
    context = _context(request, sinks)
    nodes = compiled(context, lambda: _compiled_outputs(sinks, context, request.config))
    with _Preparation(context, request) as preparation:
        identity = preparation.open(sinks)
        outputs: dict[str, Output] = {}
        names: dict[str, str] = {}
        # In the order of their ids, which does not depend on the script's.
        for sink, (key, node) in sorted(zip(sinks, nodes.items(), strict=True), key=lambda pair: pair[1][0]):
            made = make_sink(
                sink,
                node.kinds,
                identity.job_id,
                request.zone,
                request.shared,
                streaming=True,
                fence=request.fence,
                ordinal=len(outputs),
                ordered=not any(isinstance(n, g.Keyed) for n in node.walk()),
            )
            outputs[key] = SinkOutput(node=node, sink=made)
            names[key] = sink.table.path.name
            preparation.tables[key] = str(sink.table.path)
        return preparation.start(outputs, names)


def read_limit(config: Configuration, outputs: Sequence[g.ExecNode]) -> ReadLimit:
    """How much of each source one epoch takes. A mini-batch is an epoch. But if a job only bundles
    lookups, an epoch has many bundles."""
    size = _bundle(config)
    nodes = [node for output in outputs for node in output.walk()]
    if any(isinstance(n, g.Lookup) for n in nodes) and not any(isinstance(n, g.Keyed) for n in nodes):
        size = None
    rows = [n for n in (config.read(MAX_ROWS), size) if n]
    return ReadLimit(rows=min(rows, default=None), bytes=config.read(MAX_BYTES).bytes or None)


def _bundle(config: Configuration) -> int | None:
    """The most rows of a mini-batch; None if no option says so."""
    size = config.read(MINI_BATCH_SIZE)
    if MINI_BATCH_SIZE.key in config and size <= 0:
        raise ValidationError(f"The value of '{MINI_BATCH_SIZE.key}' must be positive, it is {size}")
    return size if size > 0 else None


def compile_context(
    roots: Sequence[p.PhysicalNode],
    config: Configuration,
    *,
    frames: Mapping[str, DataFrame],
    zone: str,
    parallelism: int,
    shared: SharedFiles = ONE_MACHINE,
    fence: Fence = OPEN,
) -> CompileContext:
    """The context in which the plans of one job are compiled."""
    context = CompileContext(
        make_source=partial(make_source, shared=shared, fence=fence),
        frames=frames,
        zone=zone,
        parallelism=parallelism,
        per_record=not config.read(MINI_BATCH_ENABLED),
        per_event=config.get(MINI_BATCH_ENABLED.key, "false").lower() != "true",
        compact=config.read(DEDUPLICATE_COMPACT),
        idle_timeout=config.read(IDLE_TIMEOUT).milliseconds,
        bundle=_bundle(config),
        keeps_late=bool(config.read(LATE_ROWS_TABLE)),
        fence=fence,
    )
    with_room(lambda: context.survey(roots))
    return context


def unread_job(
    roots: Sequence[p.PhysicalNode], config: Configuration, *, frames: Mapping[str, DataFrame], zone: str
) -> tuple[dict[str, g.ExecNode], CompileContext]:
    """The graph of each output of a job of these plans, and its compile context. No table is opened."""
    context = compile_context(roots, config, frames=frames, zone=zone, parallelism=1)
    context.make_source = lambda request: _UNREAD
    return compiled(context, lambda: _compiled_outputs(roots, context, config)), context


_UNREAD = ValuesSource(columns=(), rows=(), schema="", sequence=False)


def _compiled_outputs(
    roots: Sequence[p.PhysicalNode], context: CompileContext, config: Configuration
) -> dict[str, g.ExecNode]:
    outputs: dict[str, g.ExecNode] = {}
    for root in roots:
        if isinstance(root, p.Sink):
            key = unused(f"sink-{context.digests.of(root)}", outputs)
            outputs[key] = compile_sink(root, context, config)
        else:
            outputs[QUERY_OUTPUT] = compile_result(root, context, config)
    return outputs


def _context(request: JobRequest, roots: Sequence[p.PhysicalNode]) -> CompileContext:
    return compile_context(
        roots,
        request.config,
        frames=request.frames,
        zone=request.zone,
        parallelism=parallelism(request),
        shared=request.shared,
        fence=request.fence,
    )


def parallelism(request: JobRequest) -> int:
    wanted = request.config.read(PARALLELISM)
    if not 0 <= wanted <= KEY_GROUPS:
        raise ValidationError(
            f"'{PARALLELISM.key}' is {wanted}; it must be between 1 and {KEY_GROUPS}, or 0 for all cores"
        )
    return wanted if wanted > 0 else min(request.application.sparkContext.defaultParallelism, KEY_GROUPS)


def _shown(root: p.PhysicalNode, node: g.ExecNode, request: JobRequest) -> tuple[str, ...]:
    if not request.text:
        return tuple(quote(c) for c in node.columns)
    return tuple(
        render_sql(quote(c), f.type, request.zone) for c, f in zip(node.columns, root.fields, strict=True)
    )


class _Preparation:
    """Opens the checkpoint, then starts the job. If that fails in between, it releases everything."""

    def __init__(self, context: CompileContext, request: JobRequest) -> None:
        self._context = context
        self._request = request
        self._temporary: Storage | None = None
        self._checkpoint: CheckpointDirectory | None = None
        self._identity: JobIdentity | None = None
        self._started = False
        self.tables: dict[str, str] = {}
        """The paths of the tables that outputs write."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if not self._started:
            if self._checkpoint is not None:
                self._checkpoint.close()
            self._remove_temporary()

    def open(self, roots: Sequence[p.PhysicalNode]) -> JobIdentity:
        """Takes the checkpoint directory. If the directory has an identity, the job gets this identity."""
        wanted = job_identity(roots, self._context, self._request.name)
        self._checkpoint = CheckpointDirectory(self._place(), self._request.fault)
        savepoint = self._request.config.read(RECOVERY_PATH)
        if savepoint and self._checkpoint.is_new:
            take_savepoint(self._storage(savepoint), self._checkpoint.root)
        self._identity = self._checkpoint.open(wanted)
        return self._identity

    def _place(self) -> Storage:
        shared, directory = self._request.shared, self._request.checkpoint_directory
        if directory:
            shared.check(directory, f"The checkpoint directory ('{CHECKPOINT_DIRECTORY.key}')")
            return self._storage(directory)
        self._temporary = self._storage(shared.temporary_directory(), durable=False)
        return self._temporary

    def _storage(self, place: str, *, durable: bool = True) -> Storage:
        config = self._request.config
        settings = tuple((key, config[key]) for key in SETTINGS if key in config)
        return Storage(place, settings, durable=durable)

    def start(self, outputs: Mapping[str, Output], names: Mapping[str, str]) -> RunningJob:
        """``names``: the names of the outputs, for people."""
        request = self._request
        if self._checkpoint is None or self._identity is None:
            raise InternalError("the checkpoint is not open")
        for key, source in self._context.sources.items():
            if isinstance(source, RecordingSource):
                source.record_in(self._checkpoint.source_root.below(key))
        spark = job_session(
            request.application,
            settings={
                **time_zone(request.zone),
                "spark.sql.adaptive.enabled": "false",
                "spark.sql.shuffle.partitions": str(self._context.parallelism),
            },
        )
        for source in self._context.sources.values():
            if isinstance(source, SearchingSource):
                source.search_with(spark)
        job = StreamingJob(
            spark=spark,
            sources=self._context.sources,
            outputs=dict(outputs),
            checkpoint=self._checkpoint,
            settings=JobSettings(
                job_id=self._identity.job_id,
                name=request.name,
                parallelism=self._context.parallelism,
                limit=read_limit(request.config, [output.node for output in outputs.values()]),
                latency=request.config.read(MINI_BATCH_ALLOW_LATENCY).seconds,
                resumable=bool(request.checkpoint_directory),
            ),
            on_progress=request.on_progress,
            on_event=request.on_event,
            clock=request.clock,
            late=self._late_table(len(outputs)),
        )
        nodes = {key: o.node for key, o in outputs.items()}
        tables = {**self._context.tables, **self.tables}
        plan = job_plan(nodes, names, self._context.descriptions, tables)
        running = RunningJob(
            job_id=self._identity.job_id,
            name=request.name,
            _job=job,
            _cleanup=self._remove_temporary,
            _recording=self._recording(plan),
            _tell=request.on_event,
        )
        self._started = True
        request.on_event(
            JobBegun(
                job_id=running.job_id,
                name=running.name,
                plan=plan,
                statement=request.statement,
                options=request.shown_options,
                directory="" if self._temporary is not None else self._checkpoint.root.shown(""),
            )
        )
        running.start()
        return running

    def _recording(self, plan: tuple[PlanNode, ...]) -> Recording | None:
        request, identity = self._request, self._identity
        if not request.recorded or identity is None:
            return None
        return Recording(
            context=request.application.sparkContext,
            job_id=identity.job_id,
            name=request.name,
            mode="streaming",
            tell=request.on_event,
            plan=plan,
            statement=request.statement,
            options=request.shown_options,
        )

    def _late_table(self, ordinal: int) -> LateTable | None:
        table, identity = self._request.late_table, self._identity
        if table is None or identity is None:
            return None
        return late_table(table, table.options, identity.job_id, self._request.zone, ordinal)

    def _remove_temporary(self) -> None:
        if self._temporary is not None:
            with suppress(OSError):
                self._temporary.remove_directory("")
