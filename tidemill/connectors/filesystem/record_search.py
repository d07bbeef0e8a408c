"""Searches large quoted text for record starts with Spark tasks, so that the driver need not read the text.

Whether a newline ends a record depends on all quotes before it. So each task reads each of its pieces twice:
as if the piece began inside quotes, and as if not. The result of each reading is small: whether the piece
ends inside quotes, and where its first record ends. The driver chains the results from a known record start.
This gives a record start in nearly every piece; a cut between two starts then needs a read of one piece at
most.

Most pieces are plain in only one of the two readings: their quotes open and close at field borders. The other
reading walks over the quotes one by one, and only if the chain needs it. Cost: a Spark job that reads the
bytes once more, in parallel. Small text needs no job, nor does text without quotes on the local disk of a
one-machine cluster.
"""

from __future__ import annotations

import json
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from tidemill.connectors.filesystem.changes import opened
from tidemill.connectors.filesystem.cutting import Cutter
from tidemill.connectors.task_frames import assigned, task_frame
from tidemill.connectors.worker_errors import WorkerError
from tidemill.errors import ConnectorError
from tidemill.files.storage import Storage

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PIECE = 4 << 20
_TASK_BYTES = 32 << 20
_WORTH_LOCAL, _WORTH_REMOTE = 64 << 20, 16 << 20
"""The driver searches fewer bytes than this itself, on its own disk or elsewhere; a job would take longer."""
_AT_ONCE = 512 << 20
"""The most bytes in which the driver of a one-machine cluster looks for the mere presence of quotes."""
_REMEMBERED = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Stretch:
    """The bytes ``start``..``end`` of a file of ``size`` bytes. ``first``: a record begins at ``start``.
    ``may_walk``: read the text both ways, even if one way walks over the quotes."""

    path: str
    start: int
    end: int
    size: int
    first: bool = True
    may_walk: bool = False


@dataclass(frozen=True, slots=True)
class Piece:
    """``ways[inside]`` is the reading of the piece if its start is ``inside`` quotes: (whether its end is,
    first record end or -1). None: not read this way."""

    path: str
    start: int
    ways: tuple[tuple[bool, int] | None, tuple[bool, int] | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Searcher:
    """The work of a task. It is picklable."""

    storage: Storage
    cutter: Cutter
    piece: int

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for stretch in assigned(batches):
            try:
                documents = [json.dumps([p.path, p.start, p.ways]) for p in self.pieces(stretch)]
            except ConnectorError as e:
                raise WorkerError(e) from None
            yield pa.record_batch([pa.array(documents, pa.string())], names=["piece"])

    def pieces(self, stretch: Stretch) -> Iterator[Piece]:
        with opened(self.storage, stretch.path) as file:
            is_record_start = stretch.first
            start = stretch.start or self.cutter.mark(file)
            if not is_record_start:
                start = self.cutter.border(file, start, stretch.size)
            for target in range(stretch.start + self.piece, stretch.end + self.piece, self.piece):
                end = self.cutter.border(file, min(target, stretch.end), stretch.size)
                if start < end:
                    yield self._piece(file, stretch, start, end, is_record_start=is_record_start)
                    start, is_record_start = end, False

    def _piece(
        self, file: pa.NativeFile, stretch: Stretch, start: int, end: int, *, is_record_start: bool
    ) -> Piece:
        """Reads a piece. The byte before the piece says whether a first quote opens a field."""
        first_byte = start if is_record_start else start - 1
        file.seek(first_byte)
        data = np.frombuffer(file.read_buffer(end - first_byte), dtype=np.uint8)
        if is_record_start:
            return Piece(stretch.path, start, (self._way(data, start, 0, inside=False, may_walk=True), None))
        ways = [
            self._way(data, start, 1, inside=inside, may_walk=stretch.may_walk) for inside in (False, True)
        ]
        if ways == [None, None]:
            ways = [self._way(data, start, 1, inside=inside, may_walk=True) for inside in (False, True)]
        return Piece(stretch.path, start, (ways[0], ways[1]))

    def _way(
        self, data: Any, start: int, begin: int, *, inside: bool, may_walk: bool
    ) -> tuple[bool, int] | None:
        """``Cutter.passage`` with an offset in the file. ``data`` begins ``begin`` bytes before ``start``."""
        way = self.cutter.passage(data, begin, inside=inside, may_walk=may_walk)
        return way if way is None or way[1] < 0 else (way[0], start - begin + way[1])


Look = Callable[[list[Stretch]], list[Piece]]
Pieces = defaultdict[str, dict[int, Piece]]
"""By file and offset."""


def record_starts(stretches: Sequence[Stretch], look: Look, step: int = _TASK_BYTES) -> list[list[int]]:
    """Ascending record starts in each stretch; a record begins at the start of each stretch. ``look`` reads
    stretches of at most ``step`` bytes."""
    tasks = [_spread(stretch, step) for stretch in stretches]
    pieces: Pieces = defaultdict(dict)
    _add(pieces, look([task for tasks_of_stretch in tasks for task in tasks_of_stretch]))
    chained = [_put_together(stretch, pieces[stretch.path]) for stretch in stretches]
    unread = [
        replace(task, may_walk=True)
        for (_, unknown), tasks_of_stretch in zip(chained, tasks, strict=True)
        for task in tasks_of_stretch
        if unknown is not None and task.end > unknown
    ]
    if unread:
        _add(pieces, look(unread))
        chained = [_put_together(stretch, pieces[stretch.path]) for stretch in stretches]
    return [starts for starts, _ in chained]


def _add(pieces: Pieces, found: Iterable[Piece]) -> None:
    for piece in found:
        pieces[piece.path][piece.start] = piece


def _spread(stretch: Stretch, step: int) -> list[Stretch]:
    """Divides ``stretch`` into stretches of ``step`` bytes, one per task."""
    return [
        replace(stretch, start=at, end=min(at + step, stretch.end), first=at == stretch.start)
        for at in range(stretch.start, stretch.end, step)
    ]


def _put_together(stretch: Stretch, pieces: Mapping[int, Piece]) -> tuple[list[int], int | None]:
    """The record starts up to the first piece that must be read again, and where this piece begins."""
    starts: list[int] = []
    inside = False
    for piece_start in sorted(
        piece_start for piece_start in pieces if stretch.start <= piece_start < stretch.end
    ):
        way = pieces[piece_start].ways[inside]
        if way is None:
            return starts, piece_start
        inside, end = way
        if end >= 0:
            starts.append(end)
    return starts, None


@dataclass(slots=True, kw_only=True)
class RecordSearch:
    """Record starts that a source has searched for. ``spark``: runs the tasks; None: the driver searches
    alone. ``_found``: by file, the start and end of the searched range, and the record starts in it.
    ``_ahead``: a range that another thread has searched in advance, and its record starts."""

    storage: Storage
    cutter: Cutter
    spark: SparkSession | None = None
    piece: int = PIECE
    _found: dict[str, tuple[int, int, list[int]]] = field(default_factory=dict)
    _ahead: tuple[Stretch, list[int]] | None = None

    def look_through(self, stretches: Iterable[Stretch]) -> None:
        """Searches the large ``stretches`` for record starts. If the search fails, it remembers nothing: the
        later reader of the bytes scans them itself, and raises the error."""
        threshold = _WORTH_LOCAL if self.storage.is_local else _WORTH_REMOTE
        large = [
            s for s in stretches if s.end - s.start > threshold and not self._covers(s.path, s.start, s.end)
        ]
        if self.spark is None or not large:
            return
        quoted = [s for s in large if not self._was_ahead(s) and not self._is_plain(s)]
        try:
            starts = record_starts(quoted, self._look) if quoted else []
        except Exception:  # any: see above
            return
        for stretch, found_starts in zip(quoted, starts, strict=True):
            self._remember(stretch, found_starts)

    def ahead(self, stretch: Stretch) -> Callable[[], None] | None:
        """A function for another thread that searches ``stretch`` in advance; None if that is not worthwhile.
        The result counts only once ``stretch`` is searched for."""
        size = stretch.end - stretch.start
        already_searched = self._ahead is not None and self._ahead[0] == stretch
        if already_searched or not _WORTH_LOCAL < size <= _AT_ONCE or not self._is_near():
            return None

        def look() -> None:
            starts = self._plain_starts(stretch)
            self._ahead = None if starts is None else (stretch, starts)

        return look

    def _was_ahead(self, stretch: Stretch) -> bool:
        ahead = self._ahead
        if ahead is None or ahead[0] != stretch:
            return False
        self._remember(*ahead)
        return True

    def _is_near(self) -> bool:
        """Whether the files are on the driver's disk, and the driver is the whole cluster."""
        return (
            self.spark is not None
            and self.storage.is_local
            and (self.spark.sparkContext.master or "").startswith("local")
        )

    def _is_plain(self, stretch: Stretch) -> bool:
        """Whether the driver can tell quickly, from its own disk, that every newline ends a record."""
        if stretch.end - stretch.start > _AT_ONCE or not self._is_near():
            return False
        starts = self._plain_starts(stretch)
        if starts is not None:
            self._remember(stretch, starts)
        return starts is not None

    def _plain_starts(self, stretch: Stretch) -> list[int] | None:
        """A record start in each piece; None if there are quotes."""
        try:
            with self.storage.open(stretch.path) as file:
                if self.cutter.has_quotes(file, stretch.start, stretch.end):
                    return None
                goals = range(stretch.start + self.piece, stretch.end, self.piece)
                ends = {self.cutter.next_newline(file, goal, stretch.size) for goal in goals}
        except OSError:
            return None
        return sorted(end for end in ends if end <= stretch.end)

    def _remember(self, stretch: Stretch, starts: list[int]) -> None:
        self._found.pop(stretch.path, None)
        self._found[stretch.path] = (stretch.start, stretch.end, starts)
        for path in list(self._found)[:-_REMEMBERED]:
            del self._found[path]

    def last_start(self, path: str, start: int, goal: int) -> int:
        """The last known record start between ``start``, which is a record start, and ``goal``."""
        starts = self._starts(path, start, goal)
        count = bisect_right(starts, goal)
        return max(start, starts[count - 1]) if count else start

    def cut_at(self, path: str, goal: int, end: int) -> None:
        """Remembers that the first record at or after ``goal`` starts at ``end``."""
        begin, stop, starts = self._found.get(path, (0, -1, []))
        if begin <= goal <= stop < end:
            self._found[path] = (begin, end, starts)

    def cuts(self, path: str, start: int, end: int, step: int) -> list[int] | None:
        """Record starts about ``step`` apart, then ``end``; None if the range was not searched."""
        if not self._covers(path, start, end):
            return None
        starts, last_cut, cuts = self._starts(path, start, end), start, []
        while last_cut < end:
            index = bisect_left(starts, last_cut + step)
            last_cut = min(starts[index], end) if index < len(starts) else end
            cuts.append(last_cut)
        return cuts

    def _look(self, stretches: list[Stretch]) -> list[Piece]:
        assert self.spark is not None
        searcher = Searcher(storage=self.storage, cutter=self.cutter, piece=self.piece)
        rows = task_frame(self.spark, stretches).mapInArrow(searcher, "piece STRING").collect()
        return [_piece_of(json.loads(row[0])) for row in rows]

    def _covers(self, path: str, start: int, end: int) -> bool:
        begin, stop, _ = self._found.get(path, (0, -1, []))
        return begin <= start and end <= stop

    def _starts(self, path: str, start: int, goal: int) -> list[int]:
        return self._found[path][2] if self._covers(path, start, goal) else []


def _piece_of(parts: list[Any]) -> Piece:
    path, start, ways = parts
    outside, inside = (None if way is None else (bool(way[0]), int(way[1])) for way in ways)
    return Piece(path, start, (outside, inside))
