"""Rows of a table whose value columns are others than when they were stored, as rows of the new layout.

A value column tells rows apart, so with others a row lies at another place, and rows that differed in nothing
but a column that is gone are one:

    stored: (k=1, a=5, b=7), (k=1, a=5, b=8)        the query dropped b and added c
    now:    (k=1, a=5, c=NULL) twice

A column may also have a wider type now (``growing_types``): its rows stay where they are, and are cast.

A partition's table is converted when a query first opens it, whatever queries have been there in between:
each run says which columns it has. A column that was gone comes back under another name, so what it was is
not read again. Numbers of arrival are made anew, in the order that rows had, as ties went by all columns.

Cost: a read and a sort of the table, once; it is in memory until the epoch's runs are written.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from tidemill.changelog.columns import Hashes, Ints, Vec, single, to_arrow, vector
from tidemill.changelog.grouping import group_rows
from tidemill.changelog.hashing import hash_columns
from tidemill.state.growing_types import grows
from tidemill.state.layout import Layout, conform, hash_array
from tidemill.state.manifest import TableEntry
from tidemill.state.merge import merge_readers, merge_tables
from tidemill.state.run import DUE, HASH, TIME, RunReader

_KEY_BITS = np.uint64(32)


def is_other(layout: Layout, entry: TableEntry) -> bool:
    """Whether rows of ``entry`` are to be converted."""
    shape = entry.shape
    if shape is None or shape.keys != layout.shape.keys:
        return False
    same = shape.values == layout.shape.values
    return (layout.evolves and not same) or (same and (shape.mixed or _has_grown(layout, entry)))


def _has_grown(layout: Layout, entry: TableEntry) -> bool:
    return any(grows(entry.columns.get(name, ""), kind) for name, kind in layout.described.items())


def converted(
    layout: Layout, entry: TableEntry, readers: Sequence[RunReader], slice_bytes: int, now: int
) -> list[tuple[RunReader, ...]]:
    """``readers``, newest first, as layers of ``layout``: one for all that were written by the same columns,
    and so of partitions, and keys, of their own."""
    values = entry.shape.values if entry.shape is not None else ()
    by_values: dict[tuple[pa.Field, ...], list[RunReader]] = {}
    for reader in readers:
        schema = reader.table.schema
        names = set(schema.names)
        by_values.setdefault(tuple(schema.field(v) for v in values if v in names), []).append(reader)
    layers = (_layer(layout, own, part, slice_bytes, now) for own, part in by_values.items())
    return [layer for layer in layers if layer]


def _layer(
    layout: Layout, values: tuple[pa.Field, ...], readers: Sequence[RunReader], slice_bytes: int, now: int
) -> tuple[RunReader, ...]:
    held = replace(layout, values=values, growing=False)
    merged = merge_readers(held, readers, slice_bytes, last=True, now=now)
    return tuple(
        RunReader.of_table(reader.storage, table, reader.epochs)
        for reader, rows in _by_whole_keys(merged)
        if len(table := _as(layout, held, rows, now))
    )


def _by_whole_keys(merged: Sequence[RunReader]) -> Iterator[tuple[RunReader, pa.Table]]:
    """The rows in pieces none of which ends within a key: equal rows of the new layout are of one."""
    rest: pa.Table | None = None
    for number, reader in enumerate(merged):
        rows = reader.table if rest is None else pa.concat_tables([rest, reader.table]).combine_chunks()
        last = number + 1 == len(merged)
        end = len(rows) if last else _last_key(rows)
        if end:
            yield reader, rows.slice(0, end)
        rest = rows.slice(end)


def _last_key(rows: pa.Table) -> int:
    """The place of the first row of the last key."""
    keys = vector(single(rows.column(HASH))).values >> _KEY_BITS
    same = keys == keys[-1]
    if DUE in rows.schema.names:
        dues = vector(single(rows.column(DUE))).values
        same &= dues == dues[-1]
    others = np.flatnonzero(~same)
    return int(others[-1]) + 1 if len(others) else 0


def _as(layout: Layout, held: Layout, rows: pa.Table, now: int) -> pa.Table:
    if layout.arrival:
        rows = _renumbered(held, rows)
    table = conform(rows, layout.schema).combine_chunks()
    codes = hash_array(_codes(layout, held, table))
    table = table.set_column(table.schema.get_field_index(HASH), layout.schema.field(HASH), codes)
    if layout.counts:
        table = _counted(layout, table)
    return merge_tables(layout, [table], last=True, now=now)


def _codes(layout: Layout, held: Layout, rows: pa.Table) -> Hashes:
    """Where rows lie now. The exchange has given the hash of a key, of fewer columns than all keys where
    operators share it, so what is stored of the hash counts: all of it, or its half beside values."""
    keys = vector(single(rows.column(HASH))).values
    if held.values and not layout.values:
        keys = hash_columns([single(rows.column(f.name)) for f in layout.keys], len(rows))
    return layout.codes(keys, [single(rows.column(f.name)) for f in layout.coded])


def _renumbered(held: Layout, rows: pa.Table) -> pa.Table:
    """With numbers of their own for the order of arrival within a key (see ``operators.rows.entries``)."""
    others = [single(rows.column(f.name)) for f in held.values if f.name != held.arrival]
    sequence = vector(single(rows.column(held.arrival))).values
    numbers = np.empty(len(rows), np.int64)
    numbers[np.lexsort((hash_columns(others, len(rows)), sequence))] = np.arange(len(rows))
    return _with(rows, held.arrival, numbers)


def _counted(layout: Layout, rows: pa.Table) -> pa.Table:
    """Records that are one now: as often as they were there together, written when the last of them was."""
    if layout.ttl:
        times = vector(single(rows.column(TIME))).values
        rows = rows.take(pa.array(np.argsort(-times, kind="stable")))
    identity = [single(rows.column(f.name)) for f in layout.identity]
    groups = group_rows(vector(single(rows.column(HASH))).values, identity)
    counts = vector(single(rows.column(layout.counts))).values
    sums = np.add.reduceat(counts[groups.order], groups.starts) if len(rows) else counts
    return _with(rows.take(pa.array(groups.heads)), layout.counts, sums)


def _with(rows: pa.Table, name: str, values: Ints) -> pa.Table:
    place = rows.schema.get_field_index(name)
    return rows.set_column(place, rows.schema.field(name), to_arrow(Vec(values), pa.int64()))
