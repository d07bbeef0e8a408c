"""The tasks of a read: neighbouring splits, about equally much for each task."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate

import pyarrow as pa

from tidemill.connectors.filesystem.reading import FileReader, Split

SEARCHED_SPLITS = 100
"""A task that fails searches so many earlier splits for a bad record, at most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadTask:
    """``before``: the splits before those of this task, in which an earlier bad record may lie."""

    splits: list[Split]
    before: list[Split]


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskReader:
    reader: FileReader

    def __call__(self, task: ReadTask) -> Iterator[pa.RecordBatch]:
        return self.reader.read(task.splits, task.before)


def tasks_of(splits: list[Split], parallelism: int, *, least: int, most: int) -> list[ReadTask]:
    """In the order of the splits. A task has at least about ``least`` bytes or rows, and about ``most`` if
    there is enough for all of ``parallelism``."""
    packed = _packed(splits, parallelism, least, most)
    begins = accumulate((len(task) for task in packed), initial=0)
    return [
        ReadTask(splits=task, before=_before(splits, begin))
        for task, begin in zip(packed, begins, strict=False)
    ]


def _packed(splits: list[Split], parallelism: int, least: int, most: int) -> list[list[Split]]:
    """Small files share a task, so that each task outweighs its start."""
    total = sum(s.end - s.start for s in splits)
    goal = max(least, min(most, -(-total // max(parallelism, 1))))
    tasks: list[list[Split]] = []
    filled = goal
    for split in splits:
        size = split.end - split.start
        if filled + size // 2 >= goal:
            tasks.append([])
            filled = 0
        tasks[-1].append(split)
        filled += size
    return tasks


def _before(splits: list[Split], begin: int) -> list[Split]:
    """The splits before number ``begin``: all of them, or in a large epoch only those of the same file, so
    that a task's message stays small."""
    earlier = splits[:begin]
    if len(splits) <= SEARCHED_SPLITS:
        return earlier
    return [s for s in earlier[-SEARCHED_SPLITS:] if s.file.path == splits[begin].file.path]
