"""The versions of a Delta table, as a reader sees them.

What later versions remove cannot be taken back from a stream of appended rows: that is an error, unless the
table's options say otherwise.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from tidemill.changelog.rowkind import ALL_KINDS, RETRACTIONS
from tidemill.connectors.delta.files import active_files
from tidemill.connectors.delta.log import Commit, has_version, read_commit
from tidemill.connectors.delta.table import DeltaPlace, check_readable
from tidemill.connectors.lakehouse.files import DataFile
from tidemill.errors import ConnectorError
from tidemill.types.logical import Field


@dataclass(frozen=True, slots=True, kw_only=True)
class DeltaHistory:
    """``version``: the one to begin with, None for the newest; ``starting``: begins with what this version
    has added instead. ``columns``: all that the table declares; ``bounded``: those whose bounds are wanted.
    ``changes``: what later versions remove is wanted, too."""

    place: DeltaPlace
    columns: tuple[Field, ...]
    bounded: tuple[str, ...]
    version: int | None = None
    starting: int | None = None
    ignores_deletes: bool = False
    ignores_changes: bool = False
    changes: bool = False
    looked: list[int] = field(default_factory=list, compare=False)
    _partitions: list[tuple[Field, ...]] = field(default_factory=list, init=False, compare=False)

    @property
    def begins_whole(self) -> bool:
        return self.starting is None

    @property
    def partitions(self) -> tuple[Field, ...]:
        """The columns that files do not hold: the table knows them, whether or not they are declared so."""
        if not self._partitions:
            names = self.place.opened().metadata().partition_columns
            self._partitions.append(tuple(f for n in names for f in self.columns if f.name == n))
        return self._partitions[0]

    def identity(self) -> str:
        return str(self.place.opened().metadata().id)

    def begin(self) -> int:
        table = self.place.seen() if self.version is None else self.place.opened(self.version)
        check_readable(self.place, table, self.columns)
        newest = int(table.version())
        if self.starting is None:
            return newest
        if self.starting > newest + 1:
            raise ConnectorError(
                f"Delta table '{self.place.name}' has versions up to {newest}, but 'startingVersion' is"
                f" {self.starting}."
            )
        return self.starting

    def files(self, version: int, *, whole: bool) -> Sequence[DataFile]:
        if whole:
            names = [f.name for f in self.partitions]
            return active_files(self.place, self.place.opened(version), names, self.bounded)
        if version == self.starting and not has_version(self.place, version):
            return ()  # it is to come
        commit = self._commit(version)
        if not self.changes:
            return [file.data_file(self.partitions) for file in commit.added]
        if not commit.changes:
            return [file.data_file(self.partitions) for file in (*commit.removed, *commit.added)]
        found = [replace(file.data_file(self.partitions), changes=True) for file in commit.changes]
        # A file has its changes in any order. If the new row of an update came before the old row, a sink
        # by primary key would delete the key.
        parts = RETRACTIONS, ALL_KINDS - RETRACTIONS
        return [replace(file, kinds=kinds) for kinds in parts for file in found]

    def following(self, version: int) -> int | None:
        """ConnectorError where the table goes on, but its log has not kept the next version."""
        if has_version(self.place, version + 1):
            return version + 1
        if not self.looked:
            self.looked.append(int(self.place.opened().version()))
            if self.looked[0] > version:
                self._commit(version + 1)
        return None

    def _commit(self, version: int) -> Commit:
        found = read_commit(self.place, version)
        lets = self.changes or self.ignores_changes or (self.ignores_deletes and not found.added)
        if found.removed and not lets:
            raise ConnectorError(
                f"Version {version} of Delta table '{self.place.name}' removes rows that were read, which a"
                " stream of appended rows cannot say.",
                hint="'readChangeFeed' reads the changes. 'ignoreDeletes' goes on where a version only"
                " removes rows, 'ignoreChanges' reads files that were rewritten once more.",
            )
        if found.redefined:
            check_readable(self.place, self.place.opened(version), self.columns)
        return found
