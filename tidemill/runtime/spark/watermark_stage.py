"""Makes watermarks in the worker that reads the rows, in the order of the source.

A ``WatermarkStage`` adds ``$wm`` to a task's batches, and leaves a ``Control`` for the exchange writer at the
end of the task (``Handover``). Writer and stage may be two workers of one Spark task, with a projection in
the JVM between them: the stage's end comes before the writer's, and both run on one machine, so the control
goes through a file named after the task's attempt.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark import SparkFiles, TaskContext

from tidemill.changelog.columns import Ints, single, validity, vector
from tidemill.changelog.watermarks import (
    NONE,
    WATERMARK_COLUMN,
    Control,
    Running,
    RunningSplits,
    SplitMarks,
)
from tidemill.connectors.api import BatchMap
from tidemill.connectors.worker_errors import WorkerError
from tidemill.errors import ExecutionError

_MICROSECONDS = 1000


@dataclass(slots=True, kw_only=True)
class Handover:
    """From the maker of a task's rows to the writer of its blocks; ``across``: they are two workers."""

    across: bool
    _control: Control | None = field(default=None, compare=False)

    def put(self, control: Control) -> None:
        if not self.across:
            self._control = control
            return
        path = _path()
        temporary = path.with_suffix(".tmp")
        temporary.write_bytes(control.to_bytes())
        os.replace(temporary, path)

    def take(self) -> Control | None:
        """None: the maker had no rows to begin with."""
        if not self.across:
            control, self._control = self._control, None
            return control
        path = _path()
        if not path.exists():
            return None
        control = Control.of(path.read_bytes())
        path.unlink()
        return control


def _path() -> Path:
    """A file of this attempt of this task, in a folder that the executor removes at its end."""
    return Path(SparkFiles.getRootDirectory()) / f"watermark-{_context().taskAttemptId()}"


def task_number() -> int:
    """The place of this task among those of its stage; 0 where there is none."""
    context = TaskContext.get()
    return 0 if context is None else int(context.partitionId())


def _context() -> Any:
    context = TaskContext.get()
    assert context is not None, "not in a Spark task"
    return context


@dataclass(frozen=True, slots=True, kw_only=True)
class WatermarkStage:
    """``mark``: the position of the column whose time, less ``delay`` ms, is the watermark; ``rowtime``: the
    position of the time attribute; ``kept``: positions and names of the columns that are passed on, before
    ``$wm``; ``reading``: the number of this reading, if the source is read several times. ``splits``: the
    splits of the source, if it has any; ``sequence``: then the position of ``$seq``."""

    source: str
    rowtime: int
    mark: int
    delay: int
    interval: int
    kept: tuple[tuple[int, str], ...]
    handover: Handover | None
    then: BatchMap | None = None
    reading: str = ""
    splits: SplitMarks | None = None
    sequence: int = -1

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        rows = self._timed(batches)
        yield from rows if self.then is None else self.then(rows)

    def _timed(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return self._in_order(batches) if self.splits is None else self._by_split(self.splits, batches)

    def _by_split(self, splits: SplitMarks, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        running = RunningSplits(splits=splits, interval=self.interval)
        for batch in batches:
            marks = _milliseconds(batch.column(self.mark), NONE, self.delay)
            yield self._with(batch, running.before(marks, vector(single(batch.column(self.sequence))).values))
        self._end(NONE, running.marks(), splits.waited)

    def _in_order(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        running = Running(interval=self.interval)
        for batch in batches:
            marks = _milliseconds(batch.column(self.mark), running.highest, self.delay)
            yield self._with(batch, running.before(marks))
        self._end(running.mark)

    def _with(self, batch: pa.RecordBatch, marks: Ints) -> pa.RecordBatch:
        _check(batch.column(self.rowtime))
        return pa.RecordBatch.from_arrays(
            [*(batch.column(place) for place, _ in self.kept), pa.array(marks)],
            names=[*(name for _, name in self.kept), WATERMARK_COLUMN],
        )

    def _end(self, mark: int, splits: tuple[tuple[str, int], ...] = (), waited: tuple[str, ...] = ()) -> None:
        if self.handover is not None:
            self.handover.put(
                Control(
                    origin=self.source,
                    reading=self.reading,
                    task=task_number(),
                    mark=mark,
                    interval=self.interval,
                    splits=splits,
                    waited=waited,
                )
            )


def _milliseconds(column: pa.Array, missing: int, delay: int) -> Ints:
    """A TIMESTAMP column in ms, less ``delay``; a row without a watermark moves nothing."""
    times = vector(single(column))
    marks: Ints = times.values // _MICROSECONDS - delay
    return marks if times.valid is None else np.where(times.valid, marks, missing)


def _check(rowtime: pa.Array) -> None:
    if validity(rowtime) is not None:
        raise WorkerError(
            ExecutionError(
                "RowTime field should not be null, please convert it to a non-null long value.",
                hint="Declare the watermark on a computed column that has a time for every row, "
                "such as t AS COALESCE(ts, TIMESTAMP '1970-01-01 00:00:00').",
            )
        )
