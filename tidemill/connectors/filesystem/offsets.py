"""A position in a growing list of files, as plain JSON.

``{"root": where, "sealed": n, "chain": hash, "files": [...], "position": p, "base": b}`` lists the files
taken so far, in the order of taking. The first ``sealed`` files are in the job's own log (see ``taken_log``),
and ``chain`` is the hash of this log. ``files`` are the others, so that an offset stays short. All files are
read whole except the last, which is read up to ``position``. ``length`` and ``position`` count bytes (rows in
columnar files). ``base`` is the sum of the weights of the files before the last: base + position + row number
grows over the life of a job.
"""

from __future__ import annotations

from dataclasses import astuple, dataclass, replace

from tidemill.connectors.api import Offset
from tidemill.errors import StateError

# A byte of gzip never holds more than 1032 bytes of text, and a record takes at least one byte.
_GZIP_WEIGHT = 1100


@dataclass(frozen=True, slots=True, kw_only=True)
class TakenFile:
    """A file at the time the source took it. ``modified``: in ns; ``ends``: a hash of the first and last of
    its ``size`` bytes ('' for object stores). If lines are appended, the file is taken again, from ``begin``
    on."""

    path: str
    size: int
    length: int
    modified: int
    ends: str
    compressed: bool = False
    begin: int = 0

    @property
    def weight(self) -> int:
        """No file has more records than this."""
        return (self.length - self.begin) * (_GZIP_WEIGHT if self.compressed else 1) + 1

    def to_json(self) -> list[object]:
        return list(astuple(self))

    @staticmethod
    def from_json(entry: list[object]) -> TakenFile:
        path, size, length, modified, ends, compressed, begin = entry
        return TakenFile(
            path=str(path),
            size=_number(size),
            length=_number(length),
            modified=_number(modified),
            ends=str(ends),
            compressed=bool(compressed),
            begin=_number(begin),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class FilePosition:
    root: str
    sealed: int = 0
    chain: str = ""
    files: tuple[TakenFile, ...] = ()
    position: int = 0
    base: int = 0

    @property
    def taken(self) -> int:
        return self.sealed + len(self.files)

    @property
    def current(self) -> TakenFile | None:
        """The file that is not read to its end yet."""
        return self.files[-1] if self.files and self.position < self.files[-1].length else None

    def moved(self, position: int) -> FilePosition:
        return replace(self, position=position)

    def taking(self, file: TakenFile) -> FilePosition:
        """The position at the start of ``file``, behind all earlier files."""
        base = self.base + (self.files[-1].weight if self.files else 0)
        return replace(self, files=(*self.files, file), position=file.begin, base=base)

    def to_json(self) -> Offset:
        return {
            "root": self.root,
            "sealed": self.sealed,
            "chain": self.chain,
            "files": [f.to_json() for f in self.files],
            "position": self.position,
            "base": self.base,
        }


def _number(value: object) -> int:
    if not isinstance(value, int):
        raise TypeError(value)
    return value


def from_json(offset: Offset | None, root: str) -> FilePosition:
    """The position of ``offset``; None is the beginning. StateError for another source's or path's offset."""
    if not offset:
        return FilePosition(root=root)
    try:
        position = FilePosition(
            root=str(offset["root"]),
            sealed=_number(offset["sealed"]),
            chain=str(offset["chain"]),
            files=tuple(map(TakenFile.from_json, offset["files"])),
            position=_number(offset["position"]),
            base=_number(offset["base"]),
        )
    except (KeyError, TypeError, ValueError):
        raise StateError(f"Not an offset of a filesystem source: {str(offset)[:200]}") from None
    if position.root != root:
        raise StateError(
            f"The checkpoint belongs to a table with the path '{position.root}'; the path is now '{root}'.",
            hint="Start the changed table with a checkpoint directory of its own.",
        )
    return position


@dataclass(frozen=True, slots=True, kw_only=True)
class FileRange:
    """Rows of one file between ``start`` and ``end``; ``base`` as in FilePosition."""

    file: TakenFile
    start: int
    end: int
    base: int


def ranges(start: FilePosition, end: FilePosition) -> list[FileRange]:
    """The parts of files between two positions, in order; ``end`` continues ``start``."""
    first = max(start.taken - 1, 0)
    last_file = start.files[-1:]
    same_file = end.files[first - end.sealed :][: len(last_file)] if first >= end.sealed else ()
    if first > end.taken or [(f.path, f.begin) for f in last_file] != [(f.path, f.begin) for f in same_file]:
        raise StateError("The offsets belong to different jobs: their lists of files differ.")
    base = start.base if start.taken else 0
    parts = []
    for number, file in enumerate(end.files[first - end.sealed :]):
        begin = start.position if last_file and number == 0 else file.begin
        stop = end.position if first + number == end.taken - 1 else file.length
        if stop > begin:
            parts.append(FileRange(file=file, start=begin, end=stop, base=base))
        base += file.weight
    return parts
