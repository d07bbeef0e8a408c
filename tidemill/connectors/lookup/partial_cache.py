"""A worker's cache of recent lookups, by key, limited in age and size.

A key counts as its number of rows, or as one row if it has none. Beyond the limit the least recently used
keys are evicted. Cost: a search per lookup key; if new keys come, one sort of the cache.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tidemill.changelog.columns import Ints, Mask, Vec, single, to_arrow, vector
from tidemill.connectors.api import LookedUp, LookupTable
from tidemill.connectors.lookup.keyed_rows import KeyedRows, Keys
from tidemill.connectors.lookup.options import Partial

_THERE, _WRITTEN, _ACCESSED = "$there", "$written", "$accessed"
"""Columns beside the cached rows: FALSE in the row of a key without rows; times of the first and last
lookup."""
Times = npt.NDArray[np.float64]


@dataclass(slots=True, kw_only=True)
class PartialCache:
    """``keys``: the names of the key's columns."""

    table: LookupTable
    keys: tuple[str, ...]
    kept: Partial
    clock: Callable[[], float]
    _answers: KeyedRows | None = None
    _accessed: Times = field(default_factory=lambda: np.zeros(0))
    """Per key of the answers."""

    def refresh(self) -> int:
        return 0

    def lookup(self, keys: pa.Table) -> LookedUp:
        now = self.clock()
        lookup_keys = Keys.of([single(keys.column(name)) for name in self.keys])
        places = self._valid_places(lookup_keys, now)
        unknown = np.flatnonzero(places < 0)
        parts: list[pa.Table] = []
        if self._answers is not None:
            cached = places[places >= 0]
            self._accessed[cached] = now
            parts.append(_without_markers(self._answers.of_places(cached)))
            if not len(unknown):
                return LookedUp(parts[0], 0)
        answer = self.table.lookup(keys.take(pa.array(unknown)))
        parts.append(answer.rows)
        self._keep(lookup_keys.take(unknown), answer.rows, now)
        return LookedUp(pa.concat_tables(parts), answer.requests)

    def _valid_places(self, lookup_keys: Keys, now: float) -> Ints:
        """For each key the index of its cached lookup; -1 if there is none, or it has expired."""
        if self._answers is None:
            return np.full(len(lookup_keys), -1, np.int64)
        places = self._answers.find(lookup_keys)
        cached = np.flatnonzero(places >= 0)
        good = self._good(now)[places[cached]]
        places[cached[~good]] = -1
        return places

    def _good(self, now: float) -> Mask:
        """Which keys of the cache have not expired."""
        assert self._answers is not None
        good = np.ones(len(self._accessed), np.bool_)
        if self.kept.after_write is not None:
            written = vector(self._answers.rows.column(_WRITTEN)).values[self._answers.starts]
            good &= now - written < self.kept.after_write
        if self.kept.after_access is not None:
            good &= now - self._accessed < self.kept.after_access
        return good

    def _keep(self, looked_up: Keys, rows: pa.Table, now: float) -> None:
        """Adds the lookups of the keys ``looked_up``; ``rows`` has their rows."""
        types = [c.type for c in looked_up.columns]
        new_rows = KeyedRows.of(rows, self.keys, types)
        places = new_rows.find(looked_up)
        new = _marked(new_rows.of_places(places), there=True, now=now)
        if self.kept.misses:
            missed = looked_up.take(np.flatnonzero(places < 0)).table(self.keys)
            new = pa.concat_tables([new, _marked(_padded(missed, rows.schema), there=False, now=now)])
        accessed = np.full(len(new), now)
        if self._answers is not None:
            stay, again = self._good(now), self._answers.find(looked_up)
            stay[again[again >= 0]] = False
            left, kept = self._answers.matches(np.flatnonzero(stay), outer=False)
            new = pa.concat_tables([self._answers.rows.take(pa.array(kept)), new])
            accessed = np.concatenate([self._accessed[np.flatnonzero(stay)[left]], accessed])
        column = to_arrow(Vec(accessed), pa.float64())
        answers = KeyedRows.of(new.append_column(_ACCESSED, column), self.keys, types)
        self._accessed = vector(answers.rows.column(_ACCESSED)).values[answers.starts].copy()
        self._answers = replace(answers, rows=answers.rows.drop_columns([_ACCESSED]))
        self._evict(types)

    def _evict(self, types: list[pa.DataType]) -> None:
        answers, limit = self._answers, self.kept.max_rows
        if answers is None or limit is None or len(answers.rows) <= limit:
            return
        latest = np.argsort(-self._accessed, kind="stable")
        stay = np.sort(latest[np.cumsum(answers.counts[latest]) <= limit])
        self._answers = KeyedRows.of(answers.of_places(stay), self.keys, types)
        self._accessed = self._accessed[stay]


def _marked(rows: pa.Table, *, there: bool, now: float) -> pa.Table:
    return rows.append_column(_THERE, pa.repeat(there, len(rows))).append_column(
        _WRITTEN, pa.repeat(pa.scalar(now, pa.float64()), len(rows))
    )


def _padded(keys: pa.Table, schema: pa.Schema) -> pa.Table:
    """Rows of ``schema`` that have the ``keys``, and NULL in all other columns."""
    have = set(keys.column_names)
    columns = [
        single(keys.column(f.name)).cast(f.type) if f.name in have else pa.nulls(len(keys), f.type)
        for f in schema
    ]
    return pa.table(columns, schema=schema)


def _without_markers(rows: pa.Table) -> pa.Table:
    return rows.filter(rows.column(_THERE)).drop_columns([_THERE, _WRITTEN])
