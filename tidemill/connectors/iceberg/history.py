"""The snapshots of an Iceberg table, as a reader sees them.

A stream follows the line of snapshots that lead to the newest one. What an overwrite or a delete takes away
cannot be said in a stream of appended rows: that is an error. A compaction (``replace``) changes no rows.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from pyiceberg.manifest import DataFile as IcebergFile
from pyiceberg.manifest import ManifestEntryStatus
from pyiceberg.table import Table
from pyiceberg.table.snapshots import Operation, Snapshot

from tidemill.connectors.iceberg.table import IcebergPlace, check_readable, data_files, snapshot_files
from tidemill.connectors.lakehouse.files import DataFile
from tidemill.errors import ConnectorError
from tidemill.types.logical import Field

NO_SNAPSHOT = 0
"""The version of a table that has none yet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IcebergHistory:
    """``snapshot``: the one to begin with, None for that of the time ``as_of`` (in ms), or for the newest;
    ``after``: begins with what comes behind this snapshot instead. ``columns``: all that the table declares;
    ``bounded``: those whose bounds are wanted. ``interval``: seconds between two looks for a new snapshot;
    ``quiet``: when there was none."""

    place: IcebergPlace
    columns: tuple[Field, ...]
    bounded: tuple[str, ...]
    snapshot: int | None = None
    as_of: int | None = None
    after: int | None = None
    interval: float = 0
    clock: Callable[[], float] = time.monotonic
    quiet: list[float] = field(default_factory=list, compare=False)

    @property
    def begins_whole(self) -> bool:
        return self.after is None

    def identity(self) -> str:
        return str(self.place.opened().metadata.table_uuid)

    def begin(self) -> int:
        table = self.place.seen()
        check_readable(self.place, table, self.columns)
        chosen = self.after if self.after is not None else self.snapshot
        if chosen is not None:
            return int(self._found(table, chosen).snapshot_id)
        if self.as_of is not None:
            found = table.snapshot_as_of_timestamp(self.as_of)
            if found is None:
                raise ConnectorError(f"Iceberg table '{self.place.name}' has no snapshot of {self.as_of} ms.")
            return int(found.snapshot_id)
        current = table.current_snapshot()
        return NO_SNAPSHOT if current is None else int(current.snapshot_id)

    def files(self, version: int, *, whole: bool) -> Sequence[DataFile]:
        if version == NO_SNAPSHOT or (version == self.after and not whole):
            return ()
        table = self.place.opened()
        snapshot = self._found(table, version)
        if whole:
            found = list(snapshot_files(self.place, table, snapshot).values())
        else:
            found = _added(self.place, table, snapshot)
        return data_files(table, found, self.bounded)

    def following(self, version: int) -> int | None:
        if self.quiet and self.clock() < self.quiet[0] + self.interval:
            return None
        found = self._following(version)
        self.quiet[:] = [self.clock()] if found is None else []
        return found

    def _following(self, version: int) -> int | None:
        table = self.place.opened()
        snapshot, child = table.current_snapshot(), None
        while snapshot is not None and snapshot.snapshot_id != version:
            child, parent = snapshot, snapshot.parent_snapshot_id
            snapshot = None if parent is None else table.snapshot_by_id(parent)
            if snapshot is None and (parent is not None or version != NO_SNAPSHOT):
                raise self._gone(version)
        return None if child is None else int(child.snapshot_id)

    def _found(self, table: Table, version: int) -> Snapshot:
        found = table.snapshot_by_id(version)
        if found is None:
            raise self._gone(version)
        return found

    def _gone(self, version: int) -> ConnectorError:
        return ConnectorError(
            f"Iceberg table '{self.place.name}' does not have snapshot {version} any more among those that"
            " its newest one comes from.",
            hint="It has expired, or the table was rolled back. Start the job with a checkpoint directory of"
            " its own to begin with a snapshot.",
        )


def _added(place: IcebergPlace, table: Table, snapshot: Snapshot) -> list[IcebergFile]:
    operation = snapshot.summary.operation if snapshot.summary else Operation.APPEND
    if operation == Operation.REPLACE:
        return []
    if operation != Operation.APPEND:
        raise ConnectorError(
            f"Snapshot {snapshot.snapshot_id} of Iceberg table '{place.name}' is an {operation.value},"
            " which a stream of appended rows cannot say.",
            hint="'start-snapshot-id' begins behind it.",
        )
    found = [
        entry.data_file
        for manifest in snapshot.manifests(table.io)
        if manifest.added_snapshot_id == snapshot.snapshot_id
        for entry in manifest.fetch_manifest_entry(table.io)
        if entry.status == ManifestEntryStatus.ADDED and entry.snapshot_id == snapshot.snapshot_id
    ]
    return sorted(found, key=lambda file: file.file_path)
