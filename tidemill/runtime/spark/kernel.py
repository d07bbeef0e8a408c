"""Runs operator steps in a Spark Python worker: Arrow blocks in, state, Arrow batches out.

Operators whose rows need no exchange between them are one task: the upper ones call the lower ones.

The task is a plain picklable value; it reports its manifest and counts through an accumulator, so
the driver learns only of what finished tasks wrote (a crashed attempt's files are never named).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, cast
from uuid import uuid4

import pyarrow as pa
from pyspark import AccumulatorParam

from tidemill.changelog.watermarks import END, NONE, Control, SplitMarks, held_back, split_key
from tidemill.connectors.api import BatchMap, Splits
from tidemill.connectors.worker_errors import WorkerError
from tidemill.errors import InternalError, TidemillError
from tidemill.files.storage import Storage
from tidemill.operators.api import (
    AGAIN,
    HOT,
    TIMER,
    Delayed,
    EpochContext,
    LateRows,
    LocalPhase,
    OperatorSpec,
)
from tidemill.protocols import follows
from tidemill.runtime.spark.exchange import PortRows, Received, received
from tidemill.runtime.spark.late_rows import LateWriter
from tidemill.runtime.spark.settings import ARROW_ROWS_PER_BATCH
from tidemill.runtime.spark.watermark_stage import Handover
from tidemill.state.slices import Slice, key_groups
from tidemill.state.store import StateStore

Report = dict[str, dict[str, Any]]


class Reports(Protocol):
    """Carries what tasks report to the driver: an accumulator, or what travels with a resident task."""

    def add(self, term: Report) -> None: ...


LATE_ROWS = "late rows"
"""What a task's tokens of the table of late rows are reported as, and the id of its sink."""


class ReportParam(AccumulatorParam[Report]):
    """Merges task reports; of a task that ran twice the report that came last is as good as the other."""

    def zero(self, value: Report) -> Report:
        return {}

    def addInPlace(self, value1: Report, value2: Report) -> Report:
        value1.update(value2)
        return value1


@dataclass(frozen=True, slots=True, kw_only=True)
class EpochTime:
    """Event time at the beginning of an epoch. ``reached``: the watermark of every origin (source or
    operator). ``ended``: sources that give no row after this epoch. ``idle``: sources that the epoch does not
    wait for. ``due``: operators that run with or without rows. ``previous``: the processing time of the
    previous epoch, None in the first. ``relaxed``: an idle source may come back behind the watermark that was
    reached without it."""

    reached: Mapping[str, int] = field(default_factory=dict)
    ended: frozenset[str] = frozenset()
    idle: frozenset[str] = frozenset()
    due: frozenset[str] = frozenset()
    previous: int | None = None
    relaxed: bool = False

    def least(self, origins: tuple[str, ...], marks: Mapping[str, int], *, ended: bool = True) -> int:
        """The watermark over ``origins``, of which ``marks`` came with the epoch's rows; ``ended``: what ends
        with the epoch has ended."""
        waited = [o for o in origins if o not in self.idle] or origins
        return min((self._of(o, marks, ended) for o in waited), default=NONE)

    def of_splits(self, origin: str, splits: Splits) -> SplitMarks:
        keys = {name: split_key(origin, name) for name in splits.names}
        waited = tuple(name for name, key in keys.items() if key not in self.idle)
        return SplitMarks(
            firsts=tuple(first for first, _ in splits.read),
            names=tuple(name for _, name in splits.read),
            reached={name: self.reached[key] for name, key in keys.items() if key in self.reached},
            waited=waited or splits.names,
        )

    def _of(self, origin: str, marks: Mapping[str, int], ended: bool) -> int:
        if ended and origin in self.ended:
            return END
        return marks.get(origin, self.reached.get(origin, NONE))


@dataclass(frozen=True, slots=True, kw_only=True)
class ShuffledInput:
    """An input that arrives as exchange blocks. ``number``: its number among the inputs of the task.
    ``origins``: the origins of its event time, empty if the operator does not need it. ``counted``: its rows
    count as rows. ``behind``: as in ``Incoming``."""

    number: int
    schema: pa.Schema | None
    origins: tuple[str, ...] = ()
    counted: bool = True
    behind: int = 0

    @property
    def count(self) -> int:
        return 1

    def rows(self, blocks: tuple[Received, ...], partition: int, time: EpochTime) -> Incoming:
        came = blocks[self.number]
        return Incoming(
            rows=came,
            watermark=time.least(self.origins, came.marks),
            origins=self.origins,
            counted=self.counted,
            behind=self.behind,
            read=time.least(self.origins, came.marks, ended=False),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainedInput:
    """An input that another operator makes in the same partition: it runs in the same task."""

    task: KernelTask
    shape: PortRows
    schema: pa.Schema | None
    origins: tuple[str, ...] = ()
    behind: int = 0

    @property
    def count(self) -> int:
        return self.task.count

    def rows(self, blocks: tuple[Received, ...], partition: int, time: EpochTime) -> Incoming:
        output, watermark = self.task.run(blocks, partition)
        rows = Received([] if output is None else [self.shape.of(output)], [])
        return Incoming(rows=rows, watermark=watermark, origins=self.origins, behind=self.behind)


@dataclass(frozen=True, slots=True, kw_only=True)
class Incoming:
    """A port's rows in one epoch, and how far their time has come; the operator holds that back by ``behind``
    ms. ``read``: how far it has come by what has been read, whether or not that is the end."""

    rows: Received
    watermark: int
    origins: tuple[str, ...]
    counted: bool = True
    behind: int = 0
    read: int = NONE

    @property
    def reached(self) -> int:
        return held_back(self.watermark, self.behind)

    def not_before(self, reached: int) -> Incoming:
        """With rows that come after ``reached``, whatever their own source says."""
        if not self.origins or reached == NONE:
            return self
        floor = reached if reached == END else reached + self.behind
        return replace(self, rows=self.rows.not_before(floor))


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelTask:
    """- ``base``: the state after the previous epoch, per partition.
    - ``inputs``: one per port.
    - ``then``: takes the output in the same worker: the exchange of the next operator, or a sink.
    - ``clocked``: the sources below an operator by processing time; their watermark is the clock.
    - ``late``: takes late rows.
    - ``handover``: takes the control of the output's event time, if an operator above needs it.
    - ``run_id``: the id of the driver's run, a part of all file names.
    """

    operator: str
    spec: OperatorSpec
    state_root: Storage
    base: dict[int, tuple[Slice, ...]]
    partitions: int
    run_id: str
    epoch: int
    time: int
    inputs: tuple[ShuffledInput | ChainedInput, ...]
    then: BatchMap | None
    report: Reports = field(compare=False)
    event_time: EpochTime = field(default_factory=EpochTime)
    clocked: frozenset[str] = frozenset()
    late: LateWriter | None = None
    handover: Handover | None = None
    first: bool = True
    """Its rows come from sources, not from other operators."""

    @property
    def count(self) -> int:
        """How many inputs come as blocks."""
        return sum(i.count for i in self.inputs)

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        partition, blocks = received(batches, self.count, self.event_time.reached)
        try:
            output, watermark = self.run(blocks, partition)
        except TidemillError as e:
            raise WorkerError(e) from None
        if self.handover is not None:
            control = Control(origin=self.operator, task=max(partition, 0), mark=watermark, whole=True)
            self.handover.put(control)
        elif output is None:
            return
        emitted = [] if output is None else _batches(output)
        yield from emitted if self.then is None else self.then(emitted)

    def run(self, blocks: tuple[Received, ...], partition: int) -> tuple[pa.Table | None, int]:
        """The output of the step and its watermark; None where nothing came in, neither rows nor time."""
        inputs = tuple(i.rows(blocks, partition, self.event_time) for i in self.inputs)
        watermark = min((i.reached for i in inputs if i.origins), default=NONE)
        if self.event_time.relaxed:
            watermark = max(watermark, self._own_before())
            inputs = tuple(i.not_before(self._own_before()) for i in inputs)
        called = self.operator in self.event_time.due or any(i.origins for i in inputs)
        timed = called and partition >= 0
        if not timed and not any(i.rows.rows for i in inputs):
            return None, self._handed_on(watermark)
        return self._step(inputs, watermark, partition), self._handed_on(watermark)

    def _marks(self, inputs: tuple[Incoming, ...], watermark: int) -> dict[str, int]:
        """How far time has come, by origin; an operator above that runs in this task has it from here."""
        marks = {o: m for i in inputs for o, m in i.rows.marks.items()}
        return marks | ({self.operator: self._handed_on(watermark)} if any(i.origins for i in inputs) else {})

    def _handed_on(self, watermark: int) -> int:
        return watermark if watermark in (NONE, END) else watermark - self._delay

    def _step(self, inputs: tuple[Incoming, ...], watermark: int, partition: int) -> pa.Table:
        base, groups = self.base.get(partition), key_groups(partition, self.partitions)
        store = StateStore.open(
            self.state_root,
            self.operator,
            partition,
            base,
            self.epoch,
            groups=groups,
            # Spark may run the operator twice in one attempt of a task: for two inputs of a union.
            attempt=f"{self.run_id}-{uuid4().hex[:12]}",
            now=self.time,
        )
        step = EpochContext(
            epoch=self.epoch,
            time=self.time,
            partition=partition,
            first=base is None,
            watermark=self._clock() if self.clocked else watermark,
            before=self._clock_before() if self.clocked else self._event_before(inputs),
            reached=min((i.read for i in inputs if i.origins), default=NONE),
            late=LateRows(wanted=self.late is not None),
        )
        output = self._stepped(tuple(i.rows for i in inputs), store, step)
        manifest = store.flush()
        self.report.add(
            {
                f"{self.operator}/{partition}": {
                    "epoch": self.epoch,
                    "operator": self.operator,
                    "partition": partition,
                    "of": self.partitions,
                    "manifest": manifest,
                    "files": store.files,
                    "groups": groups,
                    "rows_in": sum(i.rows.rows for i in inputs if i.counted),
                    "rows_out": output.num_rows,
                    "state_rows": store.manifest.rows,
                    "state_bytes": store.manifest.size,
                    "largest_key": max((i.rows.largest_key for i in inputs if i.counted), default=0),
                    "first": self.first,
                    "late": step.late.count,
                    LATE_ROWS: [] if self.late is None else self.late.tokens(step.late, self.operator),
                    TIMER: step.notes.get(TIMER),
                    AGAIN: AGAIN in step.notes,
                    HOT: step.notes.get(HOT, []),
                    "marks": self._marks(inputs, watermark),
                }
            }
        )
        return output

    def _clock(self) -> int:
        """More rows may come at the time that it is now."""
        return END if self.clocked <= self.event_time.ended else self.time - 1

    def _clock_before(self) -> int:
        return NONE if self.event_time.previous is None else self.event_time.previous - 1

    def _own_before(self) -> int:
        """What the operator itself had reached."""
        mark = self.event_time.reached.get(self.operator, NONE)
        return mark if mark in (NONE, END) else mark + self._delay

    @property
    def _delay(self) -> int:
        """By how many ms the time of what it gives is behind that of its inputs."""
        return cast(Delayed, self.spec).delay if follows(self.spec, Delayed) else 0

    def _event_before(self, inputs: tuple[Incoming, ...]) -> int:
        if self.event_time.relaxed:
            return self._own_before()
        return min((self._before(i) for i in inputs if i.origins), default=NONE)

    def _before(self, port: Incoming) -> int:
        return held_back(self.event_time.least(port.origins, {}, ended=False), port.behind)

    def _stepped(self, inputs: tuple[Received, ...], store: StateStore, step: EpochContext) -> pa.Table:
        """Where some of the rows came combined, the operator says how they go with the others."""
        if not any(i.partial for i in inputs):
            tables = tuple(_whole(i.raw, port.schema) for i, port in zip(inputs, self.inputs, strict=True))
            return self.spec.step(tables, store, step)
        if not isinstance(self.spec, LocalPhase):
            raise InternalError(f"operator {self.operator} got partial rows but has no local phase")
        (only,) = inputs
        spec, table = self.spec.merged(only.raw, only.partial)
        return spec.step((table,), store, step)


def _batches(output: pa.Table) -> list[pa.RecordBatch]:
    batches: list[pa.RecordBatch] = output.combine_chunks().to_batches(max_chunksize=ARROW_ROWS_PER_BATCH)
    return batches


def _whole(tables: list[pa.Table], schema: pa.Schema | None) -> pa.Table:
    if tables:
        return pa.concat_tables(tables)
    if schema is None:
        raise InternalError("an operator of several inputs, or of time, needs their schemas")
    return schema.empty_table()


@dataclass(frozen=True, slots=True, kw_only=True)
class InPlace:
    """A task whose input's rows lie in their partition already: written as blocks, and read, in one go."""

    writer: BatchMap
    task: KernelTask

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return self.task(self.writer(batches))
