"""A run: an immutable Arrow IPC file of sorted rows, and the part of it that still counts.

A manifest lists each run as a ``Run``: a file, and its live rows ``[start, stop)``. A merge that moves the
beginning of a run into a deeper run only raises ``start``; so does taking due rows. The file stays as it is.
Runs are read by memory map, on demand: a run that no lookup touches is never opened.

Rows are ordered by their *code*, an integer. The code is the hash; in a table ordered by time it is the
time at which a row is due, then the hash. Every function that cuts or merges runs uses codes only.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.ipc as ipc

from tidemill.changelog.columns import Hashes, Ints, Mask, Vec, single, vector
from tidemill.state.due_times import DueTimes, due_times_of
from tidemill.state.packing import packed, taken, taken_vec, unpacked
from tidemill.state.storage import Published, StateFiles

HASH = "$hash"
DUE = "$due"
WEIGHT = "$weight"
DELETED = "$deleted"
TIME = "$time"

_PLAIN = (HASH, DELETED, TIME)
"""Columns that are never packed: they are read whole."""
_HASHES = 1 << 64
_EPOCH_START = 1 << 63


def due_code(due: int) -> int:
    """The lowest code of rows that are due at ``due``."""
    return (due + _EPOCH_START) * _HASHES


def due_range(lo: int, hi: int) -> tuple[int, int]:
    """The first and the last due time of rows with codes from ``lo`` to ``hi``."""
    return lo // _HASHES - _EPOCH_START, hi // _HASHES - _EPOCH_START


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """``lo`` and ``hi``: the first and the last code of the live rows. Epochs: the epochs that wrote these
    rows.

    ``size``, ``checksum`` and ``file_rows`` describe the file. With a TTL, ``written`` has the median
    and the last of the times at which the rows of the file were written. ``within``: a rescaling has cut
    the file, and only rows with a hash in this range count. A later rescaling may give several parts of a
    file to one partition.
    """

    path: str
    start: int
    stop: int
    size: int
    checksum: int
    file_rows: int
    lo: int
    hi: int
    min_epoch: int
    max_epoch: int
    written: tuple[int, int] | None = None
    within: tuple[int, int] | None = None

    @property
    def rows(self) -> int:
        return self.stop - self.start

    def to_json(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__slots__}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Run:
        """TypeError or ValueError if ``data`` is not a run."""
        pairs = {name: tuple(data[name]) for name in ("written", "within") if data.get(name) is not None}
        return cls(**{**data, **pairs})


@dataclass(slots=True)
class RunReader:
    """The rows of a run, which is opened on first use, or rows still in memory (``run`` is None).

    ``epochs``: the first and the last epoch of its rows.
    """

    storage: StateFiles
    run: Run | None
    epochs: tuple[int, int]
    _table: pa.Table | None = None
    _hashes: Hashes | None = field(default=None, repr=False)

    @classmethod
    def of_run(cls, storage: StateFiles, run: Run) -> RunReader:
        return cls(storage, run, (run.min_epoch, run.max_epoch))

    @classmethod
    def of_table(cls, storage: StateFiles, table: pa.Table, epochs: tuple[int, int]) -> RunReader:
        return cls(storage, None, epochs, table)

    @property
    def rows(self) -> int:
        return self.run.rows if self.run is not None else len(self.table)

    @property
    def bytes_per_row(self) -> float:
        if self.run is not None:
            return self.run.size / self.run.file_rows
        return float(self.table.nbytes) / len(self.table)

    @property
    def bounds(self) -> tuple[int, int]:
        """The first and the last code."""
        if self.run is not None:
            return self.run.lo, self.run.hi
        return self.code(0), self.code(len(self.hashes) - 1)

    @property
    def table(self) -> pa.Table:
        """The live rows, perhaps packed; every column is one chunk over the mapped file."""
        if self._table is None:
            assert self.run is not None
            self._table = _read(self.storage, self.run)
        return self._table

    @property
    def own_rows(self) -> pa.Table:
        """The live rows, without those of a neighbour."""
        if self.run is None or self.run.within is None:
            return self.table
        mine = self.are_own(self.hashes)
        return self.table if mine.all() else unpacked(self.table).filter(pa.array(mine))

    def are_own(self, hashes: Hashes) -> Mask:
        """Which of these hashes are not in the range of a neighbour (see ``Run.within``)."""
        if self.run is None or self.run.within is None:
            return np.ones(len(hashes), np.bool_)
        lo, hi = (np.uint64(bound) for bound in self.run.within)
        mine: Mask = (hashes >= lo) & (hashes <= hi)
        return mine

    @property
    def hashes(self) -> Hashes:
        if self._hashes is None:
            self._hashes = vector(self.table.column(HASH)).values
        return self._hashes

    @property
    def dues(self) -> DueTimes | None:
        """The due times of rows; None in a table ordered by hash."""
        column = self.column(DUE)
        return None if column is None else due_times_of(column)

    def column(self, name: str) -> pa.Array | None:
        """The column as one array, perhaps packed; None if the column is newer than this run."""
        at = self.table.schema.get_field_index(name)
        return None if at < 0 else single(self.table.column(at))

    def taken(self, name: str, rows: Ints) -> pa.Array | None:
        """``rows`` of a column, unpacked; None if the column is newer than this run."""
        column = self.column(name)
        return None if column is None else taken(self.table.schema.field(name), column, rows)

    def taken_vec(self, name: str, rows: Ints) -> Vec | None:
        """``taken`` of a column of fixed width."""
        column = self.column(name)
        return None if column is None else taken_vec(self.table.schema.field(name), column, rows)

    def code(self, row: int) -> int:
        code, dues = int(self.hashes[row]), self.dues
        return code if dues is None else due_code(int(dues.take(np.array([row]))[0])) + code

    def at(self, code: int) -> int:
        """The first row whose code is at least ``code``."""
        dues, start, stop = self.dues, 0, len(self.hashes)
        if dues is not None:
            due, code = due_range(code, code)[0], code % _HASHES
            if due >= _EPOCH_START:
                return stop
            start, stop = (int(bound[0]) for bound in dues.ranges(np.array([due])))
        if code >= _HASHES:
            return stop
        return start + int(np.searchsorted(self.hashes[start:stop], np.uint64(code)))

    def cut(self, start: int, stop: int) -> RunReader:
        """The live rows ``[start, stop)``, at least one, counted from the first live row."""
        table = self.table.slice(start, stop - start)
        if self.run is None:
            return RunReader(self.storage, None, self.epochs, table)
        run = replace(
            self.run,
            start=self.run.start + start,
            stop=self.run.start + stop,
            lo=self.code(start),
            hi=self.code(stop - 1),
        )
        return RunReader(self.storage, run, self.epochs, table, self.hashes[start:stop])


def write_run(
    storage: StateFiles,
    path: str,
    table: pa.Table,
    epochs: tuple[int, int],
    *,
    packed_gain: float | None,
    payload: Collection[str],
) -> Run:
    """Publishes ``table`` (sorted by code, not empty) as a run file. ``packed_gain`` and ``payload``: as in
    ``packed``; no gain: plain."""
    table = table.combine_chunks()
    stored = table
    if packed_gain is not None:
        stored = packed(table, _PLAIN, packed_gain, payload=payload, order=DUE)

    def write(sink: Any) -> None:
        with ipc.new_file(sink, stored.schema) as writer:
            writer.write_table(stored)

    published = storage.publish(path, write)
    lo, hi = RunReader.of_table(storage, table, epochs).bounds
    return Run(
        path=path,
        start=0,
        stop=len(table),
        size=published.size,
        checksum=published.checksum,
        file_rows=len(table),
        lo=lo,
        hi=hi,
        min_epoch=epochs[0],
        max_epoch=epochs[1],
        written=_written(table),
    )


def _written(table: pa.Table) -> tuple[int, int] | None:
    if TIME not in table.schema.names:
        return None
    times = vector(table.column(TIME)).values
    middle = (len(times) - 1) // 2
    return int(np.partition(times, middle)[middle]), int(times.max())


def _read(storage: StateFiles, run: Run) -> pa.Table:
    buffer = storage.read(run.path, Published(run.size, run.checksum))
    try:
        table = ipc.open_file(buffer).read_all()
    except (pa.ArrowInvalid, OSError) as e:
        raise storage.damaged(run.path, str(e)) from e
    if len(table) != run.file_rows or not 0 <= run.start <= run.stop <= run.file_rows:
        raise storage.damaged(
            run.path,
            f"it has {len(table)} rows, its manifest says [{run.start}, {run.stop}) of {run.file_rows}",
        )
    return table.slice(run.start, run.rows)
