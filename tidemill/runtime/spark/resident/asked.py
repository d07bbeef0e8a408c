"""What the driver asks the workers for in one epoch, and what they have told it."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from tidemill.runtime.spark.epoch.programs import TaskProgram, Told, to_bytes
from tidemill.runtime.spark.epoch.runner import Batches, Work
from tidemill.runtime.spark.kernel import Report
from tidemill.runtime.spark.resident.connection import Answer
from tidemill.runtime.spark.resident.workers import Task
from tidemill.spark_internals.pickling import Kept

Run = Callable[[Sequence[Task]], list[Answer]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """``told``: what the steps report to; ``kept``: values that the steps of all epochs have; ``report``:
    what the workers have told."""

    told: Told
    kept: Kept
    run: Run
    report: Report = field(default_factory=dict)

    def tasks(self, works: Sequence[Work]) -> list[Batches]:
        """The batches of each task. Any worker runs it."""
        asked = [task for work in works for task in self._tasks(work)]
        return [batches for made in self._answered(asked) for batches in made]

    def whole(self, program: bytes) -> list[Batches]:
        """The results of a pickled program. One worker runs all of it."""
        (made,) = self._answered([Task(program=program, given=b"")])
        return made

    def _tasks(self, work: Work) -> Iterator[Task]:
        program = self.kept.pickled(TaskProgram(work=replace(work, given=()), told=self.told))
        for given in work.given:
            yield Task(program=program, given=to_bytes(given) if work.read is None else pickle.dumps(given))

    def _answered(self, tasks: Sequence[Task]) -> list[list[Batches]]:
        answers = self.run(tasks)
        for answer in answers:
            self.report.update(answer.report)
        return [answer.made for answer in answers]
