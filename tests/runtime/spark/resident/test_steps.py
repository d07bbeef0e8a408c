"""Steps without Spark: tasks travel as bytes over a socket, and run in a thread in place of a worker."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from typing import cast

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from tidemill.connectors.api import ArrowSource, Offset, ReadTasks
from tidemill.connectors.api.source import WholeSource
from tidemill.runtime import graph as g
from tidemill.runtime.spark.epoch.reads import Reads
from tidemill.runtime.spark.epoch.steps import Exchanged, Mapped, NodeRows, Part, ReadRows, United
from tidemill.runtime.spark.exchange import Form, block_row
from tidemill.runtime.spark.resident import worker
from tidemill.runtime.spark.resident.connection import Answer, Question
from tidemill.runtime.spark.resident.fitness import all_steps
from tidemill.runtime.spark.resident.steps import StepRunner
from tidemill.runtime.spark.resident.worker import Told
from tidemill.runtime.spark.resident.workers import Failed, Task, answer_of
from tidemill.runtime.spark.spread import READER_COLUMN
from tidemill.spark_internals.pickling import Kept

NODE = g.Read(columns=(), kinds=frozenset(), sequenced=False, source="s", schema="")
Batches = Iterable[pa.RecordBatch]


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

    def __call__(self, batches: Batches) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            self.told.add({f"rows from {batch.column(0)[0]}": {"count": batch.num_rows}})
            yield pa.record_batch({"n": [2 * n for n in batch.column(0).to_pylist()]})


def by_rest(batches: Batches) -> Iterator[pa.RecordBatch]:
    """A block for each number, in one of three partitions."""
    for batch in batches:
        for n in batch.column(0).to_pylist():
            yield block_row(n % 3, 0, Form.RAW, 0, pa.py_buffer(str(n).encode()))


def for_readers(batches: Batches) -> Iterator[pa.RecordBatch]:
    """Each block for reader 1, those of the first partition for reader 2, too."""
    for block in by_rest(batches):
        for reader in (1, 2) if block.column(0)[0].as_py() == 0 else (1,):
            yield block.add_column(0, READER_COLUMN, pa.array([reader], pa.int32()))


def texts(batches: Batches) -> Iterator[pa.RecordBatch]:
    found = sorted(value for batch in batches for value in batch.column("$block").to_pylist())
    yield pa.record_batch({"token": [b" ".join(found).decode()]})


def fails(batches: Batches) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        raise ValueError(f"it has {batch.num_rows} rows")
    yield from ()


@dataclass(slots=True)
class Thread:
    """A worker that is none of Spark's; ``asked``: the numbers of its tasks."""

    asked: list[int]

    def run(self, tasks: Sequence[Task]) -> list[Answer]:
        here, there = Pipe()
        thread = threading.Thread(target=worker.answer, args=(there,))
        thread.start()
        try:
            return [self._asked(here, number, task) for number, task in enumerate(tasks)]
        finally:
            here.close()
            thread.join()

    def _asked(self, to: Connection, number: int, task: Task) -> Answer:
        self.asked.append(number)
        Question(number, task.program, task.given).send(to)
        return answer_of(to)


@pytest.fixture
def thread(monkeypatch: pytest.MonkeyPatch) -> Thread:
    monkeypatch.setattr(worker, "act_as", lambda partition: None)
    return Thread([])


def runner(thread: Thread, told: Told) -> StepRunner:
    reads = reads_of(s=ReadTasks([(0, 3), (3, 8)], numbers, 80))
    return StepRunner(reads=reads, told=told, kept=Kept(()), run=thread.run)


def tokens(found: list[list[list[pa.RecordBatch]]]) -> list[list[str]]:
    return [[t for batches in tasks for b in batches for t in b.column(0).to_pylist()] for tasks in found]


def test_blocks_of_all_tasks_come_to_their_partition(thread: Thread) -> None:
    told = Told()
    made = runner(thread, told)
    doubled = Mapped(below=ReadRows(source="s", through=Doubled(told), schema=""), through=by_rest, schema="")
    step = Exchanged(blocks=(doubled,), partitions=3, ticks=False, task=texts, schema="")
    assert tokens(made.results([step])) == [["0 12 6", "10 4", "14 2 8"]]
    assert made.report == {"rows from 0": {"count": 3}, "rows from 3": {"count": 5}}
    assert told.report == {}
    assert thread.asked == [0, 1, 0, 1, 2]


def test_tasks_of_several_outputs_are_counted_in_one_row(thread: Thread) -> None:
    steps = [ReadRows(source="s", through=iter, schema="") for _ in range(2)]
    first, second = runner(thread, Told()).results(steps)
    assert first == second
    assert thread.asked == [0, 1, 2, 3]


def test_branches_of_a_union_are_counted_in_one_row(thread: Thread) -> None:
    told = Told()
    read = ReadRows(source="s", through=Doubled(told), schema="")
    both = Mapped(below=United(branches=(read, read)), through=by_rest, schema="")
    step = Exchanged(blocks=(both,), partitions=3, ticks=False, task=texts, schema="")
    assert tokens(runner(thread, told).results([step])) == [["0 0 12 12 6 6", "10 10 4 4", "14 14 2 2 8 8"]]
    assert thread.asked == [0, 1, 2, 3, 0, 1, 2]


def test_a_node_of_several_readers_runs_once(thread: Thread) -> None:
    whole = ReadRows(source="s", through=for_readers, schema="")
    steps = [
        Exchanged(
            blocks=(Part(node=NODE, whole=whole, reader=reader),),
            partitions=3,
            ticks=False,
            task=texts,
            schema="",
        )
        for reader in (1, 2)
    ]
    assert tokens(runner(thread, Told()).results(steps)) == [["0 3 6", "1 4 7", "2 5"], ["0 3 6", "", ""]]
    assert len(thread.asked) == 2 + 6


def test_a_tick_comes_to_every_partition(thread: Thread) -> None:
    none = ReadRows(source="none", through=iter, schema="")
    step = Exchanged(blocks=(none,), partitions=3, ticks=True, task=texts, schema="")
    reads = reads_of(none=ReadTasks([], numbers, 0))
    made = StepRunner(reads=reads, told=Told(), kept=Kept(()), run=thread.run)
    assert [len(batches) for batches in made.results([step])[0]] == [1, 1, 1]


def test_a_task_that_fails_says_how(thread: Thread) -> None:
    with pytest.raises(Failed, match="ValueError: it has 3 rows"):
        runner(thread, Told()).results([ReadRows(source="s", through=fails, schema="")])


def test_how_much_is_read() -> None:
    known, unknown = ReadTasks([(0, 3), (3, 8)], numbers, 80), ReadTasks([], numbers, None)
    assert reads_of(a=known, b=known, c=unknown).tasks == 4
    assert reads_of(a=known, b=known).size == 160
    assert reads_of(a=known, b=unknown).size is None


def test_all_steps_with_those_below() -> None:
    whole = Mapped(below=NodeRows(node=NODE), through=iter, schema="")
    parts = tuple(Part(node=NODE, whole=whole, reader=reader) for reader in (1, 2))
    step = Exchanged(blocks=parts, partitions=1, ticks=False, task=iter, schema="")
    assert sorted(type(s).__name__ for s in all_steps([step])) == ["Exchanged", "Mapped", "NodeRows", "Part"]
