"""Gives a job another query, as if that had run from the beginning.

1. Both queries run over all that the job has read, into ``replays`` in the job's directory (``replaying``):
   most of it while the job still runs, and the rest when it has stopped.
2. The sinks of the new query stage the difference between the two results, as the job's next epoch.
3. The new query's state is linked into the job's.
4. A job record says what the job is from that epoch on.
5. The commit record of the epoch, with offsets, state and the tokens of what is staged: the switch.

The next start publishes the epoch, as after a crash. A kill before 5 leaves the old query with its state; the
next start removes what is left of the steps before. A sink that only takes additions is refused before
anything is staged if the difference has anything else.
"""

from __future__ import annotations

import uuid
from contextlib import suppress
from dataclasses import dataclass, replace

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from tidemill.changelog.rowkind import INSERT_ONLY, KIND_COLUMN, RowKind
from tidemill.connectors.api import Sink
from tidemill.connectors.registry import connector
from tidemill.errors import NotSupportedError, StateError, TidemillError
from tidemill.files.storage import Storage
from tidemill.physical import nodes as p
from tidemill.runtime.checkpoint.directory import REPLAYS, CheckpointDirectory, EpochCommit
from tidemill.runtime.checkpoint.identity import JobIdentity
from tidemill.runtime.checkpoint.savepoint import SOURCES, Savepoint
from tidemill.runtime.job_start import InsertsStart, JobRequest, epoch_session, parallelism
from tidemill.runtime.replay.clock import refuse_moving, refuse_twice
from tidemill.runtime.replay.replaying import History, Replay, Replayed, ReplayedOutput
from tidemill.runtime.spark.contents import content, difference, nothing
from tidemill.runtime.spark.failures import translated
from tidemill.runtime.tables import make_sink
from tidemill.types.physical import quote

_WHAT = "A backfill"
_NOTHING = EpochCommit(epoch=0, time=0, offsets={}, manifests={}, tokens={})
_REMOVED = [int(RowKind.UPDATE_BEFORE), int(RowKind.DELETE)]


def _check(former: InsertsStart, wanted: InsertsStart) -> None:
    for start in (former, wanted):
        refuse_moving(start.sinks, start.request.config, _WHAT)
        refuse_twice(start.sinks, _WHAT)


def has_same_sinks(former: InsertsStart, wanted: InsertsStart) -> bool:
    places = [{(s.table.path, s.options) for s in start.sinks} for start in (former, wanted)]
    return places[0] == places[1]


@dataclass(frozen=True, slots=True, kw_only=True)
class Backfill:
    """Of the job of ``former``, which becomes that of ``wanted`` in the same directory ``place``. ``work``:
    where both queries run, below ``place``."""

    former: InsertsStart
    wanted: InsertsStart
    place: Storage
    work: Storage
    then: Replay
    now: Replay

    @classmethod
    def of(cls, former: InsertsStart, wanted: InsertsStart) -> Backfill:
        """NotSupportedError where the queries say that it cannot be."""
        _check(former, wanted)
        run = uuid.uuid4().hex[:12]
        place = Storage.configured(wanted.request.checkpoint_directory, wanted.request.config)
        work = place.below(f"{REPLAYS}/{run}")
        then, now = (
            Replay.of(start.request, start.sinks, work.below(name), f"{run}{name}")
            for start, name in ((former, "then"), (wanted, "now"))
        )
        return cls(former=former, wanted=wanted, place=place, work=work, then=then, now=now)

    def ahead(self, commit: EpochCommit | None) -> None:
        """Step 1 up to an epoch of the job, which may go on: ``switch`` has less to do."""
        stored = CheckpointDirectory(self.place).stored_identity()
        if stored is not None:
            _check_whole(stored)
        self._over(commit)

    def drop(self) -> None:
        """Removes what was read ahead."""
        self.work.remove_directory("")

    def switch(self) -> None:
        """The job, which has stopped, is ``wanted`` from now on. Raises TidemillError, and nothing has
        changed then: StateError if the history is gone."""
        try:
            with CheckpointDirectory(self.place, self.wanted.request.fault) as directory:
                stored = directory.take()
                last = directory.closed(directory.last_commit())
                directory.check_published(last)
                _check_whole(stored)
                self._switch(directory, stored, last)
        finally:
            self.place.remove_directory(REPLAYS)

    def _over(self, last: EpochCommit | None) -> tuple[Replayed, Replayed]:
        history = History(commit=last or _NOTHING, sources=self.place.below(SOURCES))
        return self.then.over(history), self.now.over(history)

    def _switch(self, directory: CheckpointDirectory, stored: JobIdentity, last: EpochCommit | None) -> None:
        before = last or _NOTHING
        epoch = before.epoch + 1
        then, now = self._over(last)  # 1
        directory.fault("replayed")
        identity = replace(now.identity, job_id=stored.job_id, former=stored.former)
        tokens = _staged(self.wanted.request, then, now, identity, epoch)  # 2
        directory.fault("staged")
        _take_state(self.place, self.now.into, now)  # 3
        directory.fault("linked")
        made = now.commit or _NOTHING
        commit = replace(
            made,
            epoch=epoch,
            time=max(before.time, made.time),
            offsets={key: before.offsets[key] for key in now.sources if key in before.offsets},
            tokens=tokens,
        )
        directory.switch(identity, commit)  # 4, 5


def _check_whole(stored: JobIdentity) -> None:
    if not stored.whole:
        raise StateError(
            "A backfill needs a job whose query has run from the beginning: this one has state of another "
            "query or of a savepoint, so its sinks may have rows that no query tells",
            hint="Start the new query as a job of its own, into a table of its own.",
        )


def _take_state(root: Storage, replays: Storage, now: Replayed) -> None:
    made = Savepoint(storage=replays, identity=now.identity, commit=now.commit, finished=False)
    files = made.state_files()
    for path in files:
        root.take_in(replays, path)
    for folder in {path.rpartition("/")[0] for path in files}:
        root.force_directory(folder)


def _staged(
    request: JobRequest, then: Replayed, now: Replayed, identity: JobIdentity, epoch: int
) -> dict[str, list[str]]:
    """The tokens of what each sink of the new query gets, all of them staged or none."""
    known = {output.sink.table.path: output for output in then.outputs}
    ordered = sorted(now.outputs, key=lambda output: output.key)
    pairs = [(known.get(output.sink.table.path), output) for output in ordered]
    spark = epoch_session(request, parallelism(request))
    changes = [_difference(spark, *pair) for pair in pairs]
    sinks = [_sink(request, output.sink, identity, number) for number, output in enumerate(ordered)]
    tokens: dict[str, list[str]] = {}
    try:
        for output, sink, frame in zip(ordered, sinks, changes, strict=True):
            sink.discard(epoch)
            tokens[output.key] = [row[0] for row in sink.stage(frame, epoch).collect()]
    except Exception as e:
        for sink in sinks:
            with suppress(TidemillError, OSError):
                sink.discard(epoch)
        raise translated(e) from e
    return tokens


def _difference(spark: SparkSession, then: ReplayedOutput | None, now: ReplayedOutput) -> DataFrame:
    """What is staged. NotSupportedError where the sink cannot take it."""
    sink = now.sink
    if then is not None and _written(then.sink) != _written(sink):
        raise NotSupportedError(
            f"{_WHAT} of INSERTs that write other columns of table {sink.table.path}, or with other options, "
            "is not supported"
        )
    after = content(spark, now.rows)
    before = nothing(after) if then is None else content(spark, then.rows)
    kinds = _kinds(sink)
    made = difference(before, after, pairs=RowKind.UPDATE_BEFORE in kinds)
    made = made.toDF(*(f.name for f in sink.fields), KIND_COLUMN)
    if kinds != INSERT_ONLY:
        return made
    kind = F.col(quote(KIND_COLUMN))
    if made.where(kind.isin(_REMOVED)).limit(1).count():
        raise NotSupportedError(
            f"Table {sink.table.path} takes additions alone, but the new query's result lacks rows of the "
            "old query's",
            hint="Write the new query's result into a table of its own.",
        )
    return made.drop(KIND_COLUMN)


def _written(sink: p.Sink) -> tuple[object, ...]:
    return sink.fields, sorted(sink.options), sink.static_partition


def _kinds(sink: p.Sink) -> frozenset[RowKind]:
    options = dict(sink.options)
    return connector(options).sink_kinds(sink.table, options, frozenset(RowKind))


def _sink(request: JobRequest, sink: p.Sink, identity: JobIdentity, ordinal: int) -> Sink:
    return make_sink(
        sink,
        _kinds(sink),
        identity.job_id,
        request.zone,
        request.shared,
        streaming=True,
        fence=request.fence,
        ordinal=ordinal,
        former=tuple(identity.former),
    )
