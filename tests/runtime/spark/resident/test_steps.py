"""Steps without Spark: tasks travel as bytes over a socket, and run in a thread in place of a worker."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from typing import cast

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from tidemill.changelog.watermarks import Control
from tidemill.connectors.api import ArrowSource, Offset, ReadTasks
from tidemill.connectors.api.source import WholeSource
from tidemill.runtime import graph as g
from tidemill.runtime.spark.epoch import programs
from tidemill.runtime.spark.epoch.arrow_epochs import ArrowEpochs
from tidemill.runtime.spark.epoch.fitness import all_steps
from tidemill.runtime.spark.epoch.programs import Failed, Told
from tidemill.runtime.spark.epoch.reads import Reads
from tidemill.runtime.spark.epoch.runner import Batches, StepRunner, flat
from tidemill.runtime.spark.epoch.steps import Exchanged, Mapped, NodeRows, Part, ReadRows, Step, United
from tidemill.runtime.spark.exchange import Form, block_row
from tidemill.runtime.spark.kernel import Report
from tidemill.runtime.spark.resident import worker
from tidemill.runtime.spark.resident.asked import Asked
from tidemill.runtime.spark.resident.connection import Answer, Question
from tidemill.runtime.spark.resident.workers import Task, answer_of
from tidemill.runtime.spark.spread import READER_COLUMN
from tidemill.runtime.spark.watermark_stage import Handover
from tidemill.spark_internals.pickling import Kept

NODE = g.Read(columns=(), kinds=frozenset(), sequenced=False, source="s", schema="")


def numbers(task: tuple[int, int]) -> Iterator[pa.RecordBatch]:
    yield pa.record_batch({"n": list(range(*task))})


@dataclass(frozen=True, slots=True)
class Known(WholeSource, ArrowSource):
    """A source that is read in these tasks."""

    made: ReadTasks

    def read(self, spark: SparkSession, start: Offset | None, end: Offset) -> DataFrame:
        raise NotImplementedError

    def read_tasks(self, spark: SparkSession, start: Offset | None, end: Offset) -> ReadTasks:
        return self.made


def reads_of(**made: ReadTasks) -> Reads:
    ranges = dict.fromkeys(made, (None, {"read": True}))
    return Reads(cast(SparkSession, None), {name: Known(tasks) for name, tasks in made.items()}, ranges)


@dataclass(frozen=True, slots=True)
class Doubled:
    told: Told

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            self.told.add({f"rows from {batch.column(0)[0]}": {"count": batch.num_rows}})
            yield pa.record_batch({"n": [2 * n for n in batch.column(0).to_pylist()]})


def by_rest(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """A block for each number, in one of three partitions."""
    for batch in batches:
        for n in batch.column(0).to_pylist():
            yield block_row(n % 3, 0, Form.RAW, 0, pa.py_buffer(str(n).encode()))


def for_readers(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Each block for reader 1, those of the first partition for reader 2, too."""
    for block in by_rest(batches):
        for reader in (1, 2) if block.column(0)[0].as_py() == 0 else (1,):
            yield block.add_column(0, READER_COLUMN, pa.array([reader], pa.int32()))


def texts(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    found = sorted(value for batch in batches for value in batch.column("$block").to_pylist())
    yield pa.record_batch({"token": [b" ".join(found).decode()]})


def fails(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        raise ValueError(f"it has {batch.num_rows} rows")
    yield from ()


@dataclass(slots=True)
class Thread:
    """A worker that is none of Spark's. ``whole``: it is asked once for all steps, otherwise for each task.
    ``numbers``: those of the tasks in their stage; ``report``: what the tasks have told."""

    whole: bool
    numbers: list[int] = field(default_factory=list)
    report: Report = field(default_factory=dict)

    def results(self, steps: Sequence[Step], told: Told, **sources: ReadTasks) -> list[Batches]:
        reads = reads_of(**(sources or {"s": ReadTasks([(0, 3), (3, 8)], numbers, 80)}))
        asked = Asked(told=told, kept=Kept(()), run=self._run, report=self.report)
        if not self.whole:
            return flat(StepRunner(reads=reads.of, run=asked.tasks).results(steps))
        arrow = ArrowEpochs(outputs={}, lacking="", kept=asked.kept)
        return asked.whole(arrow.program(steps, reads, told))

    def act_as(self, partition: int) -> None:
        self.numbers.append(partition)

    def _run(self, tasks: Sequence[Task]) -> list[Answer]:
        here, there = Pipe()
        thread = threading.Thread(target=worker.answer, args=(there,))
        thread.start()
        try:
            return [_asked(here, number, task) for number, task in enumerate(tasks)]
        finally:
            here.close()
            thread.join()


def _asked(to: Connection, number: int, task: Task) -> Answer:
    Question(number, task.program, task.given).send(to)
    return answer_of(to)


@pytest.fixture(params=[False, True], ids=["tasks", "whole"])
def thread(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Thread:
    made = Thread(request.param)
    monkeypatch.setattr(worker, "act_as", (lambda _: None) if made.whole else made.act_as)
    monkeypatch.setattr(programs, "act_as", made.act_as)
    return made


def tokens(found: list[Batches]) -> list[list[str]]:
    return [[t for batch in batches for t in batch.column(0).to_pylist()] for batches in found]


def test_blocks_of_all_tasks_come_to_their_partition(thread: Thread) -> None:
    told = Told()
    doubled = Mapped(below=ReadRows(source="s", through=Doubled(told), schema=""), through=by_rest, schema="")
    step = Exchanged(blocks=(doubled,), partitions=3, ticks=False, task=texts, schema="")
    assert tokens(thread.results([step], told)) == [["0 12 6", "10 4", "14 2 8"]]
    assert thread.report == {"rows from 0": {"count": 3}, "rows from 3": {"count": 5}}
    assert told.report == {}
    assert thread.numbers == [0, 1, 0, 1, 2]


def test_tasks_of_several_outputs_are_counted_in_one_row(thread: Thread) -> None:
    steps = [ReadRows(source="s", through=iter, schema="") for _ in range(2)]
    first, second = thread.results(steps, Told())
    assert first == second
    assert thread.numbers == [0, 1, 2, 3]


def test_branches_of_a_union_are_counted_in_one_row(thread: Thread) -> None:
    told = Told()
    read = ReadRows(source="s", through=Doubled(told), schema="")
    both = Mapped(below=United(branches=(read, read)), through=by_rest, schema="")
    step = Exchanged(blocks=(both,), partitions=3, ticks=False, task=texts, schema="")
    assert tokens(thread.results([step], told)) == [["0 0 12 12 6 6", "10 10 4 4", "14 14 2 2 8 8"]]
    assert thread.numbers == [0, 1, 2, 3, 0, 1, 2]


def test_a_node_of_several_readers_runs_once(thread: Thread) -> None:
    whole = ReadRows(source="s", through=for_readers, schema="")
    steps = [
        Exchanged(
            blocks=(Part(key=1, whole=whole, reader=reader),),
            partitions=3,
            ticks=False,
            task=texts,
            schema="",
        )
        for reader in (1, 2)
    ]
    assert tokens(thread.results(steps, Told())) == [["0 3 6", "1 4 7", "2 5"], ["0 3 6", "", ""]]
    assert len(thread.numbers) == 2 + 6


def test_a_tick_comes_to_every_partition(thread: Thread) -> None:
    none = ReadRows(source="none", through=iter, schema="")
    step = Exchanged(blocks=(none,), partitions=3, ticks=True, task=texts, schema="")
    assert len(thread.results([step], Told(), none=ReadTasks([], numbers, 0))[0]) == 3


def test_a_task_that_fails_says_how(thread: Thread) -> None:
    with pytest.raises(Failed, match="ValueError: it has 3 rows"):
        thread.results([ReadRows(source="s", through=fails, schema="")], Told())


@dataclass(frozen=True, slots=True)
class Controlled:
    """As a maker of rows with event time, which leaves no control where it had no rows to begin with."""

    handover: Handover

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        rows = sum(batch.num_rows for batch in batches)
        if rows:
            self.handover.put(Control(origin="s", task=0, mark=rows))
        control = self.handover.take()
        yield pa.record_batch({"mark": ["none" if control is None else str(control.mark)]})


def test_a_task_does_not_take_the_control_of_another(thread: Thread) -> None:
    step = ReadRows(source="s", through=Controlled(Handover(across=False)), schema="")
    found = thread.results([step], Told(), s=ReadTasks([(0, 3), None], maybe_numbers, 80))
    assert tokens(found) == [["3", "none"]]


def maybe_numbers(task: tuple[int, int] | None) -> Iterator[pa.RecordBatch]:
    return iter(()) if task is None else numbers(task)


def test_how_much_is_read() -> None:
    known, unknown = ReadTasks([(0, 3), (3, 8)], numbers, 80), ReadTasks([], numbers, None)
    assert reads_of(a=known, b=known, c=unknown).tasks == 4
    assert reads_of(a=known, b=known).size == 160
    assert reads_of(a=known, b=unknown).size is None


def test_all_steps_with_those_below() -> None:
    whole = Mapped(below=NodeRows(node=NODE), through=iter, schema="")
    parts = tuple(Part(key=1, whole=whole, reader=reader) for reader in (1, 2))
    step = Exchanged(blocks=parts, partitions=1, ticks=False, task=iter, schema="")
    assert sorted(type(s).__name__ for s in all_steps([step])) == ["Exchanged", "Mapped", "NodeRows", "Part"]
