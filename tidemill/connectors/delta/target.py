"""A Delta table that is written: an epoch is a version with an application transaction of Delta's."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Any

from deltalake import DeltaTable
from deltalake.exceptions import CommitFailedError, DeltaError, DeltaProtocolError, SchemaMismatchError
from deltalake.transaction import AddAction, CommitProperties, RemoveAction, Transaction

from tidemill.connectors.delta.commit_file import now, put_version, statistics
from tidemill.connectors.delta.files import VectorLog, active_files
from tidemill.connectors.delta.table import DeltaPlace, check_writable, has_vectors
from tidemill.connectors.delta.vectors import VectorFile
from tidemill.connectors.lakehouse.api import Change, ConflictError, UnclearError
from tidemill.connectors.lakehouse.files import DataFile
from tidemill.connectors.partition_rows import partition_texts
from tidemill.errors import ConnectorError
from tidemill.types.logical import Field


@dataclass(frozen=True, slots=True, kw_only=True)
class DeltaTarget:
    """``fields``: all columns that the sink writes; ``partitions``: names of those that files do not hold;
    ``feed``: what the sink changes it says row by row, too. ``vectors``: as far as they were read."""

    place: DeltaPlace
    fields: tuple[Field, ...]
    partitions: tuple[str, ...]
    feed: bool = False
    vectors: VectorLog | None = field(default=None, compare=False, repr=False)

    def newest(self) -> DeltaVersion:
        return DeltaVersion(target=self, table=self.place.opened())

    def failure(self, error: Exception) -> ConnectorError:
        return self.place.failure(error)


@dataclass(frozen=True, slots=True, kw_only=True)
class DeltaVersion:
    target: DeltaTarget
    table: DeltaTable

    def recorded(self, sink: str) -> int:
        return int(self.table.transaction_version(sink) or 0)

    def check(self, *, removes: bool) -> None:
        given = self.target
        check_writable(
            given.place, self.table, given.fields, given.partitions, removes=removes, feed=given.feed
        )

    def files(self, columns: Collection[str]) -> list[DataFile]:
        given = self.target
        return active_files(given.place, self.table, given.partitions, columns, given.vectors)

    def vectors(self) -> VectorFile | None:
        return VectorFile() if has_vectors(self.table) else None

    def commit(self, sink: str, epoch: int, change: Change) -> None:
        """An application transaction alone is no guard: Delta takes a repeated one, and retries beside other
        writers. So only the next version will do."""
        texts = self._texts(change.removed)
        if change.changes or change.marked or any(file.deleted for file in change.removed):
            marked = self._texts([mark.file for mark in change.marked])
            put_version(self.target.place, self.table, sink, epoch, change, texts, marked)
            return
        try:
            self.table.create_write_transaction(
                [*map(_add, change.added), *map(_remove, change.removed, texts)],
                "append",
                self.table.schema(),
                self.table.metadata().partition_columns,
                commit_properties=CommitProperties(
                    app_transactions=[Transaction(sink, epoch)], max_commit_retries=0
                ),
            )
        except CommitFailedError as e:
            raise ConflictError(str(e)) from None
        except (DeltaProtocolError, SchemaMismatchError) as e:
            raise self.target.failure(e) from None
        except (DeltaError, OSError) as e:
            raise UnclearError(str(e)) from None

    def _texts(self, files: Sequence[DataFile]) -> list[dict[str, str | None]]:
        """The partition of each file."""
        fields = [f for f in self.target.fields if f.name in self.target.partitions]
        return [partition_texts(file.partition, fields) for file in files]


def _add(file: dict[str, Any]) -> AddAction:
    return AddAction(
        path=file["path"],
        size=file["size"],
        partition_values=file["partition"],
        modification_time=now(),
        data_change=True,
        stats=statistics(file),
    )


def _remove(file: DataFile, partition: dict[str, str | None]) -> RemoveAction:
    return RemoveAction(file.path, True, now(), file.size, partition)
