"""A lookup join's access to its table, from the plan to the caches in a worker.

``Asking`` has plain values and is sent with every task. The table that it opens stays in the worker's
process, so that cached rows outlast the epoch. A process keeps the ``_HELD`` most recently used tables.
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
    """A lookup table that a worker has opened. The methods return the number of requests they made."""

    def refresh(self) -> int:
        """Called before each task's rows, to reload outdated caches."""
        ...

    def lookup(self, keys: pa.Table) -> LookedUp: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Asking:
    """``keys``: key columns of the table, with their ``types``."""

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
    """Repeats lookups of keys that have no rows yet."""

    table: OpenedTable
    asking: Asking

    def refresh(self) -> int:
        return self.table.refresh()

    def lookup(self, keys: pa.Table) -> LookedUp:
        asking = self.asking
        assert asking.retry is not None
        answer = self.table.lookup(keys)
        rows, requests = answer.rows, answer.requests
        for _ in range(asking.retry.attempts):
            wanted_keys = Keys.of([single(keys.column(name)) for name in asking.keys])
            missing = KeyedRows.of(answer.rows, asking.keys, asking.types).find(wanted_keys) < 0
            keys = keys.filter(pa.array(missing))
            if not len(keys):
                break
            asking.pause(asking.retry.delay)
            requests += self.table.refresh()
            answer = self.table.lookup(keys)
            rows, requests = pa.concat_tables([rows, answer.rows]), requests + answer.requests
        return LookedUp(rows, requests)


@dataclass(frozen=True, slots=True)
class _Held:
    """The opened tables of a process, most recently used last."""

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
    """This process's opened table for ``scope``, which is one join in one run of its job."""
    return _PROCESS.of(scope, asking)
