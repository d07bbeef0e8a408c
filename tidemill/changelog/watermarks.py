"""Watermarks: the progress of event time, row by row.

A watermark of t means that rows up to t have come. It is the maximum of the watermark expression over the
rows of an ordered split so far, in milliseconds since 1970. Every row of a query by event time carries in
``$wm`` the watermark of the rows *before* it. So whether it is late depends on this row and the rows before
it, not on the cut of epochs. Two pieces compute it without a second pass:

- a read task knows the maximum over its own rows only (``Running``), and writes it beside each row;
- at its end it tells every target partition its whole maximum (``Control``). There the prefix over the
  tasks of a split gives what each task had before it (``Prefix``), which the rows' ``$wm`` are lifted to.

With row-time mini-batch (``interval``) only some watermarks pass: those that cross a multiple of the
interval, unrounded (Flink's RowTimeMiniBatchAssigner: 1 3 7 8 14 pass an interval of 5 as 7 14).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field

import numpy as np

from tidemill.changelog.columns import Ints

WATERMARK_COLUMN = "$wm"
NONE = int(np.iinfo(np.int64).min)
"""No watermark yet: nothing is late."""
END = int(np.iinfo(np.int64).max)
"""All rows have come."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Control:
    """The message of a task to every target partition after its rows.

    ``task`` orders the tasks of one ``origin`` (a source, or the operator that made the rows: its partition);
    ``reading`` tells those apart that read the same, for two branches of a union; ``mark`` is the watermark
    after its last row. ``whole``: it is that of all input already, as an operator's
    is, and the rows' ``$wm`` need no lifting. Of an origin with splits: ``splits`` are the watermarks of
    those that the task has read, ``waited`` all whose least is the origin's; ``$wm`` need no lifting either.
    """

    origin: str
    task: int
    mark: int
    interval: int = 0
    whole: bool = False
    reading: str = ""
    splits: tuple[tuple[str, int], ...] = ()
    waited: tuple[str, ...] = ()

    def to_bytes(self) -> bytes:
        return json.dumps(asdict(self)).encode()

    @staticmethod
    def of(data: bytes) -> Control:
        fields = json.loads(data)
        fields["splits"] = tuple((name, mark) for name, mark in fields["splits"])
        fields["waited"] = tuple(fields["waited"])
        return Control(**fields)


@dataclass(slots=True)
class Running:
    """The watermark over the rows of one task, batch by batch."""

    interval: int = 0
    highest: int = NONE
    """Over all rows so far."""
    mark: int = NONE
    """What of it has passed the interval."""

    def before(self, marks: Ints) -> Ints:
        """Per row the watermark of the task's rows before it. The rows are then included."""
        if len(marks) == 0:
            return marks
        reached = np.maximum.accumulate(np.maximum(marks, self.highest))
        passed = reached if not self.interval else self._passed(reached)
        marks_before = np.empty_like(passed)
        marks_before[0], marks_before[1:] = self.mark, passed[:-1]
        self.highest, self.mark = int(reached[-1]), int(passed[-1])
        return marks_before

    def _passed(self, reached: Ints) -> Ints:
        """The last of ``reached`` that crossed into another interval, at each row."""
        crossed = buckets(reached, self.interval)
        earlier = np.empty_like(crossed)
        earlier[0], earlier[1:] = int(buckets(np.array([self.mark]), self.interval)[0]), crossed[:-1]
        at = np.maximum.accumulate(np.where(crossed > earlier, np.arange(len(reached)), -1))
        return np.where(at < 0, self.mark, reached[at])


def buckets(marks: Ints, interval: int) -> Ints:
    """The interval that a watermark completes; before the first interval no watermark passes."""
    # As Flink's assigner, which begins at 0: earlier times pass with the first later one.
    begun = np.maximum(marks, -1)
    completed: Ints = begun // interval + (begun % interval == interval - 1)
    return completed


def held_back(mark: int, by: int) -> int:
    """A watermark ``by`` ms earlier; the beginning and the end of time do not change."""
    return mark if mark in (NONE, END) else mark - by


def all_held_back(marks: Ints, by: int) -> Ints:
    return marks if not by else np.where((marks == NONE) | (marks == END), marks, marks - by)


def joined(start: Ints, marks: Ints, interval: int) -> Ints:
    """``marks`` of rows whose predecessors had reached ``start``."""
    if not interval:
        return np.maximum(marks, start)
    return np.where(buckets(marks, interval) > buckets(start, interval), marks, start)


def split_key(origin: str, split: str) -> str:
    """The key of a split's watermark among the watermarks of origins."""
    return f"{origin}/{split}"


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitMarks:
    """Of an origin's splits as an epoch begins. ``firsts`` and ``names``: those that have rows in it, and the
    ``$seq`` that these begin with; ``reached``: by name; ``waited``: those whose least is the origin's."""

    firsts: tuple[int, ...]
    names: tuple[str, ...]
    reached: Mapping[str, int]
    waited: tuple[str, ...]


@dataclass(slots=True, kw_only=True)
class RunningSplits:
    """As ``Running``, of each split of a task by itself, and from what each had reached before."""

    splits: SplitMarks
    interval: int = 0
    _running: dict[str, Running] = field(default_factory=dict)

    def before(self, marks: Ints, sequence: Ints) -> Ints:
        """``sequence``: the rows' ``$seq``, which tell their splits."""
        marks_before = np.empty_like(marks)
        split_index = np.searchsorted(np.array(self.splits.firsts), sequence, side="right") - 1
        for split_number in np.unique(split_index).tolist():
            name, rows = self.splits.names[split_number], np.flatnonzero(split_index == split_number)
            running = self._running.setdefault(name, Running(interval=self.interval))
            marks_before[rows] = self._from(name, running.before(marks[rows]))
        return marks_before

    def marks(self) -> tuple[tuple[str, int], ...]:
        """The current watermark of each split that had rows."""
        return tuple((n, int(self._from(n, np.array([r.mark]))[0])) for n, r in self._running.items())

    def _from(self, name: str, marks: Ints) -> Ints:
        start = np.full(len(marks), self.splits.reached.get(name, NONE), np.int64)
        return joined(start, marks, self.interval)


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
        split: list[Control] = []
        for control in sorted(set(controls), key=lambda c: (c.origin, c.reading, c.task)):
            whose = (control.origin, control.reading)
            if control.waited:
                split.append(control)
                continue
            if control.whole:
                reached[whose] = min(reached.get(whose, END), control.mark)
                continue
            start = reached.get(whose, before.get(control.origin, NONE))
            starts[control.task] = (start, control.interval)
            after = joined(np.array([start]), np.array([control.mark]), control.interval)
            reached[whose] = int(after[0])
        marks = _of_splits(split, before)
        for (source, _), mark in reached.items():
            marks[source] = min(marks.get(source, END), mark)
        return Prefix(starts=starts, marks=marks)

    def lifted(self, marks: Ints, task: int) -> Ints:
        """The ``$wm`` of a task's rows, raised to the watermark before the task."""
        if task not in self.starts:
            return marks
        start, interval = self.starts[task]
        return joined(np.full(len(marks), start, np.int64), marks, interval)


def _of_splits(controls: list[Control], before: Mapping[str, int]) -> dict[str, int]:
    """The watermarks of splits, and of their origins: the least of those that are waited for. Time does not
    go back where a split is new, or was not waited for."""
    marks: dict[str, int] = {}
    for control in controls:
        for name, mark in control.splits:
            key = split_key(control.origin, name)
            marks[key] = min(marks.get(key, END), mark)
    for control in controls:
        keys = [split_key(control.origin, name) for name in control.waited]
        least = min(marks.get(key, before.get(key, NONE)) for key in keys)
        marks[control.origin] = max(least, before.get(control.origin, NONE))
    return marks
