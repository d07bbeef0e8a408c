"""An Iceberg table that is written: an epoch is a snapshot that bears its number.

The number is in the summary of the snapshot, under the name of the sink. The newest one is found by going
back from the newest snapshot, as Flink's own connector does.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any

from pyiceberg.exceptions import CommitFailedException, ValidationException
from pyiceberg.io.pyarrow import parquet_file_to_data_file
from pyiceberg.manifest import DataFile as IcebergFile
from pyiceberg.table import Table, TableProperties

from tidemill.connectors.iceberg.catalogs import CATALOG_ERRORS
from tidemill.connectors.iceberg.table import (
    IcebergPlace,
    below_root,
    check_writable,
    data_files,
    root_of,
    snapshot_files,
)
from tidemill.connectors.lakehouse.api import Change, ConflictError, UnclearError
from tidemill.connectors.lakehouse.files import DataFile
from tidemill.errors import ConnectorError
from tidemill.types.logical import Field

_EPOCH = "tidemill.epoch."


@dataclass(frozen=True, slots=True, kw_only=True)
class IcebergTarget:
    """``fields``: all columns that the sink writes; ``partitions``: names of those that say the partition."""

    place: IcebergPlace
    fields: tuple[Field, ...]
    partitions: tuple[str, ...]

    def newest(self) -> IcebergVersion:
        return IcebergVersion(target=self, table=self.place.opened())

    def failure(self, error: Exception) -> ConnectorError:
        return self.place.failure(error)


@dataclass(frozen=True, slots=True, kw_only=True)
class IcebergVersion:
    """``listed``: the files of the newest snapshot by path, once they were asked for."""

    target: IcebergTarget
    table: Table
    listed: dict[str, IcebergFile] = field(default_factory=dict)

    def recorded(self, sink: str) -> int:
        snapshot = self.table.current_snapshot()
        while snapshot is not None:
            found = snapshot.summary.additional_properties.get(_EPOCH + sink) if snapshot.summary else None
            if found is not None:
                return int(found)
            parent = snapshot.parent_snapshot_id
            snapshot = None if parent is None else self.table.snapshot_by_id(parent)
        return 0

    def check(self, *, removes: bool) -> None:
        check_writable(self.target.place, self.table, self.target.fields, self.target.partitions)

    def files(self, columns: Collection[str]) -> list[DataFile]:
        snapshot = self.table.current_snapshot()
        if snapshot is None:
            return []
        root = root_of(self.table.location())
        found = snapshot_files(self.target.place, self.table, snapshot)
        self.listed.update({below_root(path, root): file for path, file in found.items()})
        return data_files(self.table, found.values(), columns)

    def vectors(self) -> None:
        return None

    def commit(self, sink: str, epoch: int, change: Change) -> None:
        try:
            self._commit(sink, epoch, change)
        except (CommitFailedException, ValidationException) as e:
            raise ConflictError(str(e)) from None
        except CATALOG_ERRORS as e:
            raise UnclearError(str(e)) from None

    def _commit(self, sink: str, epoch: int, change: Change) -> None:
        """pyiceberg would try again beside other writers, where another process of the job may have committed
        the epoch: only the next snapshot will do."""
        table, metadata = self.table, self.table.metadata
        once = {**metadata.properties, TableProperties.COMMIT_NUM_RETRIES: "0"}
        table.metadata = metadata.model_copy(update={"properties": once})
        with table.transaction() as transaction:
            update = transaction.update_snapshot(snapshot_properties={_EPOCH + sink: str(epoch)})
            made: Any = update.overwrite() if change.removed else update.fast_append()
            with made as snapshot:
                for file in change.added:
                    snapshot.append_data_file(self._described(file["path"]))
                for gone in change.removed:
                    snapshot.delete_data_file(self.listed[gone.path])

    def _described(self, path: str) -> IcebergFile:
        """With statistics of its columns, from its footer."""
        root = root_of(self.table.location())
        location = f"file:///{path}" if root == "/" else f"{root}/{path}"
        return parquet_file_to_data_file(self.table.io, self.table.metadata, location)
