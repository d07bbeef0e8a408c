"""Writes tables as files, exactly once.

1. *stage*: tasks write complete files below ``<path>/.staging/<job>/<epoch>/<attempt>/``, where no reader
   looks; they and their folders are on the disk before a token names them.
2. *publish*: each file that a token names is renamed to its final name, which depends on job, epoch, task
   and number alone (epochs are padded: names sort in their order); one that is not staged any more must
   be in place. It is durable when this returns. Repeating it changes nothing.
3. *discard*: what is staged is removed, also what tasks have left behind that outlived earlier epochs.

After a job in batch mode nobody discards again, and tasks may outlive it, or their Python processes alone.
So it has a file that says that it is wanted (``_WANTED``): discard removes that first, then all else, and a
task looks for it when its files are there, and removes them itself where it is gone. Whichever of the two is
the later sees what the other has done.

An INSERT OVERWRITE (batch only) removes what was there before when it publishes: the whole table, or
each partition that is written to.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import functions as F

from tidemill.connectors.arrow_maps import map_batches
from tidemill.connectors.filesystem.listing import list_files_or_none
from tidemill.connectors.filesystem.partition_commit import PartitionMarkers
from tidemill.connectors.filesystem.writing import StagedWriter, unwritten
from tidemill.connectors.formats.api import Encoder
from tidemill.errors import ConnectorError
from tidemill.files.storage import Storage
from tidemill.types.logical import Field
from tidemill.types.physical import quote

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_STAGING = ".staging"
_WANTED = "wanted"


@dataclass(frozen=True, slots=True, kw_only=True)
class FileSink:
    table: str
    storage: Storage
    encoder: Encoder
    fields: tuple[Field, ...]
    partitions: tuple[Field, ...]
    default_partition: str
    extension: str
    roll: int
    parallelism: int | None
    by_partition: bool
    job: str
    overwrite: bool
    streaming: bool
    markers: PartitionMarkers

    def stage(self, frame: DataFrame, epoch: int) -> DataFrame:
        wanted = "" if self.streaming else self.begin()
        return map_batches(self._distributed(frame), self.writer(epoch, wanted), "token STRING")

    def stager(self, epoch: int) -> StagedWriter | None:
        moves = self.parallelism or (self.by_partition and self.partitions)
        return None if moves else self.writer(epoch)

    def begin(self) -> str:
        """Makes the file that says that the job is wanted; ConnectorError where nothing can be written."""
        try:
            self.storage.make_directory(self._job)
            self.storage.create(self._wanted).close()
        except (OSError, pa.ArrowException) as e:
            raise unwritten(self.storage, e) from None
        return self._wanted

    def writer(self, epoch: int, wanted: str = "") -> StagedWriter:
        return StagedWriter(
            table=self.table,
            storage=self.storage,
            encoder=self.encoder,
            fields=self.fields,
            partitions=self.partitions,
            default_partition=self.default_partition,
            directory=self._staged(epoch),
            prefix=f"part-{self.job}-{epoch:08d}",
            extension=self.extension,
            roll=self.roll,
            wanted=wanted,
        )

    def publish(self, epoch: int, tokens: list[str]) -> None:
        """ConnectorError when a file is neither staged nor in place."""
        staged = _named(tokens)
        try:
            if self.overwrite:
                self._remove_old(staged)
            self._move(epoch, staged)
            self.markers.written(_directories(staged))
            self.storage.remove_directory(self._staged(epoch))
        except (OSError, pa.ArrowException) as e:
            raise ConnectorError(f"Cannot publish to {self.storage.location}: {e}") from None

    def discard(self, epoch: int) -> None:
        """Of the epoch before it, which may yet be published again, nothing goes."""
        if not self.streaming:
            self.storage.remove(self._wanted)
            return self._remove_staging()
        for name in self.storage.directories(self._job):
            if name != str(epoch - 1):
                self.storage.remove_directory(f"{self._job}/{name}")

    def finish(self) -> None:
        self.markers.finish()
        self._remove_staging()

    def _remove_staging(self) -> None:
        """All of this job's."""
        self.storage.remove_directory(self._job)
        if self.storage.is_local:
            self.storage.prune(_STAGING)
        elif not self.storage.directories(_STAGING):
            self.storage.remove_directory(_STAGING)

    @property
    def _job(self) -> str:
        return f"{_STAGING}/{self.job}"

    @property
    def _wanted(self) -> str:
        return f"{self._job}/{_WANTED}"

    def _staged(self, epoch: int) -> str:
        return f"{self._job}/{epoch}"

    def _distributed(self, frame: DataFrame) -> DataFrame:
        named = zip(frame.columns, self.fields, strict=False)
        keys = [F.col(quote(column)) for column, f in named if f in self.partitions]
        if self.by_partition and keys:
            return frame.repartition(*keys)
        return frame.repartition(self.parallelism) if self.parallelism else frame

    def _move(self, epoch: int, attempts: dict[str, str]) -> None:
        directories = _directories(attempts)
        for directory in sorted(directories):
            self.storage.make_directory(directory)
        self.storage.each(lambda file: self._move_one(epoch, *file), attempts.items())
        for directory in directories:
            self.storage.force_directory(directory)

    def _move_one(self, epoch: int, name: str, attempt: str) -> None:
        staged = f"{self._staged(epoch)}/{attempt}/{name}"
        if self.storage.stat(staged) is not None:
            self.storage.move(staged, name)
        elif self.storage.stat(name) is None:
            raise ConnectorError(
                f"File {self.storage.shown(name)} of epoch {epoch} is neither staged nor published.",
                hint="Something else has removed files below the sink's path.",
            )

    def _remove_old(self, attempts: dict[str, str]) -> None:
        """Everything visible that is not of this job: in the touched partitions, or in all the table."""
        touched = _directories(attempts)
        for file in list_files_or_none(self.storage):
            directory, _, name = file.path.rpartition("/")
            ours = name.startswith(f"part-{self.job}-")
            if not ours and (not self.partitions or directory in touched):
                self.storage.remove(file.path)


def _named(tokens: list[str]) -> dict[str, str]:
    """The attempt that wrote each file."""
    parsed = [json.loads(token) for token in tokens]
    return {str(name): token["attempt"] for token in parsed for name, _ in token["files"]}


def _directories(names: Iterable[str]) -> set[str]:
    return {name.rpartition("/")[0] for name in names}
