"""The two sides of a join for one epoch: weighted rows by key.

Keys of both sides' changes get one numbering (``KeyNumbers``). A ``Side`` has the stored rows of these keys
and the epoch's rows, sorted by key number, with their weights before and after. No column is copied into that
order: ``Side.rows`` has the index of each row, and output columns are fetched once.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tidemill.changelog.batch import hashes_of, weights_of
from tidemill.changelog.columns import Hashes, Ints, Mask, single, vector
from tidemill.changelog.grouping import Groups, group_rows
from tidemill.changelog.hashing import hash_columns
from tidemill.changelog.rowkind import KIND_COLUMN
from tidemill.operators.rows.stored_before import Late, as_stored, marked, marks

Kinds = npt.NDArray[np.int8]
Columns = dict[str, pa.Array]

UNMOVED = -1
"""The kind of a row that did not change."""
CODE_BITS = 32


@dataclass(frozen=True, slots=True)
class Change:
    """One side's rows of the epoch. ``weights``: +1 or -1; None: no retractions."""

    columns: Columns
    hashes: Hashes
    weights: Ints | None
    kinds: Kinds

    def __len__(self) -> int:
        return len(self.hashes)

    def pick(self, rows: Ints) -> Change:
        """Some of the rows."""
        if len(rows) == len(self):
            return self
        picks = pa.array(rows)
        columns = {name: column.take(picks) for name, column in self.columns.items()}
        weights = None if self.weights is None else self.weights[rows]
        return Change(columns, self.hashes[rows], weights, self.kinds[rows])


def changed_rows(
    table: pa.Table,
    columns: tuple[tuple[str, pa.DataType], ...],
    keys: tuple[str, ...],
    late: Late | None = None,
) -> Change:
    """``table`` as a join sees it: its ``columns`` and the marks among ``late`` ones, key hashes, weights and
    kinds."""
    table = marked(table, late)
    arrays = {name: _typed(single(table.column(name)), kind) for name, kind in columns}
    arrays |= {name: single(table.column(name)) for name in marks(late)}
    hashes = hashes_of(table, [arrays[k] for k in keys])
    changes = KIND_COLUMN in table.schema.names
    kinds = vector(table.column(KIND_COLUMN)).values if changes else np.zeros(len(table), np.int8)
    return Change(arrays, hashes, weights_of(table), kinds)


def _typed(array: pa.Array, kind: pa.DataType) -> pa.Array:
    """Spark's nested types differ from declared ones in nullability."""
    return array if array.type == kind else array.cast(kind)


def value_codes(values: list[pa.Array], rows: int) -> Hashes:
    """The lower half of ``Layout.codes``; 0 if the key is the whole row."""
    return hash_columns(values, rows) >> np.uint64(CODE_BITS) if values else np.zeros(rows, np.uint64)


@dataclass(frozen=True, slots=True)
class Placed:
    """A side's changed rows in key order: their numbers and those of their keys."""

    rows: Ints
    owners: Ints


@dataclass(frozen=True, slots=True)
class KeyNumbers:
    """The distinct keys of both sides' changes, hashes ascending. ``touched``: per side, whether it has
    changes of the key."""

    placed: tuple[Placed, Placed]
    touched: tuple[Mask, Mask]
    hashes: Hashes
    keys: list[pa.Array]

    @property
    def count(self) -> int:
        return len(self.hashes)

    def some(self, chosen: Mask) -> tuple[Ints, Hashes, list[pa.Array]]:
        """Numbers, hashes and values of the ``chosen`` keys."""
        numbers = np.flatnonzero(chosen)
        if len(numbers) == self.count:
            return numbers, self.hashes, self.keys
        picks = pa.array(numbers)
        return numbers, self.hashes[numbers], [k.take(picks) for k in self.keys]


def key_numbers(changes: tuple[Change, Change], names: tuple[tuple[str, ...], tuple[str, ...]]) -> KeyNumbers:
    """Numbers the distinct keys of both sides' changes; ``names``: the key columns of either side."""
    left, right = changes
    hashes = np.concatenate([left.hashes, right.hashes])
    columns = [
        single(pa.chunked_array([left.columns[a], right.columns[b]])) for a, b in zip(*names, strict=True)
    ]
    groups = group_rows(hashes, columns)
    owners = groups.ids()
    split = len(left)
    if len(right) and split:
        own = groups.order < split
        rows_by_side = (np.flatnonzero(own), np.flatnonzero(~own))
        placed = tuple(
            Placed(groups.order[at] - start, owners[at])
            for at, start in zip(rows_by_side, (0, split), strict=True)
        )
    else:
        full, none = Placed(groups.order, owners), Placed(owners[:0], owners[:0])
        placed = (full, none) if split else (none, full)
    touched = tuple(np.bincount(p.owners, minlength=groups.count).astype(np.bool_) for p in placed)
    heads = groups.heads
    picks = pa.array(heads)
    keys = [c.take(picks) for c in columns]
    return KeyNumbers((placed[0], placed[1]), (touched[0], touched[1]), hashes[heads], keys)


@dataclass(frozen=True, slots=True)
class Held:
    """The stored rows of the keys, with their key number and weight.

    ``codes`` as in ``value_codes``. ``matches``: the number of matches of each row so far, for a side that
    stores it. ``exact``: weights are counts of current rows, each row has one entry, and a missing row cannot
    be retracted (otherwise its weight becomes negative).
    """

    owners: Ints
    columns: Columns
    weights: Ints
    codes: Hashes | None = None
    matches: Ints | None = None
    exact: bool = False


def with_missing_columns(held: Held, change: Change, placed: Placed, values: list[str], late: Late) -> Change:
    """``change`` with NULL in ``late`` columns of retractions whose row was stored without these columns."""
    if change.weights is None:
        return change
    # Rows of an epoch have no order: a row that comes and goes in the epoch was not stored.
    order = np.argsort(-change.weights[placed.rows], kind="stable")
    rows, size = placed.rows[order], len(held.owners)
    picks = pa.array(rows)
    columns = {
        name: single(pa.chunked_array([held.columns[name], change.columns[name].take(picks)]))
        for name in (values if size else ())
    }
    old = np.arange(size + len(rows)) < size
    owners = np.concatenate([held.owners, placed.owners[order]])
    stored_columns = as_stored(
        owners, columns, np.concatenate([held.weights, change.weights[rows]]), old, late
    )
    positions = np.empty(len(change), np.int64)
    positions[rows] = size + np.arange(len(rows))
    own = {name: stored_columns[name].take(pa.array(positions)) for name, _ in late if name in stored_columns}
    return replace(change, columns={**change.columns, **own})


@dataclass(frozen=True, slots=True)
class Side:
    """Rows sorted by ``owners`` (key numbers); ``rows`` are their indexes in ``columns``.

    A stored row that changed has one entry, but without retractions copies may have several entries.
    ``codes`` and ``matches`` as in ``Held``; None if they are not needed.
    """

    columns: Columns
    rows: Ints
    owners: Ints
    before: Ints
    after: Ints
    kinds: Kinds
    codes: Hashes | None = None
    matches: Ints | None = None

    @classmethod
    def of(cls, held: Held, change: Change, placed: Placed, values: list[str]) -> Side:
        """``values``: the columns that are not of the key."""
        columns = {
            name: single(pa.chunked_array([held.columns[name], column])) if len(held.owners) else column
            for name, column in change.columns.items()
        }
        if not held.exact and change.weights is None and (held.weights > 0).all():
            return cls._bag(columns, held, change, placed)
        return cls._set(columns, held, change, placed, values)

    @classmethod
    def netted(cls, change: Change) -> Side:
        """The epoch's rows alone, as if all had one key."""
        nobody = np.zeros(0, np.int64)
        held = Held(nobody, {}, nobody)
        size = len(change)
        return cls.of(held, change, Placed(np.arange(size), np.zeros(size, np.int64)), list(change.columns))

    @classmethod
    def _bag(cls, columns: Columns, held: Held, change: Change, placed: Placed) -> Side:
        size, new = len(held.owners), len(placed.rows)
        before = np.concatenate([held.weights, np.zeros(new, np.int64)])
        after = np.concatenate([held.weights, np.ones(new, np.int64)])
        kinds = np.concatenate([np.full(size, UNMOVED, np.int8), change.kinds[placed.rows]])
        owners = np.concatenate([held.owners, placed.owners])
        rows = np.concatenate([np.arange(size), size + placed.rows])
        if not (owners[1:] >= owners[:-1]).all():
            # Stored rows come run by run, so they need sorting even if the epoch has no rows.
            order = np.argsort(owners, kind="stable")
            rows, owners, before, after = rows[order], owners[order], before[order], after[order]
            kinds = kinds[order]
        return cls(columns, rows, owners, before, after, kinds)

    @classmethod
    def _set(cls, columns: Columns, held: Held, change: Change, placed: Placed, values: list[str]) -> Side:
        size, new = len(held.owners), len(change)
        owners = np.empty(size + new, np.int64)
        owners[:size] = held.owners
        owners[size + placed.rows] = placed.owners
        own = value_codes([change.columns[name] for name in values], new)
        codes = own if held.codes is None else np.concatenate([held.codes, own])
        groups = group_rows(_words(owners, codes), [columns[name] for name in values])
        weights = np.ones(new, np.int64) if change.weights is None else change.weights
        weights = np.concatenate([np.zeros(size, np.int64), weights])[groups.order]
        kinds = np.concatenate([np.full(size, UNMOVED, np.int8), change.kinds])[groups.order]
        net = np.add.reduceat(weights, groups.starts)
        before = _sums(held.weights, new, groups)
        # A row gets the kind of its prevailing changes.
        prevailed = (weights == np.repeat(np.sign(net), groups.sizes)) | (kinds == UNMOVED)
        heads = groups.heads
        side = cls(
            columns,
            heads,
            owners[heads],
            before,
            np.maximum(before + net, 0) if held.exact else before + net,
            np.maximum.reduceat(np.where(prevailed, kinds, 0), groups.starts),
            codes[heads],
            None if held.matches is None else _sums(held.matches, new, groups),
        )
        return side if held.exact else side._that_count()

    def _that_count(self) -> Side:
        """The side without rows that neither existed before nor exist now; they did not change."""
        keep = (self.before != 0) | (self.after != 0)
        kinds = np.where(self.before == self.after, np.int8(UNMOVED), self.kinds)
        if keep.all():
            return replace(self, kinds=kinds)
        rows = np.flatnonzero(keep)
        return Side(
            self.columns,
            self.rows[rows],
            self.owners[rows],
            self.before[rows],
            self.after[rows],
            kinds[rows],
            None if self.codes is None else self.codes[rows],
        )

    @property
    def moved(self) -> Mask:
        moved: Mask = self.kinds != UNMOVED
        return moved

    def take(self, name: str, rows: Ints) -> pa.Array:
        """A column at some of the rows."""
        return self.columns[name].take(pa.array(self.rows[rows]))


def _sums(held_values: Ints, new: int, groups: Groups) -> Ints:
    """The sum per group of what the held rows have; new rows have nothing."""
    total: Ints = np.add.reduceat(
        np.concatenate([held_values, np.zeros(new, np.int64)])[groups.order], groups.starts
    )
    return total


def _words(owners: Ints, codes: Hashes) -> Hashes:
    """Key number, then code, in the upper bits of a word."""
    bits = int(owners.max()).bit_length() if len(owners) else 0
    words = (owners.view(np.uint64) << np.uint64(CODE_BITS)) | codes
    return words << np.uint64(max(0, 64 - CODE_BITS - bits))
