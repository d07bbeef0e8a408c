"""Runs INSERTs over what a job has read up to an epoch: their state, and what their sinks would get.

It is the job's own way: its epochs, kernels and compiled graph. So windows that are open in the job are open
here, too. Only the cuts between epochs may be others, which no answer depends on. Cost: all of the history is
read and computed once more.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tidemill.changelog.rowkind import INSERT_ONLY, RowKind
from tidemill.changelog.watermarks import END
from tidemill.connectors.api import Offset, ReadLimit, Source
from tidemill.connectors.registry import connector
from tidemill.errors import NotSupportedError, StateError
from tidemill.files.storage import Storage
from tidemill.physical import nodes as p
from tidemill.runtime import graph as g
from tidemill.runtime.checkpoint.directory import CheckpointDirectory
from tidemill.runtime.checkpoint.epochs import EpochCommit
from tidemill.runtime.checkpoint.identity import JobIdentity
from tidemill.runtime.compile.context import CompileContext
from tidemill.runtime.compile.shared import compiled
from tidemill.runtime.compile.state_names import StateNames
from tidemill.runtime.epoch_loop import JobSettings, StreamingJob
from tidemill.runtime.job.graphs import compiled_outputs, job_context, read_limit
from tidemill.runtime.job.identity import job_identity
from tidemill.runtime.job.request import JobRequest, epoch_session
from tidemill.runtime.outputs import SinkOutput
from tidemill.runtime.replay.captured import CapturingSink, KeptRows
from tidemill.runtime.spark.epoch.arrow_epochs import ArrowEpochs
from tidemill.runtime.spark.job_groups import grouped
from tidemill.runtime.values_source import ValuesSource


@dataclass(frozen=True, slots=True, kw_only=True)
class Replayed:
    """``commit``: of the last epoch, None if there were no rows; ``sources``: the keys of what was read."""

    identity: JobIdentity
    commit: EpochCommit | None
    sources: tuple[str, ...]
    outputs: tuple[ReplayedOutput, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayedOutput:
    key: str
    sink: p.Sink
    node: g.ExecNode
    rows: KeptRows


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """``commit``: the epoch up to which; ``sources``: where the job's sources keep records of their own."""

    commit: EpochCommit
    sources: Storage

    def of(self, key: str, source: Source, name: str) -> Source:
        """What the job has read of a source. StateError where that is gone, or was nothing."""
        offset = self.commit.offsets.get(key)
        if offset is None and not self.commit.epoch:
            return NOTHING
        if offset is None:
            raise StateError(f"The history of {name} is not known: the job has not read it so far")
        found = self._remembered(key, source, offset, name)
        if found is None:
            raise NotSupportedError(f"{name} cannot be read again as it was: its connector keeps no history")
        return found

    def _remembered(self, key: str, source: Source, offset: Offset, name: str) -> Source | None:
        source.record_in(self.sources.below(key))
        try:
            return source.remembered(offset, ended=self.commit.watermarks.get(key) == END)
        except StateError as e:
            raise StateError(f"The history of {name} is gone: {e.message}") from e


NOTHING = ValuesSource(columns=(), rows=(), schema="", sequence=False, bounded=False)
"""The history of a source that was not read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Replay:
    """INSERTs that run into the directory ``into``. Names of its state files have ``run``, which no other run
    of the job has."""

    request: JobRequest
    sinks: Sequence[p.Sink]
    into: Storage
    run: str
    context: CompileContext
    identity: JobIdentity
    outputs: Mapping[str, SinkOutput]

    @classmethod
    def of(cls, request: JobRequest, sinks: Sequence[p.Sink], into: Storage, run: str) -> Replay:
        context = job_context(request, sinks, StateNames())
        nodes = compiled(context, lambda: compiled_outputs(sinks, context, request.config))
        outputs = {
            key: _output(sink, node, into.below(f"rows/{number}"))
            for number, (sink, (key, node)) in enumerate(zip(sinks, nodes.items(), strict=True))
        }
        identity = job_identity(sinks, context, request.name)
        return cls(
            request=request,
            sinks=sinks,
            into=into,
            run=run,
            context=context,
            identity=identity,
            outputs=outputs,
        )

    def over(self, history: History) -> Replayed:
        """Goes on to the end of ``history``, which continues that of the call before. StateError if it is
        gone."""
        found = self.context.sources.items()
        sources = {key: history.of(key, source, _name(self.context, key)) for key, source in found}
        with CheckpointDirectory(self.into, run=self.run) as checkpoint:
            checkpoint.open(self.identity)
            job = self._job(sources, checkpoint)
            name = f"{self.request.name} again"
            with grouped(job.spark.sparkContext, uuid.uuid4().hex, name, in_parts=True):
                job.run()
        _check_end(sources, {} if job.last_commit is None else job.last_commit.offsets, self.context)
        pairs = zip(self.sinks, self.outputs.items(), strict=True)
        return Replayed(
            identity=self.identity,
            commit=job.last_commit,
            sources=tuple(sources),
            outputs=tuple(ReplayedOutput(key=k, sink=s, node=o.node, rows=_kept(o)) for s, (k, o) in pairs),
        )

    def _job(self, sources: dict[str, Source], checkpoint: CheckpointDirectory) -> StreamingJob:
        return StreamingJob(
            spark=epoch_session(self.request, self.context.parallelism),
            sources=sources,
            arrow=ArrowEpochs.of(dict(self.outputs)),
            checkpoint=checkpoint,
            settings=JobSettings(
                job_id=self.identity.job_id,
                name=self.request.name,
                parallelism=self.context.parallelism,
                limit=read_limit(self.request.config, [output.node for output in self.outputs.values()]),
                latency=0.0,
            ),
            on_progress=lambda _: None,
            clock=time.time,
            replays=True,
        )


def keys_of(sink: p.Sink) -> tuple[str, ...]:
    """The primary key by which the sink's table replaces rows; () where it does not."""
    options = dict(sink.options)
    takes = connector(options).sink_kinds(sink.table, options, frozenset(RowKind))
    return () if takes == INSERT_ONLY else sink.table.primary_key


def _output(sink: p.Sink, node: g.ExecNode, storage: Storage) -> SinkOutput:
    keys = keys_of(sink)
    if not keys and RowKind.UPDATE_AFTER in node.kinds and RowKind.UPDATE_BEFORE not in node.kinds:
        raise NotSupportedError(
            f"What table {sink.table.path} has cannot be told: it gets updates, and has no primary key"
        )
    ordered = not any(isinstance(n, g.Keyed) for n in node.walk())
    made = CapturingSink(storage=storage, fields=sink.fields, keys=keys, ordered=ordered)
    return SinkOutput(node=node, sink=made)


def _kept(output: SinkOutput) -> KeptRows:
    sink: object = output.sink
    assert isinstance(sink, CapturingSink)
    return sink.captured_rows


def _check_end(sources: dict[str, Source], reached: dict[str, Offset], context: CompileContext) -> None:
    """Sources that wait for each other may not come to their ends."""
    for key, source in sources.items():
        at = reached.get(key)
        if not source.is_empty(at, source.next_offset(at, ReadLimit())):
            raise NotSupportedError(
                f"{_name(context, key)} waits for other tables: it cannot be read again alone"
            )


def _name(context: CompileContext, key: str) -> str:
    return f"table {context.tables[key]}" if key in context.tables else context.descriptions[key]
