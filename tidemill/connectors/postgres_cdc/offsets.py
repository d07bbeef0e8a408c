"""A position in a table's changes, as plain JSON.

``lsn``: the job has read all transactions whose commit records begin before this log position. ``begin`` is
the start of the first range. ``count`` is the number of changes read so far, from which row numbers are made.
``beat`` grows if the position moves but only over changes of other tables. ``table`` (an oid) and ``columns``
(number and type of each) are those at the start of the job: another table of the same name differs in them.

``seen``: which transactions the initial snapshot contains. ``exported``: the name of the exported snapshot,
set only in the position behind the snapshot. The snapshot is readable until the job ends; the table then had
``blocks`` blocks.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace

import numpy as np

from tidemill.connectors.api import Offset
from tidemill.errors import StateError

Columns = Mapping[str, tuple[int, int]]
"""Number (``attnum``) and type (``atttypid``) of columns, by name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """A snapshot in the form of ``txid_current_snapshot``: ``xmin:xmax:xip,xip``. Transactions whose commit
    records begin at ``until`` or later are not in it."""

    snapshot: str
    until: int

    def holds(self, xids: np.ndarray, commits: np.ndarray) -> np.ndarray:
        """Whether the snapshot contains each transaction. ``xids`` have 32 bits, as in the log; the ids of
        transactions before ``until`` lie near each other, so wrap-around does no harm."""
        _, after, running_xids = self.snapshot.split(":")
        ended = (int(after) - 1 - xids) % (1 << 32) < (1 << 31)
        still_running = [int(xid) % (1 << 32) for xid in running_xids.split(",") if xid]
        return (commits < self.until) & ended & ~np.isin(xids, still_running)


@dataclass(frozen=True, slots=True, kw_only=True)
class Position:
    lsn: int
    begin: int
    table: int
    columns: Columns
    count: int = 0
    beat: int = 0
    seen: Seen | None = None
    exported: str | None = None
    blocks: int = 0

    @property
    def is_snapshot(self) -> bool:
        return self.exported is not None

    def moved(self, lsn: int, changes: int) -> Position:
        """The position at ``lsn``, ``changes`` changes later. ``seen`` is dropped once ``lsn`` is past it."""
        seen = self.seen if self.seen is not None and self.seen.until > lsn else None
        return replace(self, lsn=lsn, count=self.count + changes, seen=seen)

    def to_json(self) -> Offset:
        document = {**asdict(self), "columns": {name: list(pair) for name, pair in self.columns.items()}}
        return {key: value for key, value in document.items() if value is not None}


def from_json(offset: Offset) -> Position:
    """StateError for an offset of another source."""
    try:
        columns = {name: (int(number), int(oid)) for name, (number, oid) in offset["columns"].items()}
        seen = Seen(**offset["seen"]) if "seen" in offset else None
        return Position(**{**offset, "columns": columns, "seen": seen})
    except (KeyError, TypeError, ValueError, AttributeError):
        raise StateError(f"Not an offset of a postgres-cdc source: {str(offset)[:200]}") from None


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeRange:
    """The transactions whose commit records begin in ``start`` <= lsn < ``end``, for the table with the oid
    ``table``. ``count`` is the number of changes before the range."""

    table: int
    start: int
    end: int
    count: int
    columns: Columns
    seen: Seen | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotRange:
    """The rows in ``low`` <= block < ``high`` of the snapshot ``exported``. If ``exported`` is None, the rows
    are read as they are now; if both bounds are None, all rows."""

    number: int = 0
    exported: str | None = None
    low: int | None = None
    high: int | None = None


def lsn_text(lsn: int) -> str:
    """A log position as PostgreSQL writes it: 23803720 is ``0/16B3748``."""
    return f"{lsn >> 32:X}/{lsn & 0xFFFFFFFF:X}"
