"""Entries of distinct values with a bit per key under which the value came.

Keys have known values in some of their columns, and are numbered by them. The other key columns (``kept``)
and the value identify an entry, whose bits are one word. If there are more keys than bits in a word, each
word with a set bit has an entry. So a value of one key costs one word, however many keys there are.

Cost: a sort of the rows' hashes; for counted values a byte per eight keys.
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
    """The key of a row by its values in ``columns``: a row with ``values[i]`` has the key ``numbers[i]``."""

    columns: tuple[str, ...]
    values: tuple[tuple[object, ...], ...]
    numbers: tuple[int, ...]

    def of(self, rows: pa.Table) -> Ints:
        """The key of each row; -1 for rows without a key."""
        codes, size = np.zeros(len(rows), np.int64), 1
        code_of_key, unknown = np.zeros(len(self.values), np.int64), np.zeros(len(rows), np.bool_)
        for name, values in zip(self.columns, zip(*self.values, strict=True), strict=True):
            column = single(rows.column(name))
            distinct_values = list(dict.fromkeys(values))
            value_index = pc.index_in(column, value_set=pa.array(distinct_values, column.type)).fill_null(-1)
            code: Ints = vector(value_index).values.astype(np.int64)
            unknown |= code < 0
            codes, size = codes * len(distinct_values) + code, size * len(distinct_values)
            code_of_key = code_of_key * len(distinct_values) + np.array(
                [distinct_values.index(value) for value in values], np.int64
            )
        key_by_code = np.full(size, -1, np.int64)
        key_by_code[code_of_key] = self.numbers
        return np.where(unknown, -1, key_by_code[np.where(unknown, 0, codes)])


@dataclass(frozen=True, kw_only=True)
class SharedKeys:
    """``kept``: the key columns without known values. ``value``: the counted column. ``known``: for each key
    the values of the other key columns. ``width``: the bits of a word. ``shown``: the output key columns,
    each with its index among the known columns followed by the kept columns."""

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
        """The columns that partition the rows."""
        return tuple(pa.field(*column) for column in (*self.kept, self.value))

    @cached_property
    def words(self) -> tuple[pa.Field, ...]:
        """The columns that distinguish the entries of a value, if it may have several."""
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
        """The columns of rows that are read."""
        grouping_columns = (name for grouping in self.groupings for name in grouping.columns)
        return tuple(dict.fromkeys((*self.types, *grouping_columns)))

    @cached_property
    def schema(self) -> pa.Schema:
        """Of entries."""
        return pa.schema([*self.keys, *self.words, self.bits])

    def entries(self, rows: pa.Table, by: tuple[str, ...] = ()) -> pa.Table:
        """The distinct values of ``rows`` per value of ``by``, with the bits of their keys."""
        numbers = [grouping.of(rows) for grouping in self.groupings]
        rows_by_grouping = [np.flatnonzero(each >= 0) for each in numbers]
        picks = np.concatenate(rows_by_grouping)
        chosen = np.concatenate([each[place] for each, place in zip(numbers, rows_by_grouping, strict=True)])
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
        """Merges entries of one identity."""
        if len(entries) == 0:
            return entries
        groups = self.groups(entries, by)
        if groups.count == len(entries):
            return entries
        bits = np.bitwise_or.reduceat(bits_of(entries)[groups.order], groups.starts)
        return self.with_bits(entries.take(pa.array(groups.heads)), bits)

    def groups(self, entries: pa.Table, by: tuple[str, ...] = ()) -> Groups:
        """Groups entries by identity, which includes the columns ``by``."""
        columns = [single(entries.column(name)) for name in (*by, *self.identity)]
        return group_rows(hash_columns(columns, len(entries)), columns)

    @cached_property
    def identity(self) -> tuple[str, ...]:
        return tuple(f.name for f in (*self.keys, *self.words))

    def with_bits(self, entries: pa.Table, bits: Bits) -> pa.Table:
        column_index = entries.schema.get_field_index(BITS)
        return entries.set_column(column_index, self.bits, to_arrow(Vec(bits), self.bits.type))

    def counted(self, entries: pa.Table, name: str, by: tuple[str, ...] = ()) -> pa.Table:
        """The number of values per key and ``by`` in the distinct entries, as column ``name``. A key whose
        only value is NULL, which does not count, also has a row."""
        own = {c: single(entries.column(c)) for c in (*by, *(c for c, _ in self.kept))}
        there = validity(single(entries.column(self.value[0])))
        counts = np.ones(len(entries), np.bool_) if there is None else there
        owners, heads = _numbered(list(own.values()), len(entries))
        pair_numbers, sums = self._sums(entries, owners, counts)
        rows, numbers = pa.array(heads[pair_numbers // self.count]), pa.array(pair_numbers % self.count)
        columns = {c: own[c].take(rows) for c in by}
        for (shown, kind), place in self.shown:
            if place < len(self.known):
                columns[shown] = pa.array(self.known[place], kind).take(numbers)
            else:
                columns[shown] = own[self.kept[place - len(self.known)][0]].take(rows)
        return pa.table({**columns, name: pa.array(sums)})

    def _sums(self, entries: pa.Table, owners: Ints, counts: Mask) -> tuple[Ints, Ints]:
        """The existing pairs of ``owners`` and keys, as numbers, and the count of each."""
        pairs = [np.zeros(0, np.int64)]
        tells = [np.zeros(0, np.bool_)]
        for rows, numbers in self._pairs(entries):
            pairs.append(owners[rows] * self.count + numbers)
            tells.append(counts[rows])
        pair_numbers, pair_index = _distinct(np.concatenate(pairs))
        return pair_numbers, np.bincount(pair_index[np.concatenate(tells)], minlength=len(pair_numbers))

    def _pairs(self, entries: pa.Table) -> Iterator[tuple[Ints, Ints]]:
        """The index of each entry with the numbers of its keys."""
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
    bits: Bits = vector(entries.column(BITS)).values
    return bits


def _numbered(columns: list[pa.Array], size: int) -> tuple[Ints, Ints]:
    """Rows by ``columns``: the number of each, and a row that has it."""
    if not columns:
        return np.zeros(size, np.int64), np.zeros(min(size, 1), np.int64)
    groups = group_rows(hash_columns(columns, size), columns)
    owners = np.empty(size, np.int64)
    owners[groups.order] = groups.ids()
    return owners, groups.heads


def _distinct(numbers: Ints) -> tuple[Ints, Ints]:
    """The distinct ``numbers``, and the index of each number among them. Cost: a sort only if the numbers are
    far apart."""
    size = int(numbers.max(initial=-1)) + 1
    if size > len(numbers) + _CHUNK:
        distinct_numbers, index_of = np.unique(numbers, return_inverse=True)
        return distinct_numbers, index_of.reshape(-1)
    there = np.zeros(size, np.bool_)
    there[numbers] = True
    return np.flatnonzero(there), (np.cumsum(there) - 1)[numbers]
