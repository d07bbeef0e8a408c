"""ChangelogNormalize: the last row per key, from an upsert or duplicate-ridden changelog a full one.

An event sets its key's row (+I, +U), removes it (-D) or means nothing (-U). State: one record per key.
With ``every_event`` the output shows each event that changed something, else the epoch's net change.
Cost per epoch: the touched keys.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa

from tidemill.changelog.batch import contiguous, hashes_of
from tidemill.changelog.columns import Ints, Mask, Vec, rows_equal, single, to_arrow, vector
from tidemill.changelog.grouping import Groups, group_rows
from tidemill.changelog.rowkind import KIND_COLUMN, SEQUENCE_COLUMN, RowKind
from tidemill.operators.api import EpochContext
from tidemill.state.layout import Layout
from tidemill.state.store import StateStore


@dataclass(frozen=True, kw_only=True)
class ChangelogNormalizeSpec:
    """``columns``: (name, type) of the row, ``keys`` among them. ``update_before``: give -U too."""

    columns: tuple[tuple[str, pa.DataType], ...]
    keys: tuple[str, ...]
    update_before: bool = True
    every_event: bool = False
    sequence: bool = False
    state_ttl: int = 0

    @property
    def fingerprint(self) -> str:
        return hashlib.sha256(f"normalize {self.columns} {self.keys}".encode()).hexdigest()[:16]

    @cached_property
    def layout(self) -> Layout:
        types = dict(self.columns)
        return Layout(
            name="rows",
            keys=tuple(pa.field(k, types[k]) for k in self.keys),
            columns=tuple(pa.field(n, t) for n, t in self.columns if n not in self.keys),
            ttl=self.state_ttl,
        )

    def output_schema(self) -> pa.Schema:
        fields = [pa.field(n, t) for n, t in self.columns] + [pa.field(KIND_COLUMN, pa.int8())]
        return pa.schema(fields + [pa.field(SEQUENCE_COLUMN, pa.int64())] * self.sequence)

    def step(self, inputs: tuple[pa.Table, ...], state: StateStore, epoch: EpochContext) -> pa.Table:
        """The changes that the epoch's events made."""
        table = contiguous(inputs[0])
        kinds = vector(table.column(KIND_COLUMN)).values if KIND_COLUMN in table.schema.names else None
        if kinds is not None and (kinds == RowKind.UPDATE_BEFORE).any():
            kept = np.flatnonzero(kinds != RowKind.UPDATE_BEFORE)
            table, kinds = contiguous(table.take(pa.array(kept))), kinds[kept]
        if len(table) == 0:
            return self.output_schema().empty_table()
        removes = np.zeros(len(table), np.bool_) if kinds is None else kinds == RowKind.DELETE
        return _Step(self, state, epoch).run(table, removes)


@dataclass(slots=True)
class _Step:
    spec: ChangelogNormalizeSpec
    store: StateStore
    epoch: EpochContext

    def run(self, table: pa.Table, removes: Mask) -> pa.Table:
        order = np.argsort(vector(table.column(SEQUENCE_COLUMN)).values, kind="stable")
        table, removes = contiguous(table.take(pa.array(order))), removes[order]
        keys = [single(table.column(k)) for k in self.spec.keys]
        hashes = hashes_of(table, keys)
        groups = group_rows(hashes, keys)
        heads = groups.heads
        found = self.store.table(self.spec.layout).lookup(
            hashes[heads], [k.take(pa.array(heads)) for k in keys]
        )
        stored = {f.name: found.array(f.name) for f in self.spec.layout.columns}
        last = groups.order[groups.starts + groups.sizes - 1]
        self._write(table, last, removes[last], found.found, hashes)
        return self._show(table, removes, groups, stored, found.found)

    def _write(self, table: pa.Table, last: Ints, removed: Mask, existed: Mask, hashes: object) -> None:
        touched = np.flatnonzero(existed | ~removed)
        if len(touched) == 0:
            return
        rows = last[touched]
        picks = pa.array(rows)
        columns = {n: single(table.column(n)).take(picks) for n, _ in self.spec.columns}
        deleted = removed[touched]
        self.store.table(self.spec.layout).put(
            np.asarray(hashes)[rows], columns, deleted if deleted.any() else None
        )

    def _show(
        self, table: pa.Table, removes: Mask, groups: Groups, stored: dict[str, pa.Array], existed: Mask
    ) -> pa.Table:
        """Events in (key, arrival) order against the state each one met.

        Rows are numbered over the epoch's events, then the stored rows; -1 is no row.
        """
        size = len(table)
        events = groups.order if self.spec.every_event else groups.order[groups.starts + groups.sizes - 1]
        owners = groups.ids() if self.spec.every_event else np.arange(groups.count)
        now = np.where(removes[events], -1, events)
        first = np.ones(len(events), np.bool_)
        np.not_equal(owners[1:], owners[:-1], out=first[1:])
        met = np.where(existed[owners], size + owners, -1)
        previous = np.where(first, met, np.roll(now, 1))
        rows = self._all_rows(table, groups, stored)
        both = np.flatnonzero((now >= 0) & (previous >= 0))
        same = np.zeros(len(events), np.bool_)
        same[both] = rows_equal(rows, previous[both], rows, now[both])
        return self._changes(table, rows, events, previous, now, same)

    def _all_rows(self, table: pa.Table, groups: Groups, stored: dict[str, pa.Array]) -> list[pa.Array]:
        heads = pa.array(groups.heads)
        return [
            single(
                pa.chunked_array(
                    [
                        single(table.column(n)),
                        stored[n] if n in stored else table.column(n).take(heads).combine_chunks(),
                    ],
                    t,
                )
            )
            for n, t in self.spec.columns
        ]

    def _changes(
        self, table: pa.Table, rows: list[pa.Array], events: Ints, previous: Ints, now: Ints, same: Mask
    ) -> pa.Table:
        comes, goes = (now >= 0) & ~same, (previous >= 0) & ~same
        update = comes & goes
        shown_before = goes & (~update if not self.spec.update_before else True)
        picked = np.concatenate([previous[shown_before], now[comes]])
        kinds = np.concatenate(
            [
                np.where(update[shown_before], RowKind.UPDATE_BEFORE, RowKind.DELETE),
                np.where(update[comes], RowKind.UPDATE_AFTER, RowKind.INSERT),
            ]
        ).astype(np.int8)
        at = np.concatenate([np.flatnonzero(shown_before), np.flatnonzero(comes)])
        order = np.lexsort((1 - (kinds & 1), at))
        picks = pa.array(picked[order])
        columns = [c.take(picks) for c in rows] + [to_arrow(Vec(kinds[order]), pa.int8())]
        if self.spec.sequence:
            arrival = vector(table.column(SEQUENCE_COLUMN)).values[events]
            columns.append(to_arrow(Vec(arrival[at[order]]), pa.int64()))
        return pa.Table.from_arrays(columns, schema=self.spec.output_schema())
