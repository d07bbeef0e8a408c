"""A worker's copy of a whole table: loaded at the first lookup, and reloaded on schedule.

Cost: the table in memory, once in each Python worker; a search per lookup key.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass

import pyarrow as pa

from tidemill.changelog.columns import single
from tidemill.connectors.api import LookedUp, ScannedTable
from tidemill.connectors.lookup.keyed_rows import KeyedRows, Keys
from tidemill.connectors.lookup.options import Full


@dataclass(slots=True, kw_only=True)
class WholeTable:
    """``types``: of the ``keys``. ``kept`` None: the table is reloaded whenever it has changed."""

    table: ScannedTable
    keys: tuple[str, ...]
    types: tuple[pa.DataType, ...]
    kept: Full | None
    clock: Callable[[], float]
    _rows: KeyedRows | None = None
    _version: Hashable = None
    _first: float = 0.0
    _due: float = 0.0

    def refresh(self) -> int:
        if self.kept is None:
            return self._refresh_changed()
        if self._rows is not None and self.clock() < self._due:
            return 0
        started = self.clock()
        self._first = self._first or started
        self._read()
        self._due = self.kept.reload.due(self._first, started, self.clock())
        return 1

    def lookup(self, keys: pa.Table) -> LookedUp:
        requests = self.refresh() if self._rows is None else 0
        assert self._rows is not None
        places = self._rows.find(Keys.of([single(keys.column(name)) for name in self.keys]))
        return LookedUp(self._rows.of_places(places), requests)

    def _refresh_changed(self) -> int:
        version = self.table.version()
        if self._rows is not None and version is not None and version == self._version:
            return 0
        self._read()
        self._version = version
        return 1

    def _read(self) -> None:
        self._rows = KeyedRows.of(self.table.scan(), self.keys, self.types)
