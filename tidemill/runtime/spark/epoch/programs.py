"""What a Python worker is asked to run without frames: a task of a step, or all tasks of a small epoch."""

from __future__ import annotations

import pickle
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import pyarrow as pa
import pyarrow.ipc as ipc

from tidemill.connectors.api import ReadTasks
from tidemill.runtime.spark.epoch.runner import Batches, StepRunner, Work, flat
from tidemill.runtime.spark.epoch.steps import Step
from tidemill.runtime.spark.kernel import Report
from tidemill.spark_internals.task_context import act_as


class Failed(Exception):
    """A program has failed; the text is the worker's traceback."""


@dataclass(slots=True)
class Told:
    """What the steps of a program report to the driver; it travels with them."""

    report: Report = field(default_factory=dict)

    def add(self, term: Report) -> None:
        self.report.update(term)


class Program(Protocol):
    """``told``: what its steps have reported."""

    @property
    def told(self) -> Told: ...

    def run(self, given: bytes) -> list[Batches]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskProgram:
    """A task of ``work``, whose ``given`` travels beside the program."""

    work: Work
    told: Told

    def run(self, given: bytes) -> list[Batches]:
        """One result: the task's batches."""
        return [self.work.run(of_bytes(given) if self.work.read is None else pickle.loads(given))]


@dataclass(frozen=True, slots=True, kw_only=True)
class EpochProgram:
    """All tasks of ``steps``, one after the other. ``reads``: of the sources by name."""

    steps: tuple[Step, ...]
    reads: Mapping[str, ReadTasks]
    told: Told

    def run(self, _: bytes = b"") -> list[Batches]:
        """A result for each step."""
        return flat(StepRunner(reads=self.reads.__getitem__, run=_here).results(self.steps))


def _here(works: Sequence[Work]) -> list[Batches]:
    made: list[Batches] = []
    for work in works:
        for given in work.given:
            act_as(len(made))
            made.append(work.run(given))
    return made


def to_bytes(batches: Batches) -> bytes | pa.Buffer:
    """Batches of one schema, none as no bytes."""
    if not batches:
        return b""
    sink = pa.BufferOutputStream()
    with ipc.new_stream(sink, batches[0].schema) as writer:
        for batch in batches:
            writer.write_batch(batch)
    return sink.getvalue()


def of_bytes(data: bytes) -> Batches:
    return list(ipc.open_stream(data)) if data else []
