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
from tidemill.physical.explain.attributes import describe
from tidemill.physical.tree import walk
from tidemill.runtime.checkpoint.directory import REPLAYS, CheckpointDirectory
from tidemill.runtime.checkpoint.epochs import EpochCommit
from tidemill.runtime.checkpoint.identity import JobIdentity
from tidemill.runtime.checkpoint.origin import Origin
from tidemill.runtime.checkpoint.savepoint import SOURCES, Savepoint
from tidemill.runtime.job.request import JobRequest, epoch_session, parallelism
from tidemill.runtime.job.start import InsertsStart
from tidemill.runtime.replay.clock import refuse_moving, refuse_twice
from tidemill.runtime.replay.replaying import History, Replay, Replayed, ReplayedOutput
from tidemill.runtime.replay.verify import Read, copied
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


def has_same_results(former: InsertsStart, wanted: InsertsStart) -> bool:
    """Of two queries that may have the same state: whether their sinks are the same, and get the same."""
    places = [{(s.table.path, s.options) for s in start.sinks} for start in (former, wanted)]
    waits = [
        {describe(n) for s in start.sinks for n in walk(s) if isinstance(n, p.WatermarkAssigner)}
        for start in (former, wanted)
    ]
    return (places[0], waits[0]) == (places[1], waits[1])


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
            self._check_stored(stored)
        self._over(commit)

    def drop(self) -> None:
        """Removes what was read ahead."""
        self.work.remove_directory("")

    def switch(self) -> str:
        """The job, which has stopped, is ``wanted`` from now on; its id. Raises TidemillError, and nothing
        has changed then: StateError if the history is gone."""
        with CheckpointDirectory(self.place, self.wanted.request.fault) as directory:
            stored = directory.take()
            try:
                last = directory.closed(directory.last_commit())
                directory.check_published(last)
                self._check_stored(stored)
                identity = self._identity(stored, stored.job_id, stored.former)
                directory.switch(identity, self._epoch(directory, identity, last))  # 4, 5
            finally:
                self.place.remove_directory(REPLAYS)
        return stored.job_id

    def begin(self, savepoint: Savepoint, *, claims: bool, has: Read) -> str:
        """The directory, which has no job, becomes that of a job of ``wanted`` that goes on after
        ``savepoint``; its id. ``has``: reads the tables of sinks. Raises TidemillError: StateError if the
        history is gone, or a sink's table is not what the savepoint's query gives."""
        self._check_stored(savepoint.identity)

        def fill(directory: CheckpointDirectory, identity: JobIdentity) -> None:
            made = self._epoch(directory, identity, savepoint.commit, has)
            if savepoint.commit is None:
                directory.put_first(made)
            else:
                directory.write_commit(made)

        origin = Origin(savepoint=savepoint, claims=claims, backfill=fill)
        with CheckpointDirectory(self.place, self.wanted.request.fault) as directory:
            made = origin.start(directory, self._identity(savepoint.identity, self.now.identity.job_id, []))
            self.place.remove_directory(REPLAYS)
        return made.job_id

    def _over(self, last: EpochCommit | None) -> tuple[Replayed, Replayed]:
        history = History(commit=last or _NOTHING, sources=self.place.below(SOURCES))
        return self.then.over(history), self.now.over(history)

    def _identity(self, stored: JobIdentity, job_id: str, former: list[str]) -> JobIdentity:
        query = dict(self.wanted.request.query)
        left = sorted({*stored.left, *_tables(self.former)} - _tables(self.wanted))
        new = self.now.identity
        kept = new.also_kept(stored)
        return replace(new, job_id=job_id, former=former, kept=kept, query=query, left=left)

    def _check_stored(self, stored: JobIdentity) -> None:
        """StateError if no query tells the rows of the tables that are written."""
        if not stored.whole:
            raise StateError(
                "A backfill needs a job whose query has run from the beginning: this one has state of "
                "another query, of a savepoint or of an edit, so its sinks may have rows that no query tells",
                hint="Start the new query as a job of its own, into a table of its own.",
            )
        again = sorted(_tables(self.wanted) & set(stored.left))
        if again:
            raise StateError(
                f"Table {again[0]} has rows of an earlier query of the job, and the last query did not write "
                "it: what the new query would have to take back is not known",
                hint="Write the new query's result into a table of another name.",
            )

    def _epoch(
        self,
        directory: CheckpointDirectory,
        identity: JobIdentity,
        last: EpochCommit | None,
        has: Read | None = None,
    ) -> EpochCommit:
        """Steps 1 to 3: the job's next epoch, as its commit record will have it."""
        before = last or _NOTHING
        epoch = before.epoch + 1
        then, now = self._over(last)  # 1
        if has is not None:
            self._check_tables(then, has)
        directory.fault("replayed")
        tokens = _staged(self.wanted.request, then, now, identity, epoch)  # 2
        directory.fault("staged")
        take_state(self.place, self.now.into, now)  # 3
        directory.fault("linked")
        made = now.commit or _NOTHING
        return replace(
            made,
            epoch=epoch,
            time=max(before.time, made.time),
            offsets={key: before.offsets[key] for key in now.sources if key in before.offsets},
            tokens=tokens,
        )

    def _check_tables(self, then: Replayed, has: Read) -> None:
        """StateError where the tables that get a difference have not what it is a difference to."""
        written = {sink.table.path for sink in self.wanted.sinks}
        tables = copied(self.former, has, self.work.below("tables"))
        spark = epoch_session(self.wanted.request, parallelism(self.wanted.request))
        for table, output in zip(tables, then.outputs, strict=True):
            path = output.sink.table.path
            if path not in written:
                continue
            if isinstance(table, str):
                raise NotSupportedError(f"{_WHAT} from a savepoint into {path} is not supported: {table}")
            other = difference(content(spark, output.rows), content(spark, table), pairs=False)
            if other.limit(1).count():
                raise StateError(
                    f"Table {path} has not the rows that the query of the savepoint gives: somebody has "
                    "written to it since, or before",
                    hint="Start the new query into a table of its own, or from the job's last savepoint.",
                )


def _tables(start: InsertsStart) -> set[str]:
    return {str(sink.table.path) for sink in start.sinks}


def take_state(root: Storage, replays: Storage, now: Replayed) -> None:
    """Links the state of a run in ``replays`` into the job's directory ``root``."""
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
    if then is not None and _written(then) != _written(now):
        raise NotSupportedError(
            f"{_WHAT} of INSERTs that write other columns of table {sink.table.path}, or with other options "
            "or another primary key, is not supported"
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


def _written(output: ReplayedOutput) -> tuple[object, ...]:
    sink = output.sink
    return sink.fields, sorted(sink.options), sink.static_partition, output.rows.keys


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
        kept=tuple(identity.kept),
    )
