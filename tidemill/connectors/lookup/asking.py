"""How one join asks its table, from a plan to what a worker holds.

``Asking`` is plain and goes with every task; what it opens lives on in the worker's process, so that answers
which may be kept outlast the epoch. A process holds a few of them: those that were used last.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa

from tidemill.changelog.columns import single
from tidemill.connectors.api import LookedUp, LookupTable, ScannedTable
from tidemill.connectors.lookup.keyed_rows import KeyedRows, Keys
from tidemill.connectors.lookup.options import Caching, Full, Partial, Retry
from tidemill.connectors.lookup.partial_cache import PartialCache
from tidemill.connectors.lookup.whole_table import WholeTable
from tidemill.errors import InternalError

_HELD = 16


class OpenedTable(Protocol):
    """What a worker asks. Methods give or count the requests that they made."""

    def refresh(self) -> int:
        """Called before the rows of an epoch's task."""
        ...

    def lookup(self, keys: pa.Table) -> LookedUp: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Asking:
    """``keys``: columns of the table, of ``types``."""

    table: LookupTable | ScannedTable
    keys: tuple[str, ...]
    types: tuple[pa.DataType, ...]
    caching: Caching = None
    retry: Retry | None = None
    clock: Callable[[], float] = time.time
    pause: Callable[[float], None] = time.sleep

    def opened(self) -> OpenedTable:
        table = self.table
        if isinstance(self.caching, Full) or not isinstance(table, LookupTable):
            if not isinstance(table, ScannedTable) or isinstance(self.caching, Partial):
                raise InternalError(f"{type(table).__name__} is not asked with {self.caching}")
            whole = WholeTable(
                table=table, keys=self.keys, types=self.types, kept=self.caching, clock=self.clock
            )
            return _Patient(whole, self) if self.retry is not None else whole
        direct: OpenedTable = _Direct(table)
        if self.retry is not None:
            direct = _Patient(direct, self)
        if self.caching is None:
            return direct
        return PartialCache(table=direct, keys=self.keys, kept=self.caching, clock=self.clock)


@dataclass(frozen=True, slots=True)
class _Direct:
    table: LookupTable

    def refresh(self) -> int:
        return 0

    def lookup(self, keys: pa.Table) -> LookedUp:
        return self.table.lookup(keys)


@dataclass(frozen=True, slots=True)
class _Patient:
    """Waits for rows that are not there yet."""

    table: OpenedTable
    asking: Asking

    def refresh(self) -> int:
        return self.table.refresh()

    def lookup(self, keys: pa.Table) -> LookedUp:
        asking = self.asking
        assert asking.retry is not None
        found = self.table.lookup(keys)
        rows, requests = found.rows, found.requests
        for _ in range(asking.retry.attempts):
            asked = Keys.of([single(keys.column(name)) for name in asking.keys])
            missing = KeyedRows.of(found.rows, asking.keys, asking.types).find(asked) < 0
            keys = keys.filter(pa.array(missing))
            if not len(keys):
                break
            asking.pause(asking.retry.delay)
            requests += self.table.refresh()
            found = self.table.lookup(keys)
            rows, requests = pa.concat_tables([rows, found.rows]), requests + found.requests
        return LookedUp(rows, requests)


@dataclass(frozen=True, slots=True)
class _Held:
    """What a process holds, the one used last at the end."""

    tables: OrderedDict[str, OpenedTable]

    def of(self, scope: str, asking: Asking) -> OpenedTable:
        if scope not in self.tables:
            self.tables[scope] = asking.opened()
        self.tables.move_to_end(scope)
        while len(self.tables) > _HELD:
            self.tables.popitem(last=False)
        return self.tables[scope]


_PROCESS = _Held(OrderedDict())


def held(scope: str, asking: Asking) -> OpenedTable:
    """What this process holds for ``scope``: a join in one run of its job."""
    return _PROCESS.of(scope, asking)
