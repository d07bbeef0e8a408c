"""Runs the steps of an epoch in resident workers: stage by stage, with the blocks between them in the driver.

Small blocks of an exchange go through the driver; large ones lie in files, as in Spark's exchange.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import singledispatchmethod
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from tidemill.changelog.columns import vector
from tidemill.connectors.api import BatchMap
from tidemill.errors import InternalError
from tidemill.runtime.spark.epoch.reads import Reads
from tidemill.runtime.spark.epoch.steps import Exchanged, Mapped, Part, ReadRows, Step, United
from tidemill.runtime.spark.exchange import PARTITION_COLUMN, Form, block_row
from tidemill.runtime.spark.kernel import Report
from tidemill.runtime.spark.resident.connection import Answer, to_bytes
from tidemill.runtime.spark.resident.worker import Program, Told
from tidemill.runtime.spark.resident.workers import Task
from tidemill.runtime.spark.spread import READER_COLUMN
from tidemill.spark_internals.pickling import Kept

Batches = list[pa.RecordBatch]
Run = Callable[[Sequence[Task]], list[Answer]]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Work:
    """Tasks of one step: ``maps`` over what ``read`` makes of each of ``given``, or over batches."""

    maps: tuple[BatchMap, ...]
    read: Callable[[Any], Iterator[pa.RecordBatch]] | None
    given: tuple[Any, ...]

    @property
    def is_done(self) -> bool:
        """Nothing is left to do for workers."""
        return self.read is None and not self.maps

    def tasks(self, told: Told, kept: Kept) -> Iterator[Task]:
        if not self.is_done:
            program = kept.pickled(Program(maps=self.maps, read=self.read, told=told))
            for given in self.given:
                data = to_bytes(given) if self.read is None else pickle.dumps(given)
                yield Task(program=program, given=data)


@dataclass(frozen=True, slots=True, kw_only=True)
class StepRunner:
    """``told``: what the steps report to; ``report``: what they have told; ``kept``: values that the steps of
    all epochs have."""

    reads: Reads
    told: Told
    kept: Kept
    run: Run
    report: Report = field(default_factory=dict)
    _parts: dict[int, list[Batches]] = field(default_factory=dict)

    def results(self, steps: Sequence[Step]) -> list[list[Batches]]:
        """Runs all of them. For each step the batches of each of its tasks; tasks of all steps are counted in
        one row, as Spark does below a union."""
        works = [self._works(step) for step in steps]
        tasks = [task for several in works for work in several for task in work.tasks(self.told, self.kept)]
        answers = iter(self.run(tasks) if tasks else ())
        return [[batches for work in several for batches in self._done(work, answers)] for several in works]

    def _done(self, work: _Work, answers: Iterator[Answer]) -> list[Batches]:
        """The batches of its tasks, whose answers are the next ones."""
        return list(work.given) if work.is_done else [self._heard(next(answers)) for _ in work.given]

    def _heard(self, answer: Answer) -> Batches:
        self.report.update(answer.report)
        return answer.rows

    @singledispatchmethod
    def _works(self, step: Step) -> list[_Work]:
        raise InternalError(f"{type(step).__name__} does not run in a resident worker")

    @_works.register
    def _(self, step: ReadRows) -> list[_Work]:
        made = self.reads.of(step.source)
        return [_Work(maps=(step.through,), read=made.read, given=tuple(made.tasks))]

    @_works.register
    def _(self, step: Mapped) -> list[_Work]:
        return [replace(work, maps=(*work.maps, step.through)) for work in self._works(step.below)]

    @_works.register
    def _(self, step: United) -> list[_Work]:
        return [work for branch in step.branches for work in self._works(branch)]

    @_works.register
    def _(self, step: Exchanged) -> list[_Work]:
        sent = self.results(step.blocks)
        blocks = [batch for tasks in sent for batches in tasks for batch in batches]
        if step.ticks:
            blocks += [block_row(p, 0, Form.TICK, 0, pa.py_buffer(b"")) for p in range(step.partitions)]
        return [_Work(maps=(step.task,), read=None, given=tuple(_split(blocks, step.partitions)))]

    @_works.register
    def _(self, step: Part) -> list[_Work]:
        made = self._parts.get(id(step.node))
        if made is None:
            (made,) = self.results([step.whole])
            self._parts[id(step.node)] = made
        mine = (_by(READER_COLUMN, batches).get(step.reader, []) for batches in made)
        given = tuple([b.drop_columns([READER_COLUMN]) for b in batches] for batches in mine)
        return [_Work(maps=(), read=None, given=given)]


def _split(blocks: Batches, partitions: int) -> list[Batches]:
    """By the partition that they are for."""
    if partitions == 1:
        return [blocks]
    found = _by(PARTITION_COLUMN, blocks)
    return [found.get(partition, []) for partition in range(partitions)]


def _by(column: str, batches: Batches) -> dict[int, Batches]:
    """Their rows by the integer of a column, in their order."""
    found: dict[int, Batches] = {}
    for batch in batches:
        values = vector(batch.column(column)).values
        begins = [0, *(np.flatnonzero(np.diff(values)) + 1).tolist(), len(values)]
        for begin, end in pairwise(begins):
            if end > begin:
                found.setdefault(int(values[begin]), []).append(batch.slice(begin, end - begin))
    return found
