"""Reads a Delta table: one version, or one version and then what later versions append.

The unit of reading is a version: at first all files of a snapshot, then the files that each commit has
added. An offset is a place among the rows of a version's files, whose order is the log's, so that the same
range always has the same rows. What later versions remove cannot be taken back: that is an error, unless the
table's options say otherwise."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame

from tidemill.connectors.api import BatchMap, Offset, ReadLimit
from tidemill.connectors.arrow_maps import map_batches
from tidemill.connectors.delta.log import Commit, has_version, read_commit
from tidemill.connectors.delta.table import DeltaPlace, active_files, check_readable
from tidemill.connectors.filters import ColumnFilter, columns_of
from tidemill.connectors.lakehouse.bounds import may_be_in
from tidemill.connectors.lakehouse.files import DataFile, Piece, enough, tasks, whole
from tidemill.connectors.lakehouse.reading import LakeReader, task_reader
from tidemill.connectors.task_frames import task_frame
from tidemill.errors import ConnectorError
from tidemill.types.logical import Field

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True, slots=True, kw_only=True)
class Position:
    """After ``row`` rows of file number ``file`` of a version: of all its files if ``whole``, else of those
    that it has added. ``begin``: the version that reading began with; ``count``: of the rows before."""

    begin: int
    version: int
    whole: bool
    file: int = 0
    row: int = 0
    count: int = 0

    @classmethod
    def at_start(cls, begin: int, *, whole: bool) -> Position:
        return cls(begin=begin, version=begin, whole=whole)

    def to_json(self) -> Offset:
        return {name: getattr(self, name) for name in self.__slots__}

    def moved(self, file: DataFile, rows: int) -> Position:
        """After so many more rows of ``file``, which it is in."""
        row, count = self.row + rows, self.count + rows
        if row >= file.rows:
            return replace(self, file=self.file + 1, row=0, count=count)
        return replace(self, row=row, count=count)

    def next_version(self) -> Position:
        return replace(self, version=self.version + 1, whole=False, file=0, row=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class DeltaSource:
    """``version``: the one to read, None for the newest; ``follows``: goes on with later ones, from
    ``starting`` without a snapshot if that is set. ``columns``: all that the table declares; ``partitions``:
    those of them that its files do not hold."""

    place: DeltaPlace
    reader: LakeReader
    columns: tuple[Field, ...]
    partitions: tuple[Field, ...]
    filters: tuple[ColumnFilter, ...]
    parallelism: int
    version: int | None = None
    follows: bool = False
    starting: int | None = None
    ignores_deletes: bool = False
    ignores_changes: bool = False
    checked: list[int] = field(default_factory=list, compare=False)
    looked: list[int] = field(default_factory=list, compare=False)

    @property
    def is_bounded(self) -> bool:
        return not self.follows

    def next_offset(self, start: Offset | None, limit: ReadLimit) -> Offset:
        """ConnectorError where a version has removed rows, or is in the log no more."""
        position = self._first() if start is None else Position(**start)
        rows, size = limit.rows, limit.bytes
        while (rows is None or rows > 0) and (size is None or size > 0):
            files = self._files(position)
            if position.file < len(files):
                file = files[position.file]
                taken = _share(file, position.row, rows, size)
                rows = None if rows is None else rows - taken
                size = None if size is None else size - _bytes(file, taken)
                position = position.moved(file, taken)
            elif self.follows and self._has_next(position):
                position = position.next_version()
            else:
                break
        return position.to_json()

    def is_empty(self, start: Offset | None, end: Offset) -> bool:
        return not self._rows(start, end)

    def is_finished(self, offset: Offset | None) -> bool:
        if offset is None or self.follows:
            return False
        position = Position(**offset)
        return position.file >= len(self._files(position))

    def read(self, spark: SparkSession, start: Offset | None, end: Offset) -> DataFrame:
        return self.read_through(spark, start, end, None, self.reader.schema)

    def read_through(
        self, spark: SparkSession, start: Offset | None, end: Offset, through: BatchMap | None, schema: str
    ) -> DataFrame:
        """``read`` with ``through`` applied to each task's batches in the worker that decodes them."""
        return self._frame(spark, self.pieces(start, end), through, schema)

    def read_all(self, spark: SparkSession) -> DataFrame:
        wanted = self.reader.limit if not self.filters else None
        pieces = enough(whole(self.admitted(self._snapshot(self.newest()))), wanted)
        return self._frame(spark, list(pieces), None, self.reader.schema)

    def extent(self, start: Offset | None, end: Offset) -> str:
        rows = self._rows(start, end)
        return f"{rows:,} rows" if rows else ""

    def pieces(self, start: Offset | None, end: Offset) -> list[Piece]:
        """The rows of the range that may be wanted."""
        last = Position(**end)
        at = Position.at_start(last.begin, whole=self._is_whole) if start is None else Position(**start)
        found: list[Piece] = []
        while at.count < last.count:
            files = self._files(at)
            if at.file == len(files):
                at = at.next_version()
                continue
            file = files[at.file]
            taken = min(file.rows - at.row, last.count - at.count)
            found.append(Piece(file=file, start=at.row, end=at.row + taken, first=at.count))
            at = at.moved(file, taken)
        return [piece for piece in found if self._admits(piece.file)]

    def admitted(self, files: list[DataFile]) -> list[DataFile]:
        """The files that may hold rows for which all filters hold."""
        return [file for file in files if self._admits(file)]

    def newest(self) -> int:
        """The version that a batch query reads."""
        if not self.checked:
            table = self.place.opened(self.version)
            check_readable(self.place, table, self.columns)
            self.checked.append(int(table.version()))
        return self.checked[0]

    def _admits(self, file: DataFile) -> bool:
        return all(may_be_in(f, file.bounds, file.rows) for f in self.filters)

    def _frame(
        self, spark: SparkSession, pieces: list[Piece], through: BatchMap | None, schema: str
    ) -> DataFrame:
        made = tasks(pieces, self.parallelism)
        return map_batches(task_frame(spark, made), task_reader(self.reader, through), schema)

    @property
    def _is_whole(self) -> bool:
        """Whether reading begins with a snapshot."""
        return self.starting is None

    def _first(self) -> Position:
        newest = self.newest()
        if self.starting is None:
            return Position.at_start(newest, whole=True)
        if self.starting > newest + 1:
            raise ConnectorError(
                f"Delta table '{self.place.name}' has versions up to {newest}, but 'startingVersion' is"
                f" {self.starting}."
            )
        return Position.at_start(self.starting, whole=False)

    def _rows(self, start: Offset | None, end: Offset) -> int:
        return Position(**end).count - (0 if start is None else Position(**start).count)

    def _files(self, position: Position) -> tuple[DataFile, ...]:
        if position.whole:
            return tuple(self._snapshot(position.version))
        is_awaited = position.version == self.starting == position.begin
        if is_awaited and not has_version(self.place, position.version):
            return ()
        return self._commit(position.version).added

    def _snapshot(self, version: int) -> list[DataFile]:
        names = {name for f in self.filters for name in columns_of(f)}
        return _snapshot(self.place, version, self.partitions, tuple(sorted(names)))

    def _commit(self, version: int) -> Commit:
        found = _commit(self.place, version, self.partitions)
        if found.removed and not (self.ignores_changes or (self.ignores_deletes and not found.added)):
            raise ConnectorError(
                f"Version {version} of Delta table '{self.place.name}' removes rows that were read, which a"
                " stream of appended rows cannot say.",
                hint="'ignoreDeletes' goes on where a version only removes rows, 'ignoreChanges' reads files"
                " that were rewritten once more.",
            )
        if found.redefined:
            check_readable(self.place, self.place.opened(version), self.columns)
        return found

    def _has_next(self, position: Position) -> bool:
        """ConnectorError where the table goes on, but its log has not kept the next version."""
        following = position.version + 1
        if has_version(self.place, following):
            return True
        if not self.looked:
            self.looked.append(int(self.place.opened().version()))
            if self.looked[0] >= following:
                self._commit(following)
        return False


def _share(file: DataFile, row: int, rows: int | None, size: int | None) -> int:
    """How many of the file's rows from ``row`` on an epoch takes."""
    left = file.rows - row
    if rows is not None:
        left = min(left, rows)
    if size is not None:
        left = min(left, max(size * file.rows // max(file.size, 1), 1))
    return left


def _bytes(file: DataFile, rows: int) -> int:
    return rows * file.size // max(file.rows, 1) + 1


@lru_cache(maxsize=8)
def _snapshot(
    place: DeltaPlace, version: int, partitions: tuple[Field, ...], columns: tuple[str, ...]
) -> list[DataFile]:
    """A version is the same for ever: an epoch of a large snapshot does not list it again."""
    return active_files(place, place.opened(version), [f.name for f in partitions], columns)


@lru_cache(maxsize=8)
def _commit(place: DeltaPlace, version: int, partitions: tuple[Field, ...]) -> Commit:
    return read_commit(place, version, partitions)
