"""Markers in the partitions of a sink: when a partition is complete, an empty file in it says so.

- ``process-time`` without a delay: with each epoch that writes to the partition.
- ``process-time`` with one: with the first epoch after the delay since the partition's first file.
- ``partition-time``: when a partition has come whose time is more than the delay later. Rows are never
  late here, so what Flink learns from the watermark the partitions' own times must say.

The end of the input completes all. What is pending is found again in the directories after a restart.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol
from urllib.parse import unquote

from tidemill.connectors.filesystem.listing import list_files_or_none
from tidemill.connectors.option_values import OptionValues
from tidemill.errors import NotSupportedError, ValidationError
from tidemill.files.storage import Storage

_TIME_FORMATS = ("%Y-%m-%d %H:%M:%S", "%Y-%m-%d")
_MARKER = "sink.partition-commit.success-file.name"
_PATTERN = "partition.time-extractor.timestamp-pattern"


class Trigger(Protocol):
    def due(self, pending: Mapping[str, int], now: int) -> list[str]:
        """Which directories are complete. ``pending``: since when each is there; times in ms."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class AfterDelay:
    delay: int

    def due(self, pending: Mapping[str, int], now: int) -> list[str]:
        return [name for name, since in pending.items() if now >= since + self.delay]


@dataclass(frozen=True, slots=True, kw_only=True)
class AfterLaterPartition:
    """``pattern``: the partition's time with ``$name`` for the value of a partition column."""

    delay: int
    pattern: str

    def due(self, pending: Mapping[str, int], now: int) -> list[str]:
        times = {name: self._time(name) for name in pending}
        newest = max((t for t in times.values() if t is not None), default=0)
        return [name for name, t in times.items() if t is not None and newest > t + self.delay]

    def _time(self, directory: str) -> int | None:
        """None for a partition without a time, which only the end of the input completes."""
        values = dict(part.split("=", 1) for part in directory.split("/"))
        text = self.pattern
        for name in sorted(values, key=len, reverse=True):
            text = text.replace(f"${name}", unquote(values[name]))
        for form in _TIME_FORMATS:
            try:
                return int((datetime.strptime(text, form) - datetime(1970, 1, 1)).total_seconds() * 1000)
            except ValueError:
                continue
        return None


def _now() -> int:
    return int(time.time() * 1000)


@dataclass(slots=True, kw_only=True)
class PartitionMarkers:
    """``file``: the marker's name, '' for none; ``prefixes``: how the names of the job's files begin, and of
    those of the jobs before it.

    ``pending``: partitions without a marker and since when they are there, in ms; None looks for them.
    """

    storage: Storage
    file: str
    trigger: Trigger
    prefixes: tuple[str, ...]
    clock: Callable[[], int] = _now
    pending: dict[str, int] | None = None

    def written(self, directories: Iterable[str]) -> None:
        """An epoch's files are in place in ``directories``. Repeating it changes nothing."""
        if not self.file:
            return
        pending, now = self._known(), self.clock()
        for name in directories:
            pending.setdefault(name, now)
        self._mark(self.trigger.due(pending, now))

    def finish(self) -> None:
        if self.file:
            self._mark(list(self._known()))

    def _mark(self, directories: Iterable[str]) -> None:
        for name in sorted(directories):
            self.storage.publish(f"{name}/{self.file}", lambda _: None)
            self._known().pop(name)

    def _known(self) -> dict[str, int]:
        if self.pending is None:
            self.pending = self._unmarked()
        return self.pending

    def _unmarked(self) -> dict[str, int]:
        since: dict[str, int] = {}
        for file in list_files_or_none(self.storage):
            directory, _, name = file.path.rpartition("/")
            if name.startswith(self.prefixes):
                at = file.modified // 1_000_000
                since[directory] = min(since.get(directory, at), at)
        return {d: at for d, at in since.items() if self.storage.stat(f"{d}/{self.file}") is None}


def partition_markers(
    storage: Storage, options: OptionValues, partitions: tuple[str, ...], prefixes: tuple[str, ...]
) -> PartitionMarkers:
    """As the options of a sink say. Raises NotSupportedError for policies and extractors of Flink's only."""
    policies = (options["sink.partition-commit.policy.kind"] or "").split(",")
    wanted = [p.strip() for p in policies if p.strip()]
    for policy in wanted:
        if policy != "success-file":
            raise NotSupportedError(f"Partition commit policy '{policy}' is not supported.")
    trigger = _trigger(options, partitions)
    name = options[_MARKER]
    if "/" in name or name in ("", ".", ".."):
        raise ValidationError(f"'{_MARKER}' = '{name}' is not the name of a file in a partition.")
    return PartitionMarkers(
        storage=storage,
        file=name if wanted and partitions else "",
        trigger=trigger,
        prefixes=prefixes,
        # With each epoch: what one has left over is marked when it is published again.
        pending={} if trigger == AfterDelay(delay=0) else None,
    )


def _trigger(options: OptionValues, partitions: tuple[str, ...]) -> Trigger:
    delay = options["sink.partition-commit.delay"].milliseconds
    if options["sink.partition-commit.trigger"] == "process-time" or not partitions:
        return AfterDelay(delay=delay)
    if options["partition.time-extractor.kind"] != "default":
        raise NotSupportedError("A partition.time-extractor.kind other than 'default' is not supported.")
    if options["partition.time-extractor.timestamp-formatter"] is not None:
        raise NotSupportedError("partition.time-extractor.timestamp-formatter is not supported.")
    pattern = options[_PATTERN] or f"${partitions[0]}"
    if not any(f"${name}" in pattern for name in partitions):
        raise ValidationError(
            f"'{_PATTERN}' = '{pattern}' has no partition column in it.", expected=partitions
        )
    return AfterLaterPartition(delay=delay, pattern=pattern)
