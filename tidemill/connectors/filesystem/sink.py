"""Writes tables as files, exactly once.

1. *stage*: tasks write complete files below ``<path>/.staging/<job>/<epoch>/<attempt>/``, where no reader
   looks; they and their folders are on the disk before a token names them.
2. *publish*: the driver renames each file that a token names to its final name. The final name depends only
   on job, epoch, task and number (epochs are padded, so that names sort in their order). A file that is not
   staged any more must be in place. When publish returns, the files are durable. Repeating it changes
   nothing.
3. *discard*: the driver removes the staged files, also those of tasks that outlived earlier epochs.

After a batch job nobody discards again, but its tasks, or their Python processes, may outlive it. So a batch
job has a marker file (``_WANTED``). Discard removes the marker first, then all staged files. A task checks
the marker after it has written its files, and removes the files if the marker is gone. Whichever of the two
acts later sees the effect of the other.

Some batch jobs also remove files: an INSERT OVERWRITE those of the whole table, or of each partition that it
writes; a DELETE or UPDATE the files whose other rows it has written anew. On a disk such a job publishes all
its changes at once (see ``replacing``); elsewhere an INSERT OVERWRITE removes the old files first.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import functions as F

from tidemill.catalog.table import Rewriting
from tidemill.connectors.api import Sink
from tidemill.connectors.arrow_maps import map_batches
from tidemill.connectors.filesystem.listing import list_files_or_none
from tidemill.connectors.filesystem.partition_commit import PartitionMarkers
from tidemill.connectors.filesystem.replacing import OVERWRITE, Change, Changes, commit, settle
from tidemill.connectors.filesystem.writing import StagedWriter, unwritten
from tidemill.connectors.formats.api import Encoder
from tidemill.errors import ConnectorError
from tidemill.files.entries import FileEntry
from tidemill.files.storage import Storage
from tidemill.types.logical import Field
from tidemill.types.physical import quote

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_STAGING = ".staging"
_WANTED = "wanted"


@dataclass(frozen=True, slots=True, kw_only=True)
class FileSink(Sink):
    """``rewriting``: the files that the written ones replace, None unless they do; ``changes``: of the
    table's files."""

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
    rewriting: Rewriting | None
    streaming: bool
    markers: PartitionMarkers
    changes: Changes

    def stage(self, frame: DataFrame, epoch: int) -> DataFrame:
        marker = "" if self.streaming else self.begin()
        return map_batches(self._distributed(frame), self.writer(epoch, marker), "token STRING")

    def stager(self, epoch: int) -> StagedWriter | None:
        moves = self.parallelism or (self.by_partition and self.partitions)
        return None if moves else self.writer(epoch)

    def begin(self) -> str:
        """Creates the job's marker file, and returns its path. ConnectorError if the path is not writable."""
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
        """Moves the files of ``tokens`` into place. ConnectorError if a file is neither staged nor in
        place."""
        staged = _named(tokens)
        try:
            if self.storage.is_local and (self.overwrite or self.rewriting is not None):
                self._replace(epoch, staged)
            else:
                for file in self._old(staged) if self.overwrite else ():
                    self.storage.remove(file.path)
                self._move(epoch, staged)
            self.markers.written(_directories(staged))
            self.storage.remove_directory(self._staged(epoch))
        except (OSError, pa.ArrowException) as e:
            raise ConnectorError(f"Cannot publish to {self.storage.location}: {e}") from None

    def discard(self, epoch: int) -> None:
        """Removes staged files, but not those of the epoch before, which may be published again."""
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
        """Removes all staged files of this job."""
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
        elif self.storage.stat(name) is None and not self.changes.has_removed(name):
            raise ConnectorError(
                f"File {self.storage.full_path(name)} of epoch {epoch} is neither staged nor published.",
                hint="Something else has removed files below the sink's path.",
            )

    def _replace(self, epoch: int, attempts: dict[str, str]) -> None:
        if self.changes.has_made(self._job):
            settle(self.storage)
            return
        change = Change(
            statement=OVERWRITE if self.rewriting is None else self.rewriting.statement,
            added=tuple((name, f"{self._staged(epoch)}/{at}/{name}") for name, at in attempts.items()),
            removed=self._old(attempts) if self.rewriting is None else self.rewriting.files,
            staging=self._job,
        )
        commit(self.storage, change)

    def _old(self, attempts: dict[str, str]) -> tuple[FileEntry, ...]:
        """The visible files of other jobs in the written partitions, or in the whole table."""
        written, own = _directories(attempts), f"part-{self.job}-"
        parted = ((file, *file.path.rpartition("/")) for file in list_files_or_none(self.storage))
        return tuple(
            file
            for file, directory, _, name in parted
            if not name.startswith(own) and (not self.partitions or directory in written)
        )


def _named(tokens: list[str]) -> dict[str, str]:
    """The attempt that wrote each file, by final name."""
    parsed = [json.loads(token) for token in tokens]
    return {str(name): token["attempt"] for token in parsed for name, _ in token["files"]}


def _directories(names: Iterable[str]) -> set[str]:
    return {name.rpartition("/")[0] for name in names}
