"""NOT IN over one key: counts of all rows of the other side, which every partition needs.

``x NOT IN (...)`` is not true if a row is NULL, or if x is NULL and there is any row. So every partition
keeps the number of all rows and of all NULLs. The writers of the exchange send the changes of these numbers
to every partition (``RowCounts``). A row's answer changes with its key's rows, as in every anti join. Only if
the first row or NULL comes, or the last one goes, all rows are evaluated again.

The numbers are stored once per key group of the partition, so they move with the groups if the parallelism
changes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from tidemill.changelog.batch import weights_of
from tidemill.changelog.columns import Ints, Mask, Vec, single, to_arrow, validity, vector
from tidemill.changelog.hashing import hash_columns
from tidemill.operators.join.pairs import Matches
from tidemill.operators.join.sides import UNMOVED, Change, Side
from tidemill.state.layout import Layout
from tidemill.state.run import WEIGHT
from tidemill.state.slices import first_hashes
from tidemill.state.store import StateStore
from tidemill.state.table import StateTable

MISSING = "missing"
_FIELD = pa.field(MISSING, pa.bool_())
LAYOUT = Layout(name="rows everywhere", keys=(), values=(_FIELD,), additive=True)
COUNTS = pa.schema([_FIELD, pa.field(WEIGHT, pa.int64())])
"""The rows that say how many more there are that are NULL, or are not."""


@dataclass(frozen=True, slots=True)
class RowCounts:
    """The ``Summary`` of the other side's rows."""

    key: str

    def of(self, table: pa.Table) -> pa.Table:
        weights = weights_of(table)
        weights = np.ones(len(table), np.int64) if weights is None else weights
        return _counts(_count(_missing(single(table.column(self.key))), weights))


@dataclass(frozen=True, slots=True)
class RightRows:
    """The number of rows with a value (first) and of NULLs (second), before and after."""

    before: Ints
    after: Ints

    @classmethod
    def of(cls, store: StateStore, counts: pa.Table) -> RightRows:
        """Counts the epoch's rows in; ``counts`` as in COUNTS."""
        table = store.table(LAYOUT)
        hashes = first_hashes(store.manifest.groups)
        _, rows = table.pieces(hashes[:1], [])
        before, net = _sums(rows), _sums(counts)
        added = _counts(net)
        values = single(added.column(MISSING))
        count_numbers = np.tile(np.arange(len(added)), len(hashes))
        values, weights = values.take(pa.array(count_numbers)), net[np.flatnonzero(net)][count_numbers]
        columns = {MISSING: values, WEIGHT: to_arrow(Vec(weights), pa.int64())}
        table.put(LAYOUT.codes(np.repeat(hashes, len(added)), [values]), columns)
        return cls(before, before + net)

    @property
    def concern_all(self) -> bool:
        """Whether the answer of rows may change although their key did not."""
        return any(bool(self._any(i)[0]) != bool(self._any(i)[1]) for i in (0, 1))

    def _any(self, missing: int) -> tuple[bool, bool]:
        """Whether there is any NULL (``missing`` 1) or any row at all (0), before and after."""
        before, after = ((c[1] if missing else c.sum()) > 0 for c in (self.before, self.after))
        return bool(before), bool(after)

    def added_to(self, matches: Matches, own: Side, key: str) -> Matches:
        """``matches`` with the matches by NULLs added."""
        missing = _missing(own.take(key, np.arange(len(own.owners))))
        before, after = (
            np.where(missing, rows, nulls) for rows, nulls in zip(self._any(0), self._any(1), strict=True)
        )
        return Matches(matches.before + before, matches.after + after, matches.renewed)


def with_all(change: Change, table: StateTable) -> Change:
    """``change`` and all stored rows, as rows that do not change."""
    layout, stored = table.layout, table.everything()
    size = len(stored)
    columns = {
        name: single(pa.chunked_array([column, single(stored.column(name))]))
        for name, column in change.columns.items()
    }
    hashes = hash_columns([single(stored.column(f.name)) for f in layout.keys], size)
    weights = np.ones(len(change), np.int64) if change.weights is None else change.weights
    return Change(
        columns,
        np.concatenate([change.hashes, hashes]),
        np.concatenate([weights, np.zeros(size, np.int64)]),
        np.concatenate([change.kinds, np.full(size, UNMOVED, np.int8)]),
    )


def _missing(key: pa.Array) -> Mask:
    valid = validity(key)
    return np.zeros(len(key), np.bool_) if valid is None else ~valid


def _count(missing: Mask, weights: Ints) -> Ints:
    nulls = int(weights[missing].sum())
    return np.array([int(weights.sum()) - nulls, nulls], np.int64)


def _sums(rows: pa.Table) -> Ints:
    """The two numbers that rows of COUNTS add up to."""
    return _count(vector(single(rows.column(MISSING))).values, vector(single(rows.column(WEIGHT))).values)


def _counts(numbers: Ints) -> pa.Table:
    """Rows of COUNTS for those of the two numbers that are not 0."""
    moved = np.flatnonzero(numbers)
    columns = [to_arrow(Vec(moved.astype(np.bool_)), pa.bool_()), to_arrow(Vec(numbers[moved]), pa.int64())]
    return pa.Table.from_arrays(columns, schema=COUNTS)
