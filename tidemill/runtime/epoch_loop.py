"""One streaming job: the epoch loop in the driver.

The steps of an epoch are the commit protocol. A crash between any two steps loses nothing, and writes nothing
twice:

1. *plan*: ask every source how far it goes, and write this intent to ``<n>.plan.json``.
2. *run*: one Spark job, or work of resident workers; kernels write new runs, and sinks stage their output
   under the epoch's number.
3. *commit*: one atomic ``<n>.commit.json`` with offsets, manifests and sink tokens.
4. *publish*: sinks make the staged epoch visible by token, idempotently; rows go to the collector.
5. *forget*: remove records and state files that no reader needs any more; then plan the next epoch.

Recovery reads the newest commit, and makes sure that no earlier owner can add another commit. It
publishes the commit again (step 4), unless the records show that it was published. A plan without a
commit runs again with the same ranges, unless a range has passed with the process that planned it.

If an epoch *fails* in step 2 (bad input, full disk), the job ends, and nothing of the epoch remains:
its staged output and its plan record are removed. A restarted job plans the epoch again, from the input
at that time. If only processes were lost, step 2 runs again, as after a crash.

Between two epochs the job's thread answers requests for a snapshot (see ``snapshots``).
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Hashable, Iterator, Mapping
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field, replace
from functools import partial

import pyarrow as pa
from pyspark import Accumulator
from pyspark.sql import SparkSession

from tidemill.connectors.api import (
    GroupedSink,
    Offset,
    ReadLimit,
    Sink,
    Source,
)
from tidemill.deep_calls import with_room
from tidemill.errors import LostDriverError, LostProcessError, TidemillError
from tidemill.operators.api import AGAIN
from tidemill.runtime import graph as g
from tidemill.runtime import hot_keys
from tidemill.runtime.checkpoint.directory import CheckpointDirectory
from tidemill.runtime.checkpoint.epochs import EpochCommit, EpochPlan, recorded
from tidemill.runtime.epoch_parallelism import EpochParallelism
from tidemill.runtime.event_time import timers
from tidemill.runtime.event_time.epochs import EventTime
from tidemill.runtime.events import EpochBegun, JobEvent, JobResumed
from tidemill.runtime.late_table import LateTable
from tidemill.runtime.limits import Limits
from tidemill.runtime.look_ahead import looking_ahead
from tidemill.runtime.outputs import CollectOutput, Made, SinkOutput
from tidemill.runtime.progress import EpochProgress, so_far
from tidemill.runtime.read_rows import is_reading
from tidemill.runtime.snapshots import Held, SnapshotRequests
from tidemill.runtime.spark.block_files import block_folder
from tidemill.runtime.spark.epoch.arrow_epochs import ArrowEpochs
from tidemill.runtime.spark.epoch.facts import EpochFacts
from tidemill.runtime.spark.epoch.reads import Reads
from tidemill.runtime.spark.epoch.spark_job import run_as_spark_job
from tidemill.runtime.spark.failures import translated
from tidemill.runtime.spark.kernel import LATE_ROWS, Report, ReportParam
from tidemill.runtime.spark.pools import in_turn
from tidemill.runtime.spark.resident.epochs import ResidentEpochs
from tidemill.runtime.stages import Stages
from tidemill.state.cleanup import StateCollector
from tidemill.state.slices import Slice, Slices
from tidemill.state.storage import StateFiles

IDLE_POLL_SECONDS = 0.1
RUNS = 5
"""How often an epoch is run whose processes get lost. Spark tries a task three or four times, and each time
may meet another worker that died with its daemon: there are as many as ran beside each other."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobSettings:
    """``latency``: the least seconds between two epochs of a live source. ``resumable``: the checkpoint
    directory outlives the job. ``small_bytes``: as in ``EpochParallelism``, where rows stay in Arrow.
    ``tables``: the paths of the sources' tables, for errors."""

    job_id: str
    name: str
    parallelism: int
    limit: ReadLimit
    latency: float
    resumable: bool = True
    small_bytes: int = 0
    tables: Mapping[str, str] = field(default_factory=dict)


@dataclass(slots=True, kw_only=True)
class StreamingJob:
    """``arrow``: has the outputs by id, which are exactly one CollectOutput, or any number of SinkOutputs."""

    spark: SparkSession
    sources: dict[str, Source]
    arrow: ArrowEpochs
    checkpoint: CheckpointDirectory
    settings: JobSettings
    on_progress: Callable[[EpochProgress], None]
    on_event: Callable[[JobEvent], None] = lambda _: None
    clock: Callable[[], float] = time.time
    late: LateTable | None = None
    stopping: threading.Event = field(default_factory=threading.Event)
    draining: bool = False
    """Stopped, it first lets go of what waits for time to pass: its sources are taken to have ended."""
    replays: bool = False
    """Its sources are histories: it ends when they have nothing more, bounded or not."""
    resident: ResidentEpochs | None = None
    requests: SnapshotRequests = field(default_factory=SnapshotRequests)
    _report: Accumulator[Report] = field(init=False)
    _stages: Stages = field(init=False)
    _limits: Limits = field(init=False)
    _parallelism: EpochParallelism = field(init=False)
    _event_time: EventTime = field(init=False)
    _whole: frozenset[str] = frozenset()
    """Operators that get their rows as they are, as combined ones once did not tell them enough, and
    projections that the JVM computes, as a kernel once could not."""
    _hot: hot_keys.Hot = field(default_factory=dict)
    _commit: EpochCommit = field(
        default_factory=lambda: EpochCommit(epoch=0, time=0, offsets={}, manifests={}, tokens={})
    )

    _state: Slices = field(default_factory=dict)
    _state_files: StateCollector = field(init=False)

    def __post_init__(self) -> None:
        self._state_files = StateCollector(StateFiles.open(self.checkpoint.state_root))
        # One for all epochs: Spark never forgets an accumulator.
        self._report = self.spark.sparkContext.accumulator({}, ReportParam())
        nodes = [output.node for output in self.arrow.outputs.values()]
        self._stages, self._limits = with_room(lambda: Stages.of(nodes)), Limits(nodes)
        self._event_time = EventTime(self.sources, list(self._nodes()))
        small = 0 if self.arrow.lacking else self.settings.small_bytes
        self._parallelism = EpochParallelism.of_nodes(self._nodes(), self.settings.parallelism, small)

    def run(self) -> None:
        """Runs epochs until bounded sources end, or all LIMITs over them are full, or ``stopping`` is set.
        Raises TidemillError."""
        try:
            with nullcontext() if self.resident is None else self.resident.workers.used():
                self._run_epochs()
        finally:
            self.requests.close()
            for source in self.sources.values():
                source.close()

    def _run_epochs(self) -> None:
        self._event_time.started = int(self.clock() * 1000)
        self._recover()
        while not self.stopping.is_set():
            self.requests.answer(self._hold)
            begun = self.clock()
            plan = self._plan()
            if plan is None:
                if self.replays or self._finished():
                    break
                self._wait(max(IDLE_POLL_SECONDS, self.settings.latency))
                continue
            self._epoch(plan, begun)
            if self._bounded() and self._limits.reached:
                break
            if not self._bounded():
                self._wait(self.settings.latency - (self.clock() - begun))
        if self.stopping.is_set() and not self.draining:
            self._note_stop()
            return
        if self.draining:
            self._drain()
        self._note_published()
        for sink in self._sinks().values():
            sink.finish()

    def _wait(self, seconds: float) -> None:
        """Waits for that long, or until the next timer is due."""
        now = self.clock()
        timer = self._event_time.next_timer(self._commit, int(now * 1000))
        if timer is not None:
            seconds = min(seconds, timer / 1000 - now)
        end = time.monotonic() + seconds
        while not self.stopping.wait(min(max(0.0, end - time.monotonic()), IDLE_POLL_SECONDS)):
            self.requests.answer(self._hold)
            if time.monotonic() >= end:
                return

    def _hold(self) -> Held:
        """Between two epochs: what the last one has left."""
        manifests = {m for names in self._manifests().values() for m in names}
        return Held(commit=self.last_commit, release=self._state_files.hold(manifests))

    @property
    def last_commit(self) -> EpochCommit | None:
        """None before the first epoch."""
        return self._commit if self._commit.epoch else None

    def _drain(self) -> None:
        """Runs one more epoch, without rows, at the end of time."""
        offsets: dict[str, Offset] = self._commit.offsets
        timed = self._event_time.open(self._commit)
        if not timed or not all(key in offsets for key in self.sources):
            return
        plan = EpochPlan(
            epoch=self._commit.epoch + 1,
            time=max(int(self.clock() * 1000), self._commit.time),
            start=dict(offsets),
            end=dict(offsets),
            ended=timed,
        )
        self.checkpoint.write_plan(plan)
        self._epoch(plan, self.clock())

    # -- recovery ---------------------------------------------------------------------------------

    def _recover(self) -> None:
        last = self.checkpoint.closed(self.checkpoint.last_commit())
        found = {} if last is None else last.slices
        if last is not None:
            # State that an earlier query of the job had and this one lacks is not handed on.
            last = last.of({n.operator for n in self._nodes() if isinstance(n, g.Keyed)})
            self._commit = replace(last, timers=timers.spread(last.timers, self._parallelism.of_operator))
            self.on_event(JobResumed(job_id=self.settings.job_id, epoch=last.epoch))
            if not self.checkpoint.is_published(last):
                self._publish(last)
            self._state, self._hot = self._parallelism.resliced(last.slices), last.hot
            self._parallelism.resume()
        # All of it stays until the next start: the earlier query goes on if this one commits nothing.
        self._state_files.sweep(s.manifest for op in found.values() for part in op.values() for s in part)
        unfinished = self.checkpoint.planned(self._commit.epoch + 1)
        if unfinished is not None and not self._can_run(unfinished):
            self.checkpoint.remove_plan(unfinished.epoch)
            unfinished = None
        for sink in self._sinks().values():
            sink.discard(self._commit.epoch + 1)
        if unfinished is not None:
            self._epoch(unfinished, self.clock())

    def _can_run(self, plan: EpochPlan) -> bool:
        """An earlier process has planned it and not committed: its query may have had other sources, and some
        ranges pass with their process."""
        if plan.end.keys() != self.sources.keys():
            return False
        return all(s.is_readable(plan.start[key], plan.end[key]) for key, s in self.sources.items())

    def _rescale(self, partitions: int) -> None:
        """Gives operators another number of partitions from this epoch on."""
        if partitions != self._parallelism.now:
            self._parallelism.now = partitions
            self._state = self._parallelism.resliced(self._state)
            spread = timers.spread(self._commit.timers, self._parallelism.of_operator)
            self._commit = replace(self._commit, timers=spread)

    # -- one epoch --------------------------------------------------------------------------------

    def _plan(self) -> EpochPlan | None:
        """Step 1; None if no source has new rows."""
        commit, event_time = self._commit, self._event_time
        start = {key: commit.offsets.get(key) for key in self.sources}
        limit = self._limits.cut(self.settings.limit)
        held = event_time.held(commit)
        end = {
            key: s.next_offset(begin, limit) if begin is None or key not in held else begin
            for (key, s), begin in zip(self.sources.items(), start.values(), strict=True)
        }
        ended = event_time.ended(end)
        # A clock that is set back stands still: what is stored must not come from the future.
        now = max(int(self.clock() * 1000), commit.time)
        busy = {key for key, s in self.sources.items() if not s.is_empty(start[key], end[key])}
        event_time.check_open(commit, busy, self.settings.tables)
        idle = event_time.idle(commit, now) - busy - held
        if not (busy or event_time.has_news(commit, ended, idle, now)):
            return None
        plan = EpochPlan(
            epoch=commit.epoch + 1,
            time=now,
            start=dict(start),
            end=end,
            ended=sorted(ended),
            idle=sorted(idle | event_time.idle_splits(commit, start, end, now)),
        )
        self.checkpoint.write_plan(plan)
        self.checkpoint.fault("planned")
        return plan

    def _epoch(self, plan: EpochPlan, begun: float) -> None:
        self.on_event(self._begun(plan))
        try:
            limit = self._limits.cut(self.settings.limit)
            with looking_ahead(self.sources, plan.end, limit):
                rows, tokens = self._run_through(plan)  # step 2, which reports the tokens of late rows
        except Exception:
            self._take_back(plan)
            self._note_stop()
            raise
        self.checkpoint.fault("ran")
        # What a task of an earlier epoch says now, that outlived it, does not count.
        done = {key: task for key, task in self._report.value.items() if task["epoch"] == plan.epoch}
        if self.late is not None:
            tokens[LATE_ROWS] = sorted(t for task in done.values() for t in task.get(LATE_ROWS, ()))
        commit = self._committed(plan, done, tokens)
        self.checkpoint.write_commit(commit)  # step 3
        self._commit, self._state = commit, commit.slices
        self.checkpoint.fault("committed")
        self._publish(commit)  # step 4
        if rows is not None:
            self._collect(commit.epoch, rows)
        self._limits.hear(done)
        self._parallelism.hear(done)
        self.checkpoint.fault("published")
        self.checkpoint.forget_before(commit.epoch)  # step 5
        self._remove_unneeded(commit.epoch, done)
        seconds, job_id = self.clock() - begun, self.settings.job_id
        mark = self._event_time.least_watermark(commit)
        self.on_progress(
            EpochProgress.of(plan, done, tokens, rows, seconds=seconds, job_id=job_id, watermark=mark)
        )

    def _remove_unneeded(self, epoch: int, report: Report) -> None:
        for task in report.values():
            if task.get("files") is not None:
                self._state_files.know(task["manifest"], task["files"])
        self._state_files.collect(self._manifests(), _touched(report), epoch)

    def _begun(self, plan: EpochPlan) -> EpochBegun:
        return EpochBegun(
            job_id=self.settings.job_id,
            epoch=plan.epoch,
            so_far=partial(so_far, self.spark.sparkContext, self._report),
        )

    def _run_through(self, plan: EpochPlan) -> Made:
        """Step 2, repeated as needed. Nothing counts of a run that failed, or that lacked information.
        Raises TidemillError."""
        left = RUNS
        while True:
            left -= 1
            self._report.value = {}
            try:
                found = self._run(plan)
                if not self._learned(plan):
                    return found
                left += 1
            except Exception as e:
                error = translated(e)
                # What a task leaves out because it asks for another run may be what others miss.
                again = self._learned(plan) or (left and _may_succeed(error))
                if not (again and self.checkpoint.is_owned):
                    raise error from e
            self._discard(plan)

    def _learned(self, plan: EpochPlan) -> bool:
        """Whether the tasks of the run ask for another run of the epoch, done in another way."""
        tasks = [task for task in self._report.value.values() if task["epoch"] == plan.epoch]
        again, hot = {t["operator"] for t in tasks if t.get(AGAIN)}, hot_keys.updated(self._hot, tasks)
        known = again <= self._whole and hot == self._hot
        self._whole, self._hot = self._whole | again, hot
        return not known

    def _run(self, plan: EpochPlan) -> Made:
        context = self.spark.sparkContext
        ranges = {key: (plan.start[key], plan.end[key]) for key in self.sources}
        reads = Reads(self.spark, self.sources, ranges)
        self._rescale(self._parallelism.of_epoch(reads))
        with block_folder(context) as folder:
            facts = self._facts(plan, reads, folder)
            discard = partial(self._discard, plan)
            made = None if self.resident is None else self.resident.run(facts, reads, discard)
            if made is not None:
                return made
            beside = nullcontext() if self.resident is None else self.resident.beside()
            with beside, in_turn(context):
                return run_as_spark_job(self.spark, self.arrow, facts, reads)

    def _facts(self, plan: EpochPlan, reads: Reads, folder: str | None) -> EpochFacts:
        return EpochFacts(
            sources=self.sources,
            ranges=reads.ranges,
            state_root=self.checkpoint.state_root,
            run_id=self.checkpoint.run_id,
            state=self._state,
            epoch=plan.epoch,
            time=plan.time,
            parallelism=self._parallelism.now,
            report=self._report,
            stages=self._stages,
            event_time=self._event_time.of_epoch(self._commit, plan),
            late=None if self.late is None else self.late.writer(plan.epoch),
            folder=folder,
            whole=self._whole,
            hot=self._hot,
            is_small=self._parallelism.is_small,
        )

    def _take_back(self, plan: EpochPlan) -> None:
        """Removes the output and the intent of a failed epoch. If a file cannot be removed now, because
        the disk may be the cause, the next start removes it. If another job has taken over the
        directory, nothing is removed."""
        if not self.checkpoint.is_owned:
            return
        self._discard(plan)
        with suppress(TidemillError):
            self.checkpoint.remove_plan(plan.epoch)

    def _discard(self, plan: EpochPlan) -> None:
        """Removes staged output, unless another job may be taking over the directory: then the output may
        be its own."""
        for sink in self._sinks().values() if self.checkpoint.is_locked else ():
            with suppress(TidemillError, OSError):
                sink.discard(plan.epoch)

    def _note_published(self) -> None:
        """The next start does not look for what sinks have published then: a reader may have moved it."""
        if self.settings.resumable and self._commit.epoch and self.checkpoint.is_owned:
            with suppress(TidemillError):
                self.checkpoint.note_published(self._commit.epoch)

    def _note_stop(self) -> None:
        """Sources may record where they stopped. A job can also start again without these records."""
        self._note_published()
        if not (self.settings.resumable and self.checkpoint.is_owned):
            return
        for key, source in self.sources.items():
            with suppress(TidemillError, OSError):
                source.stopped(self._commit.offsets.get(key))

    def _committed(self, plan: EpochPlan, report: Report, tokens: dict[str, list[str]]) -> EpochCommit:
        state = {op: dict(parts) for op, parts in self._state.items()}
        for task in report.values():
            if task["manifest"] is not None:
                slices = (Slice(task["manifest"], *task["groups"]),)
                state.setdefault(task["operator"], {})[task["partition"]] = slices
        return EpochCommit(
            epoch=plan.epoch,
            time=plan.time,
            offsets=dict(plan.end),
            manifests=recorded(state),
            tokens=tokens,
            watermarks=self._event_time.watermarks_after(self._commit, plan, report),
            timers=timers.updated(self._commit.timers, report),
            active=self._event_time.active_after(self._commit, plan),
            idle=plan.idle,
            hot=self._hot,
        )

    def _publish(self, commit: EpochCommit) -> None:
        """Publishes the epoch. Sinks that can commit together do so; see ``GroupedSink``."""
        self.checkpoint.begin_showing()
        groups: dict[Hashable, list[tuple[GroupedSink, list[str]]]] = {}
        for key, sink in self._sinks().items():
            tokens = commit.tokens.get(key, [])
            if isinstance(sink, GroupedSink):
                groups.setdefault(sink.group, []).append((sink, tokens))
            else:
                sink.publish(commit.epoch, tokens)
        for parts in groups.values():
            parts[0][0].publish_group(commit.epoch, parts)

    def _collect(self, epoch: int, rows: pa.Table) -> None:
        for output in self.arrow.outputs.values():
            if isinstance(output, CollectOutput):
                output.collector(epoch, rows)

    # -- facts ------------------------------------------------------------------------------------

    def _manifests(self) -> dict[str, set[str]]:
        """The manifests of the last commit, by operator."""
        return {
            op: {s.manifest for part in parts.values() for s in part} for op, parts in self._state.items()
        }

    def _nodes(self) -> Iterator[g.ExecNode]:
        return (node for output in self.arrow.outputs.values() for node in output.node.walk())

    def _sinks(self) -> dict[str, Sink]:
        sinks = {key: o.sink for key, o in self.arrow.outputs.items() if isinstance(o, SinkOutput)}
        return sinks if self.late is None else {**sinks, LATE_ROWS: self.late.sink}

    def _bounded(self) -> bool:
        return all(s.is_bounded for s in self.sources.values())

    def _finished(self) -> bool:
        offsets: dict[str, Offset] = self._commit.offsets
        return all(s.is_bounded and s.is_finished(offsets.get(k)) for k, s in self.sources.items())


def _touched(report: Report) -> set[tuple[str, int]]:
    return {(task["operator"], task["partition"]) for task in report.values() if not is_reading(task)}


def _may_succeed(error: TidemillError) -> bool:
    """Whether the same work may succeed in other processes."""
    return isinstance(error, LostProcessError) and not isinstance(error, LostDriverError)
