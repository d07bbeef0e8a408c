"""A position in a table's changes, as plain JSON.

``lsn``: all transactions are read whose commit records begin before it in the server's log;
``begin`` is where the first range begins. ``count`` is the number of changes passed so far: row numbers grow
with it. ``beat`` grows when the position moves over changes of other tables alone. ``table`` and ``columns``
(place and type of each) tell the table that was read from one that has taken its name, and are as they were
when the job began.

``seen``: what a snapshot of the table, from which reading began, holds of the transactions before ``until``.
``exported``: only of the position behind the snapshot itself, the name under which its rows can be read
while the job that has planned it lives; the table then has ``blocks`` blocks.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace

import numpy as np

from tidemill.connectors.api import Offset
from tidemill.errors import StateError

Columns = Mapping[str, tuple[int, int]]
"""Place (``attnum``) and type (``atttypid``) of columns, by name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """A snapshot in the form of ``txid_current_snapshot``: ``xmin:xmax:xip,xip``; of transactions whose
    commit records begin before ``until``."""

    snapshot: str
    until: int

    def holds(self, xids: np.ndarray, commits: np.ndarray) -> np.ndarray:
        """Whether the transactions were over when the snapshot was taken; ``xids`` as the log has them, in 32
        bits: those before ``until`` lie near to each other."""
        _, after, running = self.snapshot.split(":")
        ended = (int(after) - 1 - xids) % (1 << 32) < (1 << 31)
        open_ = [int(xid) % (1 << 32) for xid in running.split(",") if xid]
        return (commits < self.until) & ended & ~np.isin(xids, open_)


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

    def moved(self, lsn: int, changes: int) -> Position:
        """After so many more; what the snapshot holds matters no more if it lies before."""
        seen = self.seen if self.seen is not None and self.seen.until > lsn else None
        return replace(self, lsn=lsn, count=self.count + changes, seen=seen)

    def to_json(self) -> Offset:
        made = {**asdict(self), "columns": {name: list(pair) for name, pair in self.columns.items()}}
        return {key: value for key, value in made.items() if value is not None}


def from_json(offset: Offset) -> Position:
    """StateError for an offset of another source."""
    try:
        columns = {name: (int(place), int(oid)) for name, (place, oid) in offset["columns"].items()}
        seen = Seen(**offset["seen"]) if "seen" in offset else None
        return Position(**{**offset, "columns": columns, "seen": seen})
    except (KeyError, TypeError, ValueError, AttributeError):
        raise StateError(f"Not an offset of a postgres-cdc source: {str(offset)[:200]}") from None


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeRange:
    """The transactions whose commit records begin in ``start`` <= lsn < ``end``, of the server's
    ``table``; ``count`` changes lie before."""

    table: int
    start: int
    end: int
    count: int
    columns: Columns
    seen: Seen | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotRange:
    """The rows in ``low`` <= block < ``high`` of the snapshot ``exported``; None: all rows, as they are
    now."""

    number: int = 0
    exported: str | None = None
    low: int | None = None
    high: int | None = None


def shown(lsn: int) -> str:
    """As PostgreSQL writes it: ``0/16B3748``."""
    return f"{lsn >> 32:X}/{lsn & 0xFFFFFFFF:X}"
