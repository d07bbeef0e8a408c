"""Starts jobs: takes physical plans, and gives a running epoch loop.

``start_query`` runs a SELECT whose rows go to a collector. ``start_inserts`` runs one INSERT or a whole
STATEMENT SET as one job, so all its sinks commit together. Both return a ``RunningJob`` at once. The
loop runs in its own thread and Spark session, and each epoch in its own scheduler pool.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any, Self

from pyspark.sql import DataFrame, SparkSession

from tidemill.catalog.table import CatalogTable
from tidemill.config.emit_options import LATE_ROWS_TABLE
from tidemill.config.epoch_options import MAX_BYTES, MAX_ROWS
from tidemill.config.execution_options import (
    ARROW_EXPRESSIONS,
    CHECKPOINT_DIRECTORY,
    CLAIM_MODE,
    IGNORE_UNCLAIMED,
    PARALLELISM,
    RECOVERY_PATH,
)
from tidemill.config.mini_batch_options import (
    DEDUPLICATE_COMPACT,
    MINI_BATCH_ALLOW_LATENCY,
    MINI_BATCH_ENABLED,
    MINI_BATCH_SIZE,
)
from tidemill.config.option import Configuration
from tidemill.config.secrets import shown_value
from tidemill.config.watermark_options import IDLE_TIMEOUT
from tidemill.connectors.api import ReadLimit
from tidemill.deep_calls import with_room
from tidemill.errors import InternalError, ValidationError
from tidemill.files.fence import OPEN, Fence
from tidemill.files.storage import Storage
from tidemill.physical import nodes as p
from tidemill.physical.identities import RULES, identities
from tidemill.runtime import graph as g
from tidemill.runtime.checkpoint.directory import CheckpointDirectory, EpochCommit
from tidemill.runtime.checkpoint.evolution import evolution
from tidemill.runtime.checkpoint.identity import JobIdentity, changed_functions
from tidemill.runtime.checkpoint.origin import Origin
from tidemill.runtime.checkpoint.savepoint import Savepoint
from tidemill.runtime.compile.context import CompileContext
from tidemill.runtime.compile.result import result_node
from tidemill.runtime.compile.shared import compiled
from tidemill.runtime.compile.sink import compile_result, compile_sink
from tidemill.runtime.compile.state_names import StateNames, unused
from tidemill.runtime.epoch_loop import JobSettings, StreamingJob
from tidemill.runtime.job_identity import job_identity
from tidemill.runtime.job_plan import PlanNode, job_plan
from tidemill.runtime.late_table import LateTable, late_table
from tidemill.runtime.outputs import Collector, CollectOutput, Output, SinkOutput
from tidemill.runtime.progress import EpochProgress, FunctionsChanged, JobBegun, JobEvent, StateTakenOver
from tidemill.runtime.recording import Recording
from tidemill.runtime.running_job import RunningJob
from tidemill.runtime.shared_files import ONE_MACHINE, SharedFiles
from tidemill.runtime.spark.resident.epochs import resident_epochs
from tidemill.runtime.spark.session import job_session, time_zone
from tidemill.runtime.tables import make_sink, make_source
from tidemill.runtime.values_source import ValuesSource
from tidemill.state.slices import KEY_GROUPS

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
    query: Mapping[str, Any] = field(default_factory=dict)
    """What the job's record keeps of its INSERTs: enough to plan them again."""

    @property
    def shown_options(self) -> dict[str, str]:
        return {key: shown_value(key, value) for key, value in self.config.items()}

    @property
    def shared(self) -> SharedFiles:
        return SharedFiles.of(self.application.sparkContext.master or "", self.config)


def start_query(root: p.PhysicalNode, collector: Collector, request: JobRequest) -> RunningJob:
    """Runs ``root``. The rows of every committed epoch go to ``collector``."""
    with _Preparation(request) as preparation:
        context = job_context(request, [root], preparation.names)
        node = compiled(context, lambda: compile_result(root, context, request.config))
        result, schema = result_node(
            node, root.fields, text=request.text, zone=request.zone, arrays=context.arrays
        )
        preparation.open([root], context)
        output = CollectOutput(node=result, schema=schema, collector=collector)
        return preparation.start({QUERY_OUTPUT: output}, {QUERY_OUTPUT: "Result"})


def start_inserts(sinks: Sequence[p.Sink], request: JobRequest) -> RunningJob:
    """Runs all ``sinks`` as one job. Their epochs commit together."""
    with _Preparation(request) as preparation:
        context = job_context(request, sinks, preparation.names)
        nodes = compiled(context, lambda: compiled_outputs(sinks, context, request.config))
        identity = preparation.open(sinks, context)
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
                former=tuple(identity.former),
            )
            outputs[key] = SinkOutput(node=node, sink=made)
            names[key] = sink.table.path.name
            preparation.tables[key] = str(sink.table.path)
        return preparation.start(outputs, names)


@dataclass(frozen=True, slots=True)
class InsertsStart:
    """Starts INSERTs as one job, as often as it is called."""

    sinks: Sequence[p.Sink]
    request: JobRequest

    def __call__(self) -> RunningJob:
        return start_inserts(self.sinks, self.request)

    def with_options(self, options: Mapping[str, str]) -> InsertsStart:
        config = Configuration({**self.request.config, **options})
        return replace(self, request=replace(self.request, config=config))


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
    names: StateNames | None = None,
) -> CompileContext:
    """The context in which the plans of one job are compiled. ``names``: what state is called."""
    context = CompileContext(
        state=names or StateNames(),
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
        arrays=config.read(ARROW_EXPRESSIONS),
        fence=fence,
    )
    with_room(lambda: context.survey(roots))
    return context


def unread_job(
    roots: Sequence[p.PhysicalNode],
    config: Configuration,
    *,
    frames: Mapping[str, DataFrame],
    zone: str,
    names: StateNames | None = None,
) -> tuple[dict[str, g.ExecNode], CompileContext]:
    """The graph of each output of a job of these plans, and its compile context. No table is opened."""
    context = compile_context(roots, config, frames=frames, zone=zone, parallelism=1, names=names)
    context.make_source = lambda request: _UNREAD
    return compiled(context, lambda: compiled_outputs(roots, context, config)), context


def compiled_inserts(
    sinks: Sequence[p.Sink], request: JobRequest
) -> tuple[dict[str, g.ExecNode], CompileContext]:
    """The graph of each output of a job that is not started, and its compile context, with its sources."""
    context = job_context(request, sinks, StateNames())
    return compiled(context, lambda: compiled_outputs(sinks, context, request.config)), context


_UNREAD = ValuesSource(columns=(), rows=(), schema="", sequence=False)


def compiled_outputs(
    roots: Sequence[p.PhysicalNode], context: CompileContext, config: Configuration
) -> dict[str, g.ExecNode]:
    """The graph of each output by its id, in the order of ``roots``."""
    outputs: dict[str, g.ExecNode] = {}
    for root in roots:
        if isinstance(root, p.Sink):
            key = unused(f"sink-{context.digests.of(root)}", outputs)
            outputs[key] = compile_sink(root, context, config)
        else:
            outputs[QUERY_OUTPUT] = compile_result(root, context, config)
    return outputs


def job_context(request: JobRequest, roots: Sequence[p.PhysicalNode], names: StateNames) -> CompileContext:
    """The context in which a job of ``request`` is compiled."""
    return compile_context(
        roots,
        request.config,
        frames=request.frames,
        zone=request.zone,
        parallelism=parallelism(request),
        shared=request.shared,
        fence=request.fence,
        names=names,
    )


def parallelism(request: JobRequest) -> int:
    wanted = request.config.read(PARALLELISM)
    if not 0 <= wanted <= KEY_GROUPS:
        raise ValidationError(
            f"'{PARALLELISM.key}' is {wanted}; it must be between 1 and {KEY_GROUPS}, or 0 for all cores"
        )
    return wanted if wanted > 0 else min(request.application.sparkContext.defaultParallelism, KEY_GROUPS)


def epoch_session(request: JobRequest, partitions: int) -> SparkSession:
    """The Spark session of a job's epochs."""
    return job_session(
        request.application,
        settings={
            **time_zone(request.zone),
            "spark.sql.adaptive.enabled": "false",
            "spark.sql.shuffle.partitions": str(partitions),
        },
    )


def state_names(stored: JobIdentity, commit: EpochCommit | None) -> StateNames:
    """What state is called that the job ``stored`` left after ``commit``."""
    epoch = commit.epoch + 1 if commit is not None else 1
    return StateNames(ids=identities(stored.rules), stored=stored.schema, epoch=epoch)


class _Preparation:
    """Opens the checkpoint, then starts the job. If that fails in between, it releases everything."""

    def __init__(self, request: JobRequest) -> None:
        self._request = request
        self._temporary: Storage | None = None
        self._checkpoint = CheckpointDirectory(self._place(), request.fault)
        self._context: CompileContext | None = None
        self._identity: JobIdentity | None = None
        self._started = False
        self.tables: dict[str, str] = {}
        """The paths of the tables that outputs write."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if not self._started:
            self._checkpoint.close()
            self._remove_temporary()

    @cached_property
    def _stored(self) -> JobIdentity | None:
        return None if self._temporary is not None else self._checkpoint.stored_identity()

    @cached_property
    def _origin(self) -> Origin | None:
        """What the job begins with; its own records go first."""
        config = self._request.config
        place = config.read(RECOVERY_PATH)
        if not place or self._stored is not None:
            return None
        savepoint = Savepoint.open(self._storage(place))
        claims = config.read(CLAIM_MODE).upper() == "CLAIM"
        return Origin(savepoint=savepoint, claims=claims, drops=config.read(IGNORE_UNCLAIMED))

    @property
    def _left(self) -> JobIdentity | None:
        """Whose state the job begins with; None where there is none."""
        return self._stored if self._origin is None else self._origin.savepoint.identity

    @cached_property
    def names(self) -> StateNames:
        """What state is called, by what is stored."""
        if self._origin is not None:
            return state_names(self._origin.savepoint.identity, self._origin.savepoint.commit)
        if self._stored is not None:
            return state_names(self._stored, self._checkpoint.last_commit())
        return StateNames()

    def open(self, roots: Sequence[p.PhysicalNode], context: CompileContext) -> JobIdentity:
        """Takes the checkpoint directory. If the directory has an identity, the job gets this identity."""
        rules = RULES if self._left is None else self._left.rules
        wanted = job_identity(roots, context, self._request.name, rules)
        wanted = replace(wanted, query=dict(self._request.query))
        if self._origin is not None:
            made = self._origin.start(self._checkpoint, wanted)
        else:
            made = self._checkpoint.open(wanted, drops=self._request.config.read(IGNORE_UNCLAIMED))
        stored = self._left or made
        found = evolution(stored, wanted)
        if not found.is_same:
            self._request.on_event(StateTakenOver(job_id=made.job_id, changes=tuple(map(str, found.changes))))
        self._identity, self._context = made, context
        changed = changed_functions(stored, wanted)
        if changed:
            self._request.on_event(FunctionsChanged(job_id=made.job_id, functions=tuple(changed)))
        return made

    def _place(self) -> Storage:
        shared, directory = self._request.shared, self._request.checkpoint_directory
        if directory:
            shared.check(directory, f"The checkpoint directory ('{CHECKPOINT_DIRECTORY.key}')")
            return self._storage(directory)
        self._temporary = self._storage(shared.temporary_directory(), durable=False)
        return self._temporary

    def _storage(self, place: str, *, durable: bool = True) -> Storage:
        return Storage.configured(place, self._request.config, durable=durable)

    def start(self, outputs: Mapping[str, Output], names: Mapping[str, str]) -> RunningJob:
        """``names``: the names of the outputs, for people."""
        request = self._request
        context, identity = self._context, self._identity
        if context is None or identity is None:
            raise InternalError("the checkpoint is not open")
        for key, source in context.sources.items():
            source.record_in(self._checkpoint.source_root.below(key))
        spark = epoch_session(request, context.parallelism)
        for source in context.sources.values():
            source.search_with(spark)
        for output in outputs.values():
            if isinstance(output, SinkOutput):
                output.sink.publish_with(spark)
        stopping = threading.Event()
        job = StreamingJob(
            spark=spark,
            sources=context.sources,
            outputs=dict(outputs),
            checkpoint=self._checkpoint,
            settings=JobSettings(
                job_id=identity.job_id,
                name=request.name,
                parallelism=context.parallelism,
                limit=read_limit(request.config, [output.node for output in outputs.values()]),
                latency=request.config.read(MINI_BATCH_ALLOW_LATENCY).seconds,
                resumable=bool(request.checkpoint_directory),
            ),
            on_progress=request.on_progress,
            on_event=request.on_event,
            clock=request.clock,
            late=self._late_table(len(outputs)),
            stopping=stopping,
            resident=resident_epochs(spark, outputs, stopping, request.config),
        )
        nodes = {key: o.node for key, o in outputs.items()}
        tables = {**context.tables, **self.tables}
        plan = job_plan(nodes, names, context.descriptions, tables)
        running = RunningJob(
            job_id=identity.job_id,
            name=request.name,
            _identity=identity,
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
