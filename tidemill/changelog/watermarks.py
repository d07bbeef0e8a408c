"""Watermarks: how far event time has come, row by row.

A watermark of t says that rows up to t have come; it is the maximum of the watermark expression over the
rows of an ordered split so far, in milliseconds since 1970. Every row of a query by event time carries in
``$wm`` the watermark that the rows *before* it had reached: whether it is late is a matter of this row and
those before it, never of where an epoch was cut. Two pieces make it without a second pass:

- a read task knows the maximum over its own rows only (``Running``), and writes it beside each row;
- at its end it tells every target partition its whole maximum (``Control``). There the prefix over the
  tasks of a split gives what each task had before it (``Prefix``), which the rows' ``$wm`` are lifted to.

With row-time mini-batch (``interval``) only some watermarks pass: those that cross a multiple of the
interval, unrounded (Flink's RowTimeMiniBatchAssigner: 1 3 7 8 14 pass an interval of 5 as 7 14).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass

import numpy as np

from tidemill.changelog.columns import Ints

WATERMARK_COLUMN = "$wm"
NONE = int(np.iinfo(np.int64).min)
"""No watermark yet: nothing is late."""
END = int(np.iinfo(np.int64).max)
"""All rows have come."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Control:
    """What a task tells every partition that it sends to, after its rows.

    ``task`` orders the tasks of one ``origin`` (a source, or the operator that made the rows: its partition);
    ``reading`` tells those apart that read the same, for two branches of a union; ``mark`` is the watermark
    after its last row. ``whole``: it is that of all input already, as an operator's
    is, and the rows' ``$wm`` need no lifting.
    """

    origin: str
    task: int
    mark: int
    interval: int = 0
    whole: bool = False
    reading: str = ""

    def to_bytes(self) -> bytes:
        return json.dumps(asdict(self)).encode()

    @staticmethod
    def of(data: bytes) -> Control:
        return Control(**json.loads(data))


@dataclass(slots=True)
class Running:
    """The watermark over the rows of one task, batch by batch."""

    interval: int = 0
    highest: int = NONE
    """Over all rows so far."""
    mark: int = NONE
    """What of it has passed the interval."""

    def before(self, marks: Ints) -> Ints:
        """Per row the watermark that the task's rows before it had reached; goes on behind them."""
        if len(marks) == 0:
            return marks
        reached = np.maximum.accumulate(np.maximum(marks, self.highest))
        passed = reached if not self.interval else self._passed(reached)
        shown = np.empty_like(passed)
        shown[0], shown[1:] = self.mark, passed[:-1]
        self.highest, self.mark = int(reached[-1]), int(passed[-1])
        return shown

    def _passed(self, reached: Ints) -> Ints:
        """The last of ``reached`` that crossed into another interval, at each row."""
        crossed = buckets(reached, self.interval)
        earlier = np.empty_like(crossed)
        earlier[0], earlier[1:] = int(buckets(np.array([self.mark]), self.interval)[0]), crossed[:-1]
        at = np.maximum.accumulate(np.where(crossed > earlier, np.arange(len(reached)), -1))
        return np.where(at < 0, self.mark, reached[at])


def buckets(marks: Ints, interval: int) -> Ints:
    """Which interval a watermark completes; before the first nothing passes."""
    # As Flink's assigner, which begins at 0: earlier times pass with the first later one.
    begun = np.maximum(marks, -1)
    completed: Ints = begun // interval + (begun % interval == interval - 1)
    return completed


def held_back(mark: int, by: int) -> int:
    """A watermark ``by`` ms earlier; the beginning and the end are what they are."""
    return mark if mark in (NONE, END) else mark - by


def all_held_back(marks: Ints, by: int) -> Ints:
    return marks if not by else np.where((marks == NONE) | (marks == END), marks, marks - by)


def joined(start: Ints, marks: Ints, interval: int) -> Ints:
    """``marks`` of rows whose predecessors had reached ``start``."""
    if not interval:
        return np.maximum(marks, start)
    return np.where(buckets(marks, interval) > buckets(start, interval), marks, start)


@dataclass(frozen=True, slots=True, kw_only=True)
class Prefix:
    """``starts``: what had been reached before each task, with the interval it passes; tasks whose rows'
    ``$wm`` are right as they stand are not in it. ``marks``: per origin what is reached now."""

    starts: Mapping[int, tuple[int, int]]
    marks: Mapping[str, int]

    @staticmethod
    def over(controls: Iterable[Control], before: Mapping[str, int]) -> Prefix:
        """From the controls of all tasks and the origins' watermarks ``before`` the epoch."""
        starts: dict[int, tuple[int, int]] = {}
        reached: dict[tuple[str, str], int] = {}
        for control in sorted(set(controls), key=lambda c: (c.origin, c.reading, c.task)):
            whose = (control.origin, control.reading)
            if control.whole:
                reached[whose] = min(reached.get(whose, END), control.mark)
                continue
            start = reached.get(whose, before.get(control.origin, NONE))
            starts[control.task] = (start, control.interval)
            after = joined(np.array([start]), np.array([control.mark]), control.interval)
            reached[whose] = int(after[0])
        marks: dict[str, int] = {}
        for (source, _), mark in reached.items():
            marks[source] = min(marks.get(source, END), mark)
        return Prefix(starts=starts, marks=marks)

    def lifted(self, marks: Ints, task: int) -> Ints:
        """The ``$wm`` of a task's rows, with what came before the task."""
        if task not in self.starts:
            return marks
        start, interval = self.starts[task]
        return joined(np.full(len(marks), start, np.int64), marks, interval)
