"""What was asked lately: answers by key, kept by a worker until they are too old or too many.

Each key counts with its rows, or as one row where it has none. Where there are too many, those go that were
asked for longest ago. Cost: a search per key asked; where something new came, one sort of what is kept.
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
"""Beside an answer's rows: FALSE in the row of a key without any; when it was asked for, first and last."""
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
        asked = Keys.of([single(keys.column(name)) for name in self.keys])
        places = self._known(asked, now)
        unknown = np.flatnonzero(places < 0)
        parts: list[pa.Table] = []
        if self._answers is not None:
            known = places[places >= 0]
            self._accessed[known] = now
            parts.append(_shown(self._answers.of_places(known)))
            if not len(unknown):
                return LookedUp(parts[0], 0)
        found = self.table.lookup(keys.take(pa.array(unknown)))
        parts.append(found.rows)
        self._keep(asked.take(unknown), found.rows, now)
        return LookedUp(pa.concat_tables(parts), found.requests)

    def _known(self, asked: Keys, now: float) -> Ints:
        """Per key the place of its answer; -1 where there is none that is still good."""
        if self._answers is None:
            return np.full(len(asked), -1, np.int64)
        places = self._answers.find(asked)
        known = np.flatnonzero(places >= 0)
        good = self._good(now)[places[known]]
        places[known[~good]] = -1
        return places

    def _good(self, now: float) -> Mask:
        """Per key of the answers."""
        assert self._answers is not None
        good = np.ones(len(self._accessed), np.bool_)
        if self.kept.after_write is not None:
            written = vector(self._answers.rows.column(_WRITTEN)).values[self._answers.starts]
            good &= now - written < self.kept.after_write
        if self.kept.after_access is not None:
            good &= now - self._accessed < self.kept.after_access
        return good

    def _keep(self, asked: Keys, rows: pa.Table, now: float) -> None:
        """Adds the answers to ``asked``, whose rows are among ``rows``."""
        types = [c.type for c in asked.columns]
        found = KeyedRows.of(rows, self.keys, types)
        places = found.find(asked)
        new = _marked(found.of_places(places), there=True, now=now)
        if self.kept.misses:
            missed = asked.take(np.flatnonzero(places < 0)).table(self.keys)
            new = pa.concat_tables([new, _marked(_padded(missed, rows.schema), there=False, now=now)])
        accessed = np.full(len(new), now)
        if self._answers is not None:
            stay, again = self._good(now), self._answers.find(asked)
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


def _shown(rows: pa.Table) -> pa.Table:
    return rows.filter(rows.column(_THERE)).drop_columns([_THERE, _WRITTEN])
