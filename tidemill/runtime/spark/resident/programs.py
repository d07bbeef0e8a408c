"""What a worker is asked to run: one task of a step, or all tasks of a small epoch."""

from __future__ import annotations

import pickle
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tidemill.connectors.api import ReadTasks
from tidemill.runtime.spark.epoch.steps import Step
from tidemill.runtime.spark.resident.connection import Batches, of_bytes
from tidemill.runtime.spark.resident.steps import StepRunner, Work, flat
from tidemill.runtime.spark.resident.worker import Told
from tidemill.spark_internals.task_context import act_as


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskProgram:
    """A task of ``work``, whose ``given`` travels beside the program."""

    work: Work
    told: Told

    def run(self, given: bytes) -> list[Batches]:
        return [self.work.run(of_bytes(given) if self.work.read is None else pickle.loads(given))]


@dataclass(frozen=True, slots=True, kw_only=True)
class EpochProgram:
    """All tasks of ``steps``, one after the other. ``reads``: of the sources by name."""

    steps: tuple[Step, ...]
    reads: Mapping[str, ReadTasks]
    told: Told

    def run(self, _: bytes = b"") -> list[Batches]:
        """The batches of each step."""
        return flat(StepRunner(reads=self.reads.__getitem__, run=_here).results(self.steps))


def _here(works: Sequence[Work]) -> list[Batches]:
    made: list[Batches] = []
    for work in works:
        for given in work.given:
            act_as(len(made))
            made.append(work.run(given))
    return made
