"""The graphs of a job's outputs, compiled in one context."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from pyspark.sql import DataFrame

from tidemill.config.emit_options import LATE_ROWS_TABLE
from tidemill.config.epoch_options import MAX_BYTES, MAX_ROWS
from tidemill.config.execution_options import (
    ARROW_EXPRESSIONS,
)
from tidemill.config.mini_batch_options import (
    DEDUPLICATE_COMPACT,
    MINI_BATCH_ENABLED,
    MINI_BATCH_SIZE,
)
from tidemill.config.option import Configuration
from tidemill.config.watermark_options import IDLE_TIMEOUT
from tidemill.connectors.api import ReadLimit
from tidemill.deep_calls import with_room
from tidemill.errors import ValidationError
from tidemill.files.fence import OPEN, Fence
from tidemill.physical import nodes as p
from tidemill.physical.identities import identities
from tidemill.runtime import graph as g
from tidemill.runtime.checkpoint.epochs import EpochCommit
from tidemill.runtime.checkpoint.identity import JobIdentity
from tidemill.runtime.compile.context import CompileContext
from tidemill.runtime.compile.shared import compiled
from tidemill.runtime.compile.sink import compile_result, compile_sink
from tidemill.runtime.compile.state_names import StateNames, unused
from tidemill.runtime.job.request import JobRequest, parallelism
from tidemill.runtime.shared_files import ONE_MACHINE, SharedFiles
from tidemill.runtime.tables import make_source
from tidemill.runtime.values_source import ValuesSource

QUERY_OUTPUT = "query"


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


def state_names(stored: JobIdentity, commit: EpochCommit | None) -> StateNames:
    """What state is called that the job ``stored`` left after ``commit``."""
    epoch = commit.epoch + 1 if commit is not None else 1
    return StateNames(ids=identities(stored.rules), stored=stored.schema, epoch=epoch)
