"""Sources that compute rows from their row numbers: the base of datagen and nexmark, with columns of random
text.

An offset is ``{"row": n, "time": ms}``: the job has read the rows below n. ``time`` is the wall-clock time
for the rows of the range; it is fixed when the range is planned, so that a repeated read gives the same rows.
With a rate, ``next_offset`` returns the rows that the rate allows since the source began.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tidemill.changelog.rowkind import SEQUENCE_COLUMN
from tidemill.connectors.api import ArrowSource, Offset, ReadLimit, ReadTasks
from tidemill.connectors.task_frames import read_frame
from tidemill.errors import StateError
from tidemill.types.logical import Field
from tidemill.types.physical import quote, spark_schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# Random numbers are drawn block by block: a row's values depend on its number, not on the cut.
BLOCK_ROWS = 1 << 16
_MOST_ROWS = 1_000_000
_TASK_ROWS = 200_000

_LETTERS = np.frombuffer(b"abcdefghijklmnopqrstuvwxyz", dtype=np.uint8)
_HEX = np.frombuffer(b"0123456789abcdef", dtype=np.uint8)

Lengths = npt.NDArray[np.int64]


class RowGenerator(Protocol):
    """Generates rows. It has plain values only, since it is pickled for workers."""

    @property
    def fields(self) -> tuple[Field, ...]: ...

    def block(self, number: int, time: int) -> pa.Table:
        """The BLOCK_ROWS rows from ``number * BLOCK_ROWS`` on, as ``fields``; ``time`` in ms."""
        ...


def _now() -> float:
    return time.time()


@dataclass(kw_only=True)
class GeneratedSource(ArrowSource):
    """``count``: number of rows, None for endless. ``rate``: rows per second, None for no limit. ``ends``:
    false if the source waits after its last row instead of ending."""

    generator: RowGenerator
    count: int | None
    rate: float | None
    sequence: bool
    parallelism: int
    ends: bool = True
    clock: Callable[[], float] = _now
    _begun: tuple[float, int] | None = field(default=None, repr=False)

    @property
    def is_bounded(self) -> bool:
        return self.ends and self.count is not None

    def next_offset(self, start: Offset | None, limit: ReadLimit) -> Offset:
        """At most a million rows, or what the limit or the rate allow if that is less."""
        at, now = _row(start), self.clock()
        end = at + (_MOST_ROWS if limit.rows is None else limit.rows)
        if self.rate is not None:
            end = min(end, max(at, self._allowed(at, now)))
        if self.count is not None:
            end = min(end, max(at, self.count))
        return {"row": end, "time": int(now * 1000)}

    def remembered(self, end: Offset, *, ended: bool) -> GeneratedSource:
        first, day = self.generator.block(0, 0), 24 * 3600 * 1000
        if first != self.generator.block(0, day):
            raise StateError("its rows contain the time of their generation")
        return replace(self, count=_row(end), rate=None, ends=ended, _begun=None)

    def _allowed(self, at: int, now: float) -> int:
        if self._begun is None:
            self._begun = (now, at)
        since, first = self._begun
        return first + int((now - since) * (self.rate or 0.0)) + 1

    def is_empty(self, start: Offset | None, end: Offset) -> bool:
        return _row(start) >= _row(end)

    def is_finished(self, offset: Offset | None) -> bool:
        return self.is_bounded and _row(offset) >= (self.count or 0)

    def read(self, spark: SparkSession, start: Offset | None, end: Offset) -> DataFrame:
        schema = [spark_schema(self.generator.fields)] if self.generator.fields else []
        schema += [f"{quote(SEQUENCE_COLUMN)} BIGINT"] if self.sequence else []
        return read_frame(spark, self.read_tasks(spark, start, end), ", ".join(schema))

    def read_tasks(self, spark: SparkSession, start: Offset | None, end: Offset) -> ReadTasks:
        rows = _Rows(generator=self.generator, moment=int(end["time"]), sequence=self.sequence)
        first, last = _row(start), _row(end)
        return ReadTasks.of_rows(_tasks(first, last, self.parallelism), rows, last - first)

    def read_all(self, spark: SparkSession) -> DataFrame:
        return self.read(spark, None, {"row": self.count or 0, "time": int(self.clock() * 1000)})


def _row(offset: Offset | None) -> int:
    return int(offset["row"]) if offset else 0


def _tasks(start: int, end: int, parallelism: int) -> list[tuple[int, int]]:
    """Row ranges, cut at block borders where there is more than one."""
    step = max(_TASK_ROWS, -(-(end - start) // max(parallelism, 1)))
    step = -(-step // BLOCK_ROWS) * BLOCK_ROWS
    borders = [start, *range((start // BLOCK_ROWS) * BLOCK_ROWS + step, end, step), end]
    return [(a, b) for a, b in pairwise(borders) if b > a]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rows:
    """Makes the rows of a range of numbers; ``moment``: when, in ms."""

    generator: RowGenerator
    moment: int
    sequence: bool

    def __call__(self, task: tuple[int, int]) -> Iterator[pa.RecordBatch]:
        start, end = task
        for number in range(start // BLOCK_ROWS, -(-end // BLOCK_ROWS)):
            first = number * BLOCK_ROWS
            low, high = max(start, first), min(end, first + BLOCK_ROWS)
            table = self.generator.block(number, self.moment).slice(low - first, high - low)
            if self.sequence:
                table = table.append_column(SEQUENCE_COLUMN, pa.array(np.arange(low, high)))
            yield from table.combine_chunks().to_batches()


def letters(rng: np.random.Generator, lengths: Lengths) -> pa.Array:
    """Small letters, one text per length."""
    return _texts(_LETTERS[rng.integers(0, 26, int(lengths.sum()), dtype=np.uint8)], lengths)


def hexadecimal(rng: np.random.Generator, lengths: Lengths) -> pa.Array:
    """Hexadecimal digits, one text per length."""
    return _texts(_HEX[rng.integers(0, 16, int(lengths.sum()), dtype=np.uint8)], lengths)


def binary(rng: np.random.Generator, lengths: Lengths) -> pa.Array:
    """Bytes, one value per length."""
    data = rng.integers(0, 256, int(lengths.sum()), dtype=np.uint8)
    return pa.BinaryArray.from_buffers(
        pa.binary(), len(lengths), [None, _offsets(lengths), pa.py_buffer(data.tobytes())]
    )


def _texts(characters: npt.NDArray[np.uint8], lengths: Lengths) -> pa.Array:
    return pa.StringArray.from_buffers(len(lengths), _offsets(lengths), pa.py_buffer(characters.tobytes()))


def _offsets(lengths: Lengths) -> pa.Buffer:
    ends = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    return pa.py_buffer(ends.tobytes())
