"""Runs the steps of an epoch without frames: stage by stage, with the blocks between them in this process.

Small blocks of an exchange are handed on here; large ones lie in files, as in Spark's exchange.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import singledispatchmethod
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from tidemill.changelog.columns import vector
from tidemill.connectors.api import BatchMap, ReadTasks
from tidemill.errors import InternalError
from tidemill.runtime.spark.epoch.steps import Exchanged, Mapped, Part, ReadRows, Step, United
from tidemill.runtime.spark.exchange import PARTITION_COLUMN, Form, block_row
from tidemill.runtime.spark.spread import READER_COLUMN

Batches = list[pa.RecordBatch]


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """Tasks of one step: ``maps`` over what ``read`` makes of each of ``given``, or over batches."""

    maps: tuple[BatchMap, ...]
    read: Callable[[Any], Iterator[pa.RecordBatch]] | None
    given: tuple[Any, ...]

    @property
    def is_done(self) -> bool:
        """Nothing is left to do."""
        return self.read is None and not self.maps

    def run(self, given: Any) -> Batches:
        """One of its tasks."""
        rows = given if self.read is None else self.read(given)
        for step in self.maps:
            rows = step(rows)
        return list(rows)


@dataclass(frozen=True, slots=True, kw_only=True)
class StepRunner:
    """``reads``: how the epoch's range of a source is read. ``run``: gives the batches of each task of all
    these works, in their order."""

    reads: Callable[[str], ReadTasks]
    run: Callable[[Sequence[Work]], list[Batches]]
    _parts: dict[int, list[Batches]] = field(default_factory=dict)

    def results(self, steps: Sequence[Step]) -> list[list[Batches]]:
        """Runs all of them. For each step the batches of each of its tasks; tasks of all steps are counted in
        one row, as Spark does below a union."""
        works = [self._works(step) for step in steps]
        left = [work for several in works for work in several if not work.is_done]
        made = iter(self.run(left) if left else ())
        return [[batches for work in several for batches in _done(work, made)] for several in works]

    @singledispatchmethod
    def _works(self, step: Step) -> list[Work]:
        raise InternalError(f"{type(step).__name__} does not run in a resident worker")

    @_works.register
    def _(self, step: ReadRows) -> list[Work]:
        made = self.reads(step.source)
        return [Work(maps=(step.through,), read=made.read, given=tuple(made.tasks))]

    @_works.register
    def _(self, step: Mapped) -> list[Work]:
        return [replace(work, maps=(*work.maps, step.through)) for work in self._works(step.below)]

    @_works.register
    def _(self, step: United) -> list[Work]:
        return [work for branch in step.branches for work in self._works(branch)]

    @_works.register
    def _(self, step: Exchanged) -> list[Work]:
        sent = self.results(step.blocks)
        blocks = [batch for tasks in sent for batches in tasks for batch in batches]
        if step.ticks:
            blocks += [block_row(p, 0, Form.TICK, 0, pa.py_buffer(b"")) for p in range(step.partitions)]
        return [Work(maps=(step.task,), read=None, given=tuple(_split(blocks, step.partitions)))]

    @_works.register
    def _(self, step: Part) -> list[Work]:
        made = self._parts.get(step.key)
        if made is None:
            (made,) = self.results([step.whole])
            self._parts[step.key] = made
        mine = (_by(READER_COLUMN, batches).get(step.reader, []) for batches in made)
        given = tuple([b.drop_columns([READER_COLUMN]) for b in batches] for batches in mine)
        return [Work(maps=(), read=None, given=given)]


def flat(found: list[list[Batches]]) -> list[Batches]:
    """The batches of each step, of all of its tasks."""
    return [[batch for batches in tasks for batch in batches] for tasks in found]


def _done(work: Work, made: Iterator[Batches]) -> list[Batches]:
    """The batches of its tasks, which are the next ones."""
    return list(work.given) if work.is_done else [next(made) for _ in work.given]


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
