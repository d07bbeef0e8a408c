"""Jobs without Spark: their epochs are resident, and a thread of this process runs the tasks of each step."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from multiprocessing import Pipe
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock, patch

from pyspark import SparkFiles, TaskContext

from tidemill.runtime.job import request, running
from tidemill.runtime.spark.epoch import programs
from tidemill.runtime.spark.kernel import Report
from tidemill.runtime.spark.resident import epochs, worker
from tidemill.runtime.spark.resident.connection import Answer, Question
from tidemill.runtime.spark.resident.workers import Task, answer_of
from tidemill.session import execution


@dataclass(slots=True)
class _Number:
    """The context of a task: its number is all that the tasks of epochs ask for."""

    number: int = 0

    def partitionId(self) -> int:
        return self.number


@dataclass(slots=True)
class _Told:
    """An accumulator."""

    value: Report

    def add(self, term: Report) -> None:
        self.value = {**self.value, **term}


class Job:
    """Runs tasks in a thread."""

    def run(self, tasks: Sequence[Task], given_up: Callable[[], bool]) -> list[Answer]:
        here, there = Pipe()
        thread = threading.Thread(target=worker.answer, args=(there,))
        thread.start()
        try:
            found = []
            for number, task in enumerate(tasks):
                Question(number, task.program, task.given).send(here)
                found.append(answer_of(here))
            return found
        finally:
            here.close()
            thread.join()


class Workers:
    def used(self) -> AbstractContextManager[None]:
        return nullcontext()

    def lent(self, width: int, ends: Callable[[], bool]) -> AbstractContextManager[Any]:
        return nullcontext(Job())

    def beside(self, ends: Callable[[], bool]) -> AbstractContextManager[None]:
        raise AssertionError("an epoch is to be a Spark job")


@contextmanager
def in_process(folder: Path, workers: Workers | None = None) -> Iterator[None]:
    """For the jobs that run within; ``workers``: others than a thread. AssertionError in a job of which an
    epoch would be a Spark job."""
    spark: Any = MagicMock()
    context = spark.sparkContext
    context.master, context.defaultParallelism = "local[2]", 2
    context.getLocalProperty.return_value = ""
    context.getConf.return_value.get = lambda key, default=None: str(folder)
    context.accumulator = lambda value, param: _Told(value)
    number = _Number()

    def act_as(partition: int) -> None:
        number.number = partition

    patches = (
        patch.object(execution, "spark_application", lambda options, **_: spark),
        patch.object(request, "job_session", lambda application, settings: spark),
        patch.object(running, "grouped", lambda *_, **__: nullcontext()),
        patch.object(epochs, "resident_workers", lambda context: workers or Workers()),
        patch.object(programs, "act_as", act_as),
        patch.object(worker, "act_as", act_as),
        patch.object(TaskContext, "get", lambda: number),
        patch.object(SparkFiles, "getRootDirectory", lambda: str(folder)),
    )
    with ExitStack() as stack:
        for each in patches:
            stack.enter_context(each)
        yield
