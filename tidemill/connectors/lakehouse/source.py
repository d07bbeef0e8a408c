"""Reads a table of versions: one version, or one version and then what later ones append.

The unit of reading is a version: at first all files of one, then the files that each later one has added. An
offset is a place among the rows of a version's files, whose order is fixed, so that the same range always
has the same rows.

A stream of changes reads the removed rows of a version before its added rows. No epoch ends between them, so
no result is ever half-updated.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame

from tidemill.connectors.api import ArrowSource, Offset, ReadLimit, ReadTasks
from tidemill.connectors.api.source import SourceHistory
from tidemill.connectors.filters import ColumnFilter
from tidemill.connectors.lakehouse.api import History
from tidemill.connectors.lakehouse.bounds import may_be_in
from tidemill.connectors.lakehouse.files import DataFile, Piece, enough, tasks, whole
from tidemill.connectors.lakehouse.reading import LakeReader
from tidemill.connectors.task_frames import read_frame
from tidemill.errors import ConnectorError, StateError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True, slots=True, kw_only=True)
class Position:
    """After ``row`` rows of file number ``file`` of a version: of all its files if ``whole``, else of those
    that it has added. ``begin``: the version that reading began with; ``count``: of the rows before;
    ``table``: which table it is, whatever its name."""

    table: str
    begin: int
    version: int
    whole: bool
    file: int = 0
    row: int = 0
    count: int = 0

    def to_json(self) -> Offset:
        return {name: getattr(self, name) for name in self.__slots__}

    def moved(self, file: DataFile, rows: int) -> Position:
        """After so many more rows of ``file``, which it is in."""
        row, count = self.row + rows, self.count + rows
        if row >= file.rows:
            return replace(self, file=self.file + 1, row=0, count=count)
        return replace(self, row=row, count=count)

    def entering(self, version: int) -> Position:
        """Before the rows that a later version has added."""
        return replace(self, version=version, whole=False, file=0, row=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class LakeSource(ArrowSource):
    """``follows``: goes on with later versions. ``chosen``: the files to read, None for all. ``listed``: the
    files of the version that was asked for last: an epoch of a large one does not list it again. ``resumed``:
    whether the table was looked at since."""

    history: History
    reader: LakeReader
    filters: tuple[ColumnFilter, ...]
    parallelism: int
    follows: bool = False
    chosen: frozenset[str] | None = None
    listed: dict[tuple[int, bool], list[DataFile]] = field(default_factory=dict, compare=False)
    resumed: list[str] = field(default_factory=list, compare=False)

    @property
    def is_bounded(self) -> bool:
        return not self.follows

    def next_offset(self, start: Offset | None, limit: ReadLimit) -> Offset:
        """As of ``History``."""
        position = self._beginning() if start is None else self._resumed(Position(**start))
        left = limit
        while not _is_used_up(left) or self._is_within(position):
            files = self._files(position)
            if position.file < len(files):
                file = files[position.file]
                taken = self._share(position, file, left)
                left = _without(left, file, taken)
                position = position.moved(file, taken)
                continue
            following = self.history.following(position.version) if self.follows else None
            if following is None:
                break
            position = position.entering(following)
        return position.to_json()

    def remembered(self, end: Offset, *, ended: bool) -> LakeHistory:
        last = Position(**end)
        try:
            self._resumed(last)
            self.pieces(None, end)
        except ConnectorError as e:
            raise StateError(e.message.removesuffix(".")) from e
        return LakeHistory(source=self, last=last, bounded=ended)

    def is_empty(self, start: Offset | None, end: Offset) -> bool:
        return not _rows(start, end)

    def is_finished(self, offset: Offset | None) -> bool:
        if offset is None or self.follows:
            return False
        position = Position(**offset)
        return position.file >= len(self._files(position))

    def read(self, spark: SparkSession, start: Offset | None, end: Offset) -> DataFrame:
        return read_frame(spark, self.read_tasks(spark, start, end), self.reader.schema)

    def read_tasks(self, spark: SparkSession, start: Offset | None, end: Offset) -> ReadTasks:
        return self._tasks(self.pieces(start, end))

    def read_all(self, spark: SparkSession) -> DataFrame:
        files = filter(self._admits, self.history.files(self.history.begin(), whole=True))
        wanted = None if self.filters else self.reader.limit
        made = self._tasks(list(enough(whole(files), wanted)))
        return read_frame(spark, made, self.reader.schema)

    def extent(self, start: Offset | None, end: Offset) -> str:
        rows = _rows(start, end)
        return f"{rows:,} rows" if rows else ""

    def pieces(self, start: Offset | None, end: Offset) -> list[Piece]:
        """The rows of the range that may be wanted."""
        last = Position(**end)
        return [piece for _, piece in self.walk(start, last, ReadLimit()) if self._admits(piece.file)]

    def walk(
        self, start: Offset | None, last: Position, limit: ReadLimit
    ) -> Iterator[tuple[Position, Piece]]:
        """The pieces from ``start`` to ``last``, or as many as the limit allows, each with its end."""
        at = self._at(last.begin, last.table) if start is None else Position(**start)
        while at.count < last.count and (not _is_used_up(limit) or self._is_within(at)):
            files = self._files(at)
            if at.file == len(files):
                at = at.entering(self._next(at))
                continue
            file = files[at.file]
            taken = min(self._share(at, file, limit), last.count - at.count)
            limit = _without(limit, file, taken)
            piece = Piece(file=file, start=at.row, end=at.row + taken, first=at.count)
            at = at.moved(file, taken)
            yield at, piece

    def _is_within(self, at: Position) -> bool:
        """Whether ``at`` is inside a version that one epoch reads as a whole."""
        return self._is_whole(at) and 0 < at.file < len(self._files(at))

    def _is_whole(self, at: Position) -> bool:
        """Whether one epoch reads all rows of the version, however many they are."""
        return self.reader.changes and not at.whole

    def _share(self, at: Position, file: DataFile, limit: ReadLimit) -> int:
        """How many more rows of the file an epoch takes."""
        left = file.rows - at.row
        if self._is_whole(at):
            return left
        if limit.rows is not None:
            left = min(left, limit.rows)
        if limit.bytes is not None:
            left = min(left, max(limit.bytes * file.rows // max(file.size, 1), 1))
        return left

    def _beginning(self) -> Position:
        return self._at(self.history.begin(), self.history.identity())

    def _at(self, version: int, table: str) -> Position:
        return Position(table=table, begin=version, version=version, whole=self.history.begins_whole)

    def _resumed(self, position: Position) -> Position:
        """ConnectorError where another table has taken the place of the one that was read."""
        if not self.resumed:
            self.resumed.append(self.history.identity())
            if self.resumed[0] != position.table:
                raise ConnectorError(
                    f"Table '{self.reader.table}' was dropped and created again: its versions start again.",
                    hint="Start the job with a checkpoint directory of its own to read the new table.",
                )
        return position

    def _next(self, position: Position) -> int:
        """The version that a range goes on with."""
        following = self.history.following(position.version)
        if following is None:
            raise ConnectorError(
                f"Table '{self.reader.table}' does not have the version any more that follows"
                f" {position.version}, which is to be read again."
            )
        return following

    def _files(self, position: Position) -> list[DataFile]:
        key = position.version, position.whole
        if key not in self.listed:
            found = list(self.history.files(position.version, whole=position.whole))
            if not found:
                return found  # it may be to come
            self.listed.clear()
            self.listed[key] = found
        return self.listed[key]

    def _admits(self, file: DataFile) -> bool:
        chosen = self.chosen is None or file.path in self.chosen
        return chosen and all(may_be_in(f, file.bounds, file.rows) for f in self.filters)

    def _tasks(self, pieces: list[Piece]) -> ReadTasks:
        rows = sum(piece.end - piece.start for piece in pieces)
        return ReadTasks.of_rows(tasks(pieces, self.parallelism), self.reader.read, rows)


@dataclass(frozen=True, slots=True, kw_only=True)
class LakeHistory(SourceHistory[LakeSource]):
    """The rows up to ``last``, whatever versions there are since."""

    last: Position

    def next_offset(self, start: Offset | None, limit: ReadLimit) -> Offset:
        place = start
        for at, _ in self.source.walk(start, self.last, limit):
            place = at.to_json()
        return self.last.to_json() if self._is_read(place) or place is None else place

    def _is_read(self, offset: Offset | None) -> bool:
        return offset is not None and Position(**offset).count == self.last.count

    def is_finished(self, offset: Offset | None) -> bool:
        return self.is_bounded and self._is_read(offset)

    def read_all(self, spark: SparkSession) -> DataFrame:
        return self.read(spark, None, self.last.to_json())


def _rows(start: Offset | None, end: Offset) -> int:
    return Position(**end).count - (0 if start is None else Position(**start).count)


def _is_used_up(limit: ReadLimit) -> bool:
    return any(left is not None and left <= 0 for left in (limit.rows, limit.bytes))


def _without(limit: ReadLimit, file: DataFile, rows: int) -> ReadLimit:
    """What is left of ``limit`` after so many rows of ``file``."""
    used = rows * file.size // max(file.rows, 1) + 1
    return ReadLimit(
        rows=None if limit.rows is None else limit.rows - rows,
        bytes=None if limit.bytes is None else limit.bytes - used,
    )
