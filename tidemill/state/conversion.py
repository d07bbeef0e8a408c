"""Converts the stored rows of a table whose value columns have changed to the new layout.

Value columns are part of a row's identity. With other value columns a row has another code, and rows that
differed only in a dropped column become one row:

    stored: (k=1, a=5, b=7), (k=1, a=5, b=8)        the query dropped b and added c
    now:    (k=1, a=5, c=NULL) twice

A column may also get a wider type (``growing_types``): its rows keep their codes, and are cast.

A query converts a partition's table when it first opens it, whatever queries ran in between: each run says
which columns it has. A column that was dropped comes back under another name, so its old values are not read
again. Arrival numbers are assigned again, in the order of the rows, because the codes of ties have changed.

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
from tidemill.state.packing import unpacked_type
from tidemill.state.run import DUE, HASH, TIME, RunReader

_KEY_BITS = np.uint64(32)


def is_other(layout: Layout, entry: TableEntry) -> bool:
    """Whether the rows of ``entry`` must be converted."""
    shape = entry.shape
    if shape is None or shape.keys != layout.shape.keys:
        return False
    same_values = shape.values == layout.shape.values
    return (layout.evolves and not same_values) or (
        same_values and (shape.mixed or _has_grown(layout, entry))
    )


def _has_grown(layout: Layout, entry: TableEntry) -> bool:
    return any(grows(entry.columns.get(name, ""), kind) for name, kind in layout.described.items())


def converted(
    layout: Layout, entry: TableEntry, readers: Sequence[RunReader], slice_bytes: int, now: int
) -> list[tuple[RunReader, ...]]:
    """``readers``, newest first, as layers of ``layout``: one layer for all readers with the same value
    columns. Readers with different columns come from different partitions, and so have different keys."""
    values = entry.shape.values if entry.shape is not None else ()
    by_values: dict[tuple[pa.Field, ...], list[RunReader]] = {}
    for reader in readers:
        schema = reader.table.schema
        names = set(schema.names)
        fields = tuple(pa.field(v, unpacked_type(schema.field(v))) for v in values if v in names)
        by_values.setdefault(fields, []).append(reader)
    layers = (
        _layer(layout, columns, readers_of_columns, slice_bytes, now)
        for columns, readers_of_columns in by_values.items()
    )
    return [layer for layer in layers if layer]


def _layer(
    layout: Layout, values: tuple[pa.Field, ...], readers: Sequence[RunReader], slice_bytes: int, now: int
) -> tuple[RunReader, ...]:
    stored_layout = replace(layout, values=values, growing=False)
    merged = merge_readers(stored_layout, readers, slice_bytes, last=True, now=now)
    return tuple(
        RunReader.of_table(reader.storage, table, reader.epochs)
        for reader, rows in _by_whole_keys(merged)
        if len(table := _as(layout, stored_layout, rows, now))
    )


def _by_whole_keys(merged: Sequence[RunReader]) -> Iterator[tuple[RunReader, pa.Table]]:
    """The rows in pieces that do not divide a key, so that equal rows of the new layout are in one piece."""
    pending: pa.Table | None = None
    for number, reader in enumerate(merged):
        rows = reader.table if pending is None else pa.concat_tables([pending, reader.table]).combine_chunks()
        last = number + 1 == len(merged)
        end = len(rows) if last else _last_key(rows)
        if end:
            yield reader, rows.slice(0, end)
        pending = rows.slice(end)


def _last_key(rows: pa.Table) -> int:
    """The index of the first row of the last key."""
    keys = vector(single(rows.column(HASH))).values >> _KEY_BITS
    is_last_key = keys == keys[-1]
    if DUE in rows.schema.names:
        dues = vector(single(rows.column(DUE))).values
        is_last_key &= dues == dues[-1]
    others = np.flatnonzero(~is_last_key)
    return int(others[-1]) + 1 if len(others) else 0


def _as(layout: Layout, stored_layout: Layout, rows: pa.Table, now: int) -> pa.Table:
    if layout.arrival:
        rows = _renumbered(stored_layout, rows)
    table = conform(rows, layout.schema).combine_chunks()
    codes = hash_array(_codes(layout, stored_layout, table))
    table = table.set_column(table.schema.get_field_index(HASH), layout.schema.field(HASH), codes)
    if layout.counts:
        table = _counted(layout, table)
    return merge_tables(layout, [table], last=True, now=now)


def _codes(layout: Layout, stored_layout: Layout, rows: pa.Table) -> Hashes:
    """The new codes of ``rows``. The hash of a key comes from the exchange, which may use fewer columns than
    the table's keys. So the stored hash is kept: all of it, or the half that is stored beside value
    hashes."""
    keys = vector(single(rows.column(HASH))).values
    if stored_layout.values and not layout.values:
        keys = hash_columns([single(rows.column(f.name)) for f in layout.keys], len(rows))
    return layout.codes(keys, [single(rows.column(f.name)) for f in layout.coded])


def _renumbered(stored_layout: Layout, rows: pa.Table) -> pa.Table:
    """``rows`` with new arrival numbers, which order the rows of a key (see ``operators.rows.entries``)."""
    other_values = [
        single(rows.column(f.name)) for f in stored_layout.values if f.name != stored_layout.arrival
    ]
    sequence = vector(single(rows.column(stored_layout.arrival))).values
    numbers = np.empty(len(rows), np.int64)
    numbers[np.lexsort((hash_columns(other_values, len(rows)), sequence))] = np.arange(len(rows))
    return _with(rows, stored_layout.arrival, numbers)


def _counted(layout: Layout, rows: pa.Table) -> pa.Table:
    """Merges records that are equal now: counts are added, and the latest write time is kept."""
    if layout.ttl:
        times = vector(single(rows.column(TIME))).values
        rows = rows.take(pa.array(np.argsort(-times, kind="stable")))
    identity = [single(rows.column(f.name)) for f in layout.identity]
    groups = group_rows(vector(single(rows.column(HASH))).values, identity)
    counts = vector(single(rows.column(layout.counts))).values
    sums = np.add.reduceat(counts[groups.order], groups.starts) if len(rows) else counts
    return _with(rows.take(pa.array(groups.heads)), layout.counts, sums)


def _with(rows: pa.Table, name: str, values: Ints) -> pa.Table:
    index = rows.schema.get_field_index(name)
    return rows.set_column(index, rows.schema.field(name), to_arrow(Vec(values), pa.int64()))
