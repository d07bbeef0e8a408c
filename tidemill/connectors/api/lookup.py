"""What a table promises that a lookup join asks by key."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import pyarrow as pa

from tidemill.catalog.table import CatalogTable
from tidemill.files.fence import OPEN, Fence
from tidemill.types.logical import Field


@dataclass(frozen=True, slots=True, kw_only=True)
class LookupRequest:
    """``fields``: the wanted physical columns of the table; ``keys``: those of them that are asked by.
    ``time_zone``: the session's zone. ``fence``: as of ``SourceRequest``."""

    table: CatalogTable
    options: Mapping[str, str]
    fields: tuple[Field, ...]
    keys: tuple[str, ...]
    time_zone: str
    fence: Fence = OPEN


@dataclass(frozen=True, slots=True)
class LookedUp:
    """``rows``: the request's fields, in any order; ``requests``: how often the outside system was asked."""

    rows: pa.Table
    requests: int


@runtime_checkable
class LookupTable(Protocol):
    """A table that is asked for the rows of some keys, in a Spark Python worker; picklable."""

    def lookup(self, keys: pa.Table) -> LookedUp:
        """All rows whose key columns are among ``keys``: distinct, without NULLs, named as the table's
        columns are. More rows than these do no harm. Entries of maps are in order (``types.entries``).
        Raises ConnectorError when it cannot be asked, after as many tries as the table's options say."""
        ...


@runtime_checkable
class ScannedTable(Protocol):
    """A table that is read whole in a Spark Python worker, which finds rows by key itself; picklable. A table
    with both faces is read whole where ``lookup.cache`` is FULL."""

    def version(self) -> Hashable:
        """Equal as long as the table has not changed; None where that cannot be told without reading it."""
        ...

    def scan(self) -> pa.Table:
        """All rows, with the request's fields; entries of maps are in order (``types.entries``). Raises
        ConnectorError when it cannot be read."""
        ...
