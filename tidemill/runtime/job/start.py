"""Starts jobs: takes physical plans, and gives a running epoch loop.

``start_query`` runs a SELECT whose rows go to a collector. ``start_inserts`` runs one INSERT or a whole
STATEMENT SET as one job, so all its sinks commit together. Both return a ``RunningJob`` at once. The
loop runs in its own thread and Spark session, and each epoch in its own scheduler pool.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self

from tidemill.config.epoch_options import SMALL
from tidemill.config.execution_options import (
    CHECKPOINT_DIRECTORY,
    CLAIM_MODE,
    IGNORE_UNCLAIMED,
    RECOVERY_PATH,
)
from tidemill.config.mini_batch_options import (
    MINI_BATCH_ALLOW_LATENCY,
)
from tidemill.config.option import Configuration
from tidemill.errors import InternalError
from tidemill.files.storage import Storage
from tidemill.physical import nodes as p
from tidemill.physical.identities import RULES
from tidemill.runtime import graph as g
from tidemill.runtime.checkpoint.directory import CheckpointDirectory
from tidemill.runtime.checkpoint.evolution import evolution
from tidemill.runtime.checkpoint.identity import JobIdentity, changed_functions
from tidemill.runtime.checkpoint.origin import Origin
from tidemill.runtime.checkpoint.savepoint import Savepoint
from tidemill.runtime.compile.context import CompileContext
from tidemill.runtime.compile.result import result_node
from tidemill.runtime.compile.shared import compiled
from tidemill.runtime.compile.sink import compile_result
from tidemill.runtime.compile.state_names import StateNames
from tidemill.runtime.epoch_loop import JobSettings, StreamingJob
from tidemill.runtime.events import FunctionsChanged, JobBegun, StateTakenOver
from tidemill.runtime.job.graphs import QUERY_OUTPUT, compiled_outputs, job_context, read_limit, state_names
from tidemill.runtime.job.identity import job_identity
from tidemill.runtime.job.plan import job_plan
from tidemill.runtime.job.plan_nodes import PlanNode
from tidemill.runtime.job.recording import Recording
from tidemill.runtime.job.request import JobRequest, epoch_session
from tidemill.runtime.job.running import RunningJob
from tidemill.runtime.late_table import LateTable, late_table
from tidemill.runtime.outputs import Collector, CollectOutput, Output, SinkOutput
from tidemill.runtime.spark.epoch.arrow_epochs import ArrowEpochs
from tidemill.runtime.spark.resident.epochs import resident_epochs
from tidemill.runtime.tables import make_sink


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
                kept=tuple(identity.kept),
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
        stopping, arrow = threading.Event(), ArrowEpochs.of(dict(outputs))
        job = StreamingJob(
            spark=spark,
            sources=context.sources,
            arrow=arrow,
            checkpoint=self._checkpoint,
            settings=JobSettings(
                job_id=identity.job_id,
                name=request.name,
                parallelism=context.parallelism,
                small_bytes=request.config.read(SMALL).bytes,
                limit=read_limit(request.config, [output.node for output in outputs.values()]),
                latency=request.config.read(MINI_BATCH_ALLOW_LATENCY).seconds,
                resumable=bool(request.checkpoint_directory),
                tables=context.tables,
            ),
            on_progress=request.on_progress,
            on_event=request.on_event,
            clock=request.clock,
            late=self._late_table(len(outputs)),
            stopping=stopping,
            resident=resident_epochs(spark, arrow, context.parallelism, stopping, request.config),
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
                directory="" if self._temporary is not None else self._checkpoint.root.full_path(""),
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
