"""Values with the keys that they came under, a bit for each: what is shared of distinct values.

Keys are told by the known values of some of their columns, and are numbered; the other columns (``kept``) and
the value are what an entry is. Its bits are one word; where there are more keys than that has, there is an
entry for each word with any: a value that comes under one key costs one word, however many keys there are.

Cost: a sort of the rows' hashes; of what is counted a byte for every eighth key.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tidemill.changelog.columns import Ints, Mask, Vec, single, to_arrow, validity, vector
from tidemill.changelog.grouping import Groups, group_rows
from tidemill.changelog.hashing import hash_columns

BITS = "$bits"
WORD = "$word"
_CHUNK = 1 << 16
"""Entries whose bits are looked at together."""
Bits = npt.NDArray[Any]
Column = tuple[str, pa.DataType]


@dataclass(frozen=True, slots=True, kw_only=True)
class Grouping:
    """Which key a row counts for by what it has in ``columns``: that of ``numbers`` at the place of the same
    ``values``."""

    columns: tuple[str, ...]
    values: tuple[tuple[object, ...], ...]
    numbers: tuple[int, ...]

    def of(self, rows: pa.Table) -> Ints:
        """The key of each row, -1 where it has none."""
        codes, size = np.zeros(len(rows), np.int64), 1
        places, unknown = np.zeros(len(self.values), np.int64), np.zeros(len(rows), np.bool_)
        for name, values in zip(self.columns, zip(*self.values, strict=True), strict=True):
            column = single(rows.column(name))
            known = list(dict.fromkeys(values))
            found = pc.index_in(column, value_set=pa.array(known, column.type)).fill_null(-1)
            code: Ints = vector(found).values.astype(np.int64)
            unknown |= code < 0
            codes, size = codes * len(known) + code, size * len(known)
            places = places * len(known) + np.array([known.index(value) for value in values], np.int64)
        told = np.full(size, -1, np.int64)
        told[places] = self.numbers
        return np.where(unknown, -1, told[np.where(unknown, 0, codes)])


@dataclass(frozen=True, kw_only=True)
class SharedKeys:
    """``kept``: the columns of keys that are not known, ``value``: the one that is counted; ``known``: what
    each key has in the others; ``width``: the bits of a word. ``shown``: the columns of the keys that are
    given, each with its place among the known ones, or else behind them among those that are kept."""

    kept: tuple[Column, ...]
    value: Column
    known: tuple[tuple[object, ...], ...]
    shown: tuple[tuple[Column, int], ...]
    groupings: tuple[Grouping, ...]
    width: int

    @cached_property
    def count(self) -> int:
        """Of keys."""
        return sum(len(grouping.numbers) for grouping in self.groupings)

    @cached_property
    def keys(self) -> tuple[pa.Field, ...]:
        """What rows are sent by."""
        return tuple(pa.field(*column) for column in (*self.kept, self.value))

    @cached_property
    def words(self) -> tuple[pa.Field, ...]:
        """What tells entries of a value apart, where it may have several."""
        return (pa.field(WORD, pa.int8()),) if self.count > self.width else ()

    @cached_property
    def bits(self) -> pa.Field:
        kinds = {8: pa.uint8(), 16: pa.uint16(), 32: pa.uint32(), 64: pa.uint64()}
        return pa.field(BITS, kinds[self.width])

    @cached_property
    def types(self) -> dict[str, pa.DataType]:
        """Of what is kept of rows."""
        return {f.name: f.type for f in self.keys}

    @cached_property
    def read(self) -> tuple[str, ...]:
        """The columns of rows that are looked at."""
        told = (name for grouping in self.groupings for name in grouping.columns)
        return tuple(dict.fromkeys((*self.types, *told)))

    @cached_property
    def schema(self) -> pa.Schema:
        """Of entries."""
        return pa.schema([*self.keys, *self.words, self.bits])

    def entries(self, rows: pa.Table, by: tuple[str, ...] = ()) -> pa.Table:
        """The values of ``rows`` with the bits of their keys, each once for all that it has in ``by``."""
        numbers = [grouping.of(rows) for grouping in self.groupings]
        places = [np.flatnonzero(each >= 0) for each in numbers]
        picks = np.concatenate(places)
        chosen = np.concatenate([each[place] for each, place in zip(numbers, places, strict=True)])
        names = [*by, *(f.name for f in self.keys)]
        columns = {name: single(rows.column(name)) for name in names}
        if len(numbers) > 1 or len(picks) < len(rows):
            columns = {name: column.take(pa.array(picks)) for name, column in columns.items()}
        if self.words:
            columns[WORD] = pa.array((chosen // self.width).astype(np.int8))
        one = np.ones(1, self._dtype)
        columns[BITS] = pa.array(one << (chosen % self.width).astype(self._dtype))
        return self.folded(pa.table(columns), by)

    def folded(self, entries: pa.Table, by: tuple[str, ...] = ()) -> pa.Table:
        """Entries of one identity as one."""
        if len(entries) == 0:
            return entries
        groups = self.groups(entries, by)
        if groups.count == len(entries):
            return entries
        bits = np.bitwise_or.reduceat(bits_of(entries)[groups.order], groups.starts)
        return self.with_bits(entries.take(pa.array(groups.heads)), bits)

    def groups(self, entries: pa.Table, by: tuple[str, ...] = ()) -> Groups:
        """Those of one identity, which is what they have in ``by``, too."""
        columns = [single(entries.column(name)) for name in (*by, *self.identity)]
        return group_rows(hash_columns(columns, len(entries)), columns)

    @cached_property
    def identity(self) -> tuple[str, ...]:
        return tuple(f.name for f in (*self.keys, *self.words))

    def with_bits(self, entries: pa.Table, bits: Bits) -> pa.Table:
        place = entries.schema.get_field_index(BITS)
        return entries.set_column(place, self.bits, to_arrow(Vec(bits), self.bits.type))

    def counted(self, entries: pa.Table, name: str, by: tuple[str, ...] = ()) -> pa.Table:
        """How many values the entries (distinct) have by key and ``by``, as ``name``: a row for each, also
        where the only one is NULL, which does not count."""
        own = {c: single(entries.column(c)) for c in (*by, *(c for c, _ in self.kept))}
        there = validity(single(entries.column(self.value[0])))
        counts = np.ones(len(entries), np.bool_) if there is None else there
        owners, heads = _numbered(list(own.values()), len(entries))
        found, sums = self._sums(entries, owners, counts)
        rows, numbers = pa.array(heads[found // self.count]), pa.array(found % self.count)
        columns = {c: own[c].take(rows) for c in by}
        for (shown, kind), place in self.shown:
            if place < len(self.known):
                columns[shown] = pa.array(self.known[place], kind).take(numbers)
            else:
                columns[shown] = own[self.kept[place - len(self.known)][0]].take(rows)
        return pa.table({**columns, name: pa.array(sums)})

    def _sums(self, entries: pa.Table, owners: Ints, counts: Mask) -> tuple[Ints, Ints]:
        """Which pairs of ``owners`` and keys there are, as numbers, and how often one that counts."""
        pairs = [np.zeros(0, np.int64)]
        tells = [np.zeros(0, np.bool_)]
        for rows, numbers in self._pairs(entries):
            pairs.append(owners[rows] * self.count + numbers)
            tells.append(counts[rows])
        found, places = _distinct(np.concatenate(pairs))
        return found, np.bincount(places[np.concatenate(tells)], minlength=len(found))

    def _pairs(self, entries: pa.Table) -> Iterator[tuple[Ints, Ints]]:
        """The entries and the numbers of the keys that they have bits of."""
        bits = bits_of(entries)
        first = vector(entries.column(WORD)).values.astype(np.int64) * self.width if self.words else None
        for start in range(0, len(bits), _CHUNK):
            part = np.ascontiguousarray(bits[start : start + _CHUNK]).view(np.uint8)
            flags = np.unpackbits(part.reshape(-1, self.width // 8), axis=1, bitorder="little")
            rows, numbers = np.nonzero(flags)
            rows += start
            yield rows, numbers if first is None else numbers + first[rows]

    @property
    def _dtype(self) -> np.dtype[Any]:
        return np.dtype(f"u{self.width // 8}")


def bits_of(entries: pa.Table) -> Bits:
    found: Bits = vector(entries.column(BITS)).values
    return found


def _numbered(columns: list[pa.Array], size: int) -> tuple[Ints, Ints]:
    """Rows by ``columns``: the number of each, and a row that has it."""
    if not columns:
        return np.zeros(size, np.int64), np.zeros(min(size, 1), np.int64)
    groups = group_rows(hash_columns(columns, size), columns)
    owners = np.empty(size, np.int64)
    owners[groups.order] = groups.ids()
    return owners, groups.heads


def _distinct(numbers: Ints) -> tuple[Ints, Ints]:
    """The different ones of ``numbers``, and which of them each is. Cost: a sort only where they are far
    apart."""
    size = int(numbers.max(initial=-1)) + 1
    if size > len(numbers) + _CHUNK:
        found, places = np.unique(numbers, return_inverse=True)
        return found, places.reshape(-1)
    there = np.zeros(size, np.bool_)
    there[numbers] = True
    return np.flatnonzero(there), (np.cumsum(there) - 1)[numbers]
