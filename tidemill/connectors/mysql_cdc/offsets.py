"""A position in a table's changes, as plain JSON.

``file`` and ``pos``: the job has read all transactions that end there or before. ``begin_file`` and
``begin_pos``: where the range that ends here is read from; no change of the table lies between the range
before and that place. ``count`` is the number of rows of changes read so far. ``beat`` grows if the position
moves over changes of other tables alone. ``server``: the server's id. ``columns``: name and type of all
columns of the table when the job began. ``snapshot``: set only in the position behind a snapshot, which this
name identifies.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass

from tidemill.connectors.api import Offset
from tidemill.errors import StateError

Place = tuple[str, int]
"""Name of a binlog file and a position in it, in bytes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Position:
    file: str
    pos: int
    begin_file: str
    begin_pos: int
    server: int
    columns: tuple[tuple[str, str], ...]
    count: int = 0
    beat: int = 0
    snapshot: str | None = None

    @property
    def is_snapshot(self) -> bool:
        return self.snapshot is not None

    @property
    def place(self) -> Place:
        return self.file, self.pos

    @property
    def begin(self) -> Place:
        return self.begin_file, self.begin_pos

    def to_json(self) -> Offset:
        document = {**asdict(self), "columns": [list(pair) for pair in self.columns]}
        return {key: value for key, value in document.items() if value is not None}


def from_json(offset: Offset) -> Position:
    """StateError for an offset of another source."""
    try:
        columns = tuple((str(name), str(kind)) for name, kind in offset["columns"])
        return Position(**{**offset, "columns": columns})
    except (KeyError, TypeError, ValueError):
        raise StateError(f"Not an offset of a mysql-cdc source: {str(offset)[:200]}") from None


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeRange:
    """The transactions that begin at ``start`` or later and end at ``end`` or before. ``count`` is the number
    of rows of changes before the range."""

    start: Place
    end: Place
    count: int
    columns: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotPart:
    """Rows of a snapshot, as an Arrow stream, the first with the sequence ``number``. None: the task reads
    the table as it is."""

    number: int = 0
    stream: bytes | None = None


def order(place: Place) -> tuple[int, int]:
    """Places in the order of the log: the number of the file is behind its last dot."""
    return int(place[0].rpartition(".")[2]), place[1]


def shown(place: Place) -> str:
    return f"{place[0]}:{place[1]}"
