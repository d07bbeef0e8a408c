"""A run: an immutable Arrow IPC file of rows sorted by hash, and the piece of it that still counts.

``Run`` is what a manifest lists: a file plus the rows ``[start, stop)`` of it. Merging a prefix of a
run into a deeper one only raises ``start``; the file stays as it is. Reading is by memory map and
lazy: a run that no lookup touches is never opened.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.ipc as ipc

from tidemill.changelog.columns import Hashes, single, vector
from tidemill.errors import StateError
from tidemill.state.storage import Storage

HASH = "$hash"
WEIGHT = "$weight"
DELETED = "$deleted"
TIME = "$time"


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """``lo``/``hi``: first and last hash of the live rows. Epochs: which ones wrote these rows."""

    path: str
    start: int
    stop: int
    bytes: int
    lo: int
    hi: int
    min_epoch: int
    max_epoch: int
    schema: str

    @property
    def rows(self) -> int:
        return self.stop - self.start

    def to_json(self) -> dict[str, Any]:
        return {
            "path": self.path,
            "start": self.start,
            "rows": self.rows,
            "bytes": self.bytes,
            "lo": self.lo,
            "hi": self.hi,
            "min_epoch": self.min_epoch,
            "max_epoch": self.max_epoch,
            "schema": self.schema,
        }

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Run:
        known = dict(data)
        rows = known.pop("rows")
        return cls(stop=known["start"] + rows, **known)


@dataclass(slots=True)
class RunReader:
    """The rows of a run, opened on first use; or rows still in memory (``run`` None).

    ``epochs``: the first and the last epoch whose rows are among them.
    """

    storage: Storage
    run: Run | None
    epochs: tuple[int, int]
    _table: pa.Table | None = None
    _hashes: Hashes | None = field(default=None, repr=False)

    @classmethod
    def of_run(cls, storage: Storage, run: Run) -> RunReader:
        return cls(storage, run, (run.min_epoch, run.max_epoch))

    @classmethod
    def of_table(cls, storage: Storage, table: pa.Table, epochs: tuple[int, int]) -> RunReader:
        return cls(storage, None, epochs, table)

    @property
    def rows(self) -> int:
        return self.run.rows if self.run is not None else len(self.table)

    @property
    def bounds(self) -> tuple[int, int]:
        """First and last hash."""
        if self.run is not None:
            return self.run.lo, self.run.hi
        return int(self.hashes[0]), int(self.hashes[-1])

    @property
    def table(self) -> pa.Table:
        """The live rows; every column is one chunk over the mapped file."""
        if self._table is None:
            assert self.run is not None
            self._table = _read(self.storage, self.run)
        return self._table

    @property
    def hashes(self) -> Hashes:
        if self._hashes is None:
            self._hashes = vector(self.table.column(HASH)).values
        return self._hashes

    def column(self, name: str) -> pa.Array | None:
        """The column as one array; None where this run predates it."""
        at = self.table.schema.get_field_index(name)
        return None if at < 0 else single(self.table.column(at))

    def cut(self, start: int, stop: int) -> RunReader:
        """The live rows ``[start, stop)`` of these, counted from the first live row."""
        if self.run is None:
            return RunReader(self.storage, None, self.epochs, self.table.slice(start, stop - start))
        piece = self.hashes[start:stop]
        run = replace(
            self.run,
            start=self.run.start + start,
            stop=self.run.start + stop,
            lo=int(piece[0]),
            hi=int(piece[-1]),
        )
        return RunReader(self.storage, run, self.epochs, self.table.slice(start, stop - start), piece)


def write_run(storage: Storage, path: str, table: pa.Table, epochs: tuple[int, int], schema: str) -> Run:
    """Publishes ``table`` (sorted by ``$hash``, not empty) as a run file."""
    table = table.combine_chunks()

    def write(sink: Any) -> None:
        with ipc.new_file(sink, table.schema) as writer:
            writer.write_table(table)

    size = storage.publish(path, write)
    hashes = vector(table.column(HASH)).values
    return Run(
        path=path,
        start=0,
        stop=len(table),
        bytes=size,
        lo=int(hashes[0]),
        hi=int(hashes[-1]),
        min_epoch=epochs[0],
        max_epoch=epochs[1],
        schema=schema,
    )


def _read(storage: Storage, run: Run) -> pa.Table:
    source = storage.open_input(run.path)
    try:
        table = ipc.open_file(source).read_all()
    except pa.ArrowInvalid as e:
        raise StateError(f"State file '{storage.path(run.path)}' is damaged: {e}") from e
    if len(table) < run.stop:
        raise StateError(
            f"State file '{storage.path(run.path)}' holds {len(table)} rows, its manifest says {run.stop}"
        )
    return table.slice(run.start, run.rows)


def clip(hashes: Hashes, lo: int, hi: int) -> slice:
    """The part of ascending ``hashes`` within [lo, hi]."""
    first = int(np.searchsorted(hashes, np.uint64(lo), side="left"))
    last = int(np.searchsorted(hashes, np.uint64(hi), side="right"))
    return slice(first, last)
