"""Looks for records' starts in large quoted text by tasks, so that the driver need not read it.

Whether a newline ends a record depends on all the quotes before it. So each task looks at its pieces twice:
as if they began inside of quotes, and as if not. That is little to say for each: whether its end is inside,
and where the first record ends. Put together in order, from a place that is known to be a record's start, it
gives a start in nearly every piece; whoever needs a cut between two of them reads one piece at most.

Most texts make sense in one of the two ways alone, by quotes that open and close at the ends of fields. The
other way is walked through, quote by quote, only where it turns out to be the true one. Cost: a Spark job,
and one more pass over the bytes, beside each other; nothing where there is little to look through. Text that
has no quotes at all, on the disk of a machine that is the whole cluster, is not worth a job.
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
"""What the driver looks through itself, in less time than a job takes, if its own disk has it or not."""
_AT_ONCE = 512 << 20
"""What the driver looks through for the mere presence of quotes, where it is the whole cluster."""
_REMEMBERED = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Stretch:
    """Bytes of a file; ``first``: it starts with a record. ``size``: of the file. ``walks``: both ways are to
    be looked at, whatever that takes."""

    path: str
    start: int
    end: int
    size: int
    first: bool = True
    walks: bool = False


@dataclass(frozen=True, slots=True)
class Piece:
    """By whether its start is inside of quotes: (whether its end is, the first record end or -1), None where
    that was not looked at."""

    path: str
    start: int
    ways: tuple[tuple[bool, int] | None, tuple[bool, int] | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Searcher:
    """What a task does; picklable."""

    storage: Storage
    cutter: Cutter
    piece: int

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for stretch in assigned(batches):
            try:
                found = [json.dumps([p.path, p.start, p.ways]) for p in self.pieces(stretch)]
            except ConnectorError as e:
                raise WorkerError(e) from None
            yield pa.record_batch([pa.array(found, pa.string())], names=["piece"])

    def pieces(self, stretch: Stretch) -> Iterator[Piece]:
        with opened(self.storage, stretch.path) as file:
            known = stretch.first
            start = stretch.start or self.cutter.mark(file)
            if not known:
                start = self.cutter.border(file, start, stretch.size)
            for near in range(stretch.start + self.piece, stretch.end + self.piece, self.piece):
                end = self.cutter.border(file, min(near, stretch.end), stretch.size)
                if start < end:
                    yield self._piece(file, stretch, start, end, known=known)
                    start, known = end, False

    def _piece(self, file: pa.NativeFile, stretch: Stretch, start: int, end: int, *, known: bool) -> Piece:
        """The byte before it says whether a quote opens a field."""
        before = start if known else start - 1
        file.seek(before)
        data = np.frombuffer(file.read_buffer(end - before), dtype=np.uint8)
        if known:
            return Piece(stretch.path, start, (self._way(data, start, 0, inside=False, walks=True), None))
        ways = [self._way(data, start, 1, inside=inside, walks=stretch.walks) for inside in (False, True)]
        if ways == [None, None]:
            ways = [self._way(data, start, 1, inside=inside, walks=True) for inside in (False, True)]
        return Piece(stretch.path, start, (ways[0], ways[1]))

    def _way(
        self, data: Any, start: int, begin: int, *, inside: bool, walks: bool
    ) -> tuple[bool, int] | None:
        """``data`` has ``begin`` bytes before the ``start`` of the piece."""
        found = self.cutter.passage(data, begin, inside=inside, walks=walks)
        return found if found is None or found[1] < 0 else (found[0], start - begin + found[1])


Look = Callable[[list[Stretch]], list[Piece]]
Pieces = defaultdict[str, dict[int, Piece]]
"""By file and place."""


def record_starts(stretches: Sequence[Stretch], look: Look, step: int = _TASK_BYTES) -> list[list[int]]:
    """Starts of records in each of the stretches, which begin with one, ascending; ``look`` gives the pieces
    of many of ``step`` bytes at most."""
    tasks = [_spread(stretch, step) for stretch in stretches]
    pieces: Pieces = defaultdict(dict)
    _add(pieces, look([task for some in tasks for task in some]))
    found = [_put_together(stretch, pieces[stretch.path]) for stretch in stretches]
    left = [
        replace(task, walks=True)
        for (_, unknown), some in zip(found, tasks, strict=True)
        for task in some
        if unknown is not None and task.end > unknown
    ]
    if left:
        _add(pieces, look(left))
        found = [_put_together(stretch, pieces[stretch.path]) for stretch in stretches]
    return [starts for starts, _ in found]


def _add(pieces: Pieces, found: Iterable[Piece]) -> None:
    for piece in found:
        pieces[piece.path][piece.start] = piece


def _spread(stretch: Stretch, step: int) -> list[Stretch]:
    """What each task looks at."""
    return [
        replace(stretch, start=at, end=min(at + step, stretch.end), first=at == stretch.start)
        for at in range(stretch.start, stretch.end, step)
    ]


def _put_together(stretch: Stretch, pieces: Mapping[int, Piece]) -> tuple[list[int], int | None]:
    """The starts that are known, and where the first piece begins that must be looked at again."""
    starts: list[int] = []
    inside = False
    for at in sorted(at for at in pieces if stretch.start <= at < stretch.end):
        way = pieces[at].ways[inside]
        if way is None:
            return starts, at
        inside, end = way
        if end >= 0:
            starts.append(end)
    return starts, None


@dataclass(slots=True, kw_only=True)
class RecordSearch:
    """What one source has looked for; ``spark``: whose tasks look, None where the driver is on its own.
    ``_found``: by file what was looked through, and the starts in it. ``_ahead``: what another thread has
    looked through, which is not asked for yet."""

    storage: Storage
    cutter: Cutter
    spark: SparkSession | None = None
    piece: int = PIECE
    _found: dict[str, tuple[int, int, list[int]]] = field(default_factory=dict)
    _ahead: tuple[Stretch, list[int]] | None = None

    def look_through(self, stretches: Iterable[Stretch]) -> None:
        """Looks for records' starts in those that are large. Where that fails there are none: who needs them
        goes through the bytes itself, and says what is wrong with them."""
        worth = _WORTH_LOCAL if self.storage.is_local else _WORTH_REMOTE
        large = [s for s in stretches if s.end - s.start > worth and not self._covers(s.path, s.start, s.end)]
        if self.spark is None or not large:
            return
        quoted = [s for s in large if not self._was_ahead(s) and not self._is_plain(s)]
        try:
            starts = record_starts(quoted, self._look) if quoted else []
        except Exception:  # any: see above
            return
        for stretch, found in zip(quoted, starts, strict=True):
            self._remember(stretch, found)

    def ahead(self, stretch: Stretch) -> Callable[[], None] | None:
        """Looks, in a thread of its own, through what is asked for next; None where that is not worth it.
        Until it is asked for it changes nothing."""
        size = stretch.end - stretch.start
        known = self._ahead is not None and self._ahead[0] == stretch
        if known or not _WORTH_LOCAL < size <= _AT_ONCE or not self._is_near():
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
        """Whether the disk is next to the driver, which is the whole cluster."""
        return (
            self.spark is not None
            and self.storage.is_local
            and (self.spark.sparkContext.master or "").startswith("local")
        )

    def _is_plain(self, stretch: Stretch) -> bool:
        """Whether a look at a disk next to it tells the driver that every newline ends a record."""
        if stretch.end - stretch.start > _AT_ONCE or not self._is_near():
            return False
        starts = self._plain_starts(stretch)
        if starts is not None:
            self._remember(stretch, starts)
        return starts is not None

    def _plain_starts(self, stretch: Stretch) -> list[int] | None:
        """A start in each piece, where there are no quotes."""
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
        """The last start that is known between ``start``, which is one, and ``goal``."""
        starts = self._starts(path, start, goal)
        place = bisect_right(starts, goal)
        return max(start, starts[place - 1]) if place else start

    def cut_at(self, path: str, goal: int, end: int) -> None:
        """The first record that starts at or after ``goal`` does at ``end``."""
        begin, stop, starts = self._found.get(path, (0, -1, []))
        if begin <= goal <= stop < end:
            self._found[path] = (begin, end, starts)

    def cuts(self, path: str, start: int, end: int, step: int) -> list[int] | None:
        """Starts about ``step`` apart and then ``end``; None where it was not looked for."""
        if not self._covers(path, start, end):
            return None
        starts, at, cuts = self._starts(path, start, end), start, []
        while at < end:
            place = bisect_left(starts, at + step)
            at = min(starts[place], end) if place < len(starts) else end
            cuts.append(at)
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
