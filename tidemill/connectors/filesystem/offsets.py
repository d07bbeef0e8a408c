"""A position in a growing list of files, as plain JSON.

``{"files": [[path, size, length, compressed], ...], "position": p, "base": b}``: the files taken so far
in the order of taking; all are read whole but the last, which is read up to ``position``. ``length`` and
``position`` count bytes (rows in columnar files), ``base`` is the sum of the weights of the files
before the last, so that base + position + row number grows over the life of a job.
"""

from __future__ import annotations

from dataclasses import dataclass

from tidemill.connectors.api import Offset
from tidemill.errors import StateError

# A byte of gzip never holds more than 1032 bytes of text, and a record takes at least one byte.
_GZIP_WEIGHT = 1100


@dataclass(frozen=True, slots=True)
class TakenFile:
    path: str
    size: int
    length: int
    compressed: bool = False

    @property
    def weight(self) -> int:
        """No file has more records than this."""
        return self.length * (_GZIP_WEIGHT if self.compressed else 1) + 1


@dataclass(frozen=True, slots=True)
class FilePosition:
    files: tuple[TakenFile, ...] = ()
    position: int = 0
    base: int = 0

    @property
    def current(self) -> TakenFile | None:
        """The file that is not read to its end yet."""
        return self.files[-1] if self.files and self.position < self.files[-1].length else None

    def moved(self, position: int) -> FilePosition:
        return FilePosition(self.files, position, self.base)

    def taking(self, file: TakenFile) -> FilePosition:
        """At the start of ``file``, everything before it being read."""
        base = self.base + (self.files[-1].weight if self.files else 0)
        return FilePosition((*self.files, file), 0, base)

    def to_json(self) -> Offset:
        return {
            "files": [[f.path, f.size, f.length, f.compressed] for f in self.files],
            "position": self.position,
            "base": self.base,
        }


def from_json(offset: Offset | None) -> FilePosition:
    """StateError for an offset of another source."""
    if not offset:
        return FilePosition()
    try:
        files = tuple(TakenFile(*entry) for entry in offset["files"])
        return FilePosition(files, offset["position"], offset["base"])
    except (KeyError, TypeError):
        raise StateError(f"Not an offset of a filesystem source: {str(offset)[:200]}") from None


@dataclass(frozen=True, slots=True, kw_only=True)
class FileRange:
    """Rows of one file between ``start`` and ``end``; ``base`` as in FilePosition."""

    file: TakenFile
    start: int
    end: int
    base: int


def ranges(start: FilePosition, end: FilePosition) -> list[FileRange]:
    """The parts of files between two positions, in order; ``end`` continues ``start``."""
    if start.files != end.files[: len(start.files)]:
        raise StateError("The offsets are not of one job: their lists of files differ.")
    first = max(len(start.files) - 1, 0)
    base = start.base if start.files else 0
    found = []
    for i in range(first, len(end.files)):
        file = end.files[i]
        begin = start.position if start.files and i == first else 0
        stop = end.position if i == len(end.files) - 1 else file.length
        if stop > begin:
            found.append(FileRange(file=file, start=begin, end=stop, base=base))
        base += file.weight
    return found
