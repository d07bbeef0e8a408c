"""COUNT(DISTINCT v) in windows by keys that share their values: an entry per value and slice, with a bit per
key (see ``operators.shared_distinct``).

Rows are partitioned by the other key columns and the value. So a window emits a row per key with rows in this
partition, and an aggregation above adds up the rows of all partitions.

TUMBLE and HOP merge the entries of a window's slices when it fires. CUMULATE emits at the end of each step
the step's new values, as rows of that time, and an aggregation by the same windows adds them up. The emitted
values of a window are kept until its last step is over; a slice's entries are removed with the step.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa

from tidemill.changelog.batch import contiguous, with_types
from tidemill.changelog.columns import Hashes, Ints, Mask, Vec, single, to_arrow
from tidemill.changelog.hashing import hash_columns
from tidemill.operators.api import EpochContext
from tidemill.operators.shared_distinct.shared_keys import BITS, Bits, SharedKeys, bits_of
from tidemill.operators.window.aggregate import WindowAggregateSpec
from tidemill.operators.window.store.partial_aggregates import END, ends_of
from tidemill.operators.window.store.sliced import Slices
from tidemill.state.layout import Layout
from tidemill.state.run import DUE
from tidemill.state.store import StateStore
from tidemill.state.timeline import TimeTable, by_time_order

_BY = (END,)


@dataclass(frozen=True, slots=True)
class ValueBits:
    """The entries of slices, or of windows, as pieces: ``$end``, then the columns of ``shared`` entries."""

    shared: SharedKeys

    @property
    def layout(self) -> Layout:
        return self._named("values")

    @property
    def given(self) -> Layout:
        """The emitted values of cumulating windows, by their last end."""
        return self._named("given")

    def _named(self, name: str) -> Layout:
        shared = self.shared
        return Layout(name=name, keys=shared.keys, values=shared.words, columns=(shared.bits,), by_time=True)

    @property
    def schema(self) -> pa.Schema:
        return pa.schema([pa.field(END, pa.int64()), *self.shared.schema])

    def cut(self, rows: pa.Table, ends: Ints, chosen: Mask) -> pa.Table:
        """The values of the rows ``chosen``, each once in its slice."""
        rows = rows.select(list(self.shared.read)).append_column(END, to_arrow(Vec(ends), pa.int64()))
        if not chosen.all():
            rows = rows.take(pa.array(np.flatnonzero(chosen)))
        rows = contiguous(with_types(rows, self.shared.types))
        return self.shared.entries(rows, _BY).select(self.schema.names)

    def add(self, pieces: pa.Table, slices: TimeTable) -> None:
        if len(pieces):
            self._joined(pieces, slices, np.ones(len(pieces), np.bool_))

    def _joined(self, pieces: pa.Table, kept: TimeTable, stays: Mask) -> Bits:
        """Puts distinct ``pieces`` to those ``kept``, but for those that do not stay: the bits that were
        there."""
        ends, codes = ends_of(pieces), self._codes(pieces)
        order = by_time_order(ends, codes)
        pieces, ends, codes = contiguous(pieces.take(pa.array(order))), ends[order], codes[order]
        columns = {name: single(pieces.column(name)) for name in self.shared.identity}
        stored = kept.lookup(ends, codes, list(columns.values()))
        bits = bits_of(pieces)
        before = np.where(stored.there, stored.vec(BITS).values, 0).astype(bits.dtype)
        new = np.flatnonzero((bits & ~before > 0) & stays[order])
        put = {name: column.take(pa.array(new)) for name, column in columns.items()}
        put[BITS] = to_arrow(Vec((bits | before)[new]), self.shared.bits.type)
        kept.put(ends[new], codes[new], put)
        there = np.empty_like(before)
        there[order] = before
        return there

    def _codes(self, pieces: pa.Table) -> Hashes:
        keys = [single(pieces.column(f.name)) for f in self.shared.keys]
        words = [single(pieces.column(f.name)) for f in self.shared.words]
        return self.layout.codes(hash_columns(keys, len(pieces)), words)

    def folded(self, pieces: pa.Table) -> pa.Table:
        return self.shared.folded(contiguous(pieces), _BY)

    def stored(self, entries: pa.Table) -> pa.Table:
        names = [DUE if name == END else name for name in self.schema.names]
        return entries.select(names).rename_columns(self.schema.names).cast(self.schema)

    def together(self, ended: pa.Table, fresh: pa.Table) -> pa.Table:
        return pa.concat_tables([ended, fresh])

    def first(self, pieces: pa.Table, last: Ints, kept: TimeTable, upto: int) -> pa.Table:
        """``pieces`` (distinct) of slices whose windows end at ``last``, with the bits that the window did
        not have: neither an earlier slice nor an earlier result of the window has them. If the window
        continues beyond ``upto``, its results have these bits from then on."""
        windows = pieces.set_column(0, END, to_arrow(Vec(last), pa.int64()))
        groups = self.shared.groups(windows, _BY)
        order = groups.order[np.lexsort((ends_of(pieces)[groups.order], groups.ids()))]
        bits = bits_of(pieces)[order]
        own = np.arange(len(order)) - np.repeat(groups.starts, groups.sizes)
        upto_here = _upto(bits, own)
        total = upto_here[np.append(groups.starts[1:], len(order)) - 1] if len(order) else bits
        ended = self.shared.with_bits(windows.take(pa.array(order[groups.starts])), total)
        before = self._joined(ended, kept, ends_of(ended) > upto)
        earlier = np.where(own > 0, np.roll(upto_here, 1), 0).astype(bits.dtype)
        new = bits & ~earlier & ~np.repeat(before, groups.sizes)
        rows = np.flatnonzero(new)
        return self.shared.with_bits(pieces.take(pa.array(order[rows])), new[rows])


@dataclass(frozen=True, kw_only=True)
class SharedValuesSpec(WindowAggregateSpec):
    """``calls``: the one number of values, of whatever keys are ``shared``."""

    shared: SharedKeys

    @cached_property
    def values(self) -> ValueBits:
        return ValueBits(self.shared)

    @property
    def evolving(self) -> tuple[Layout, ...]:
        """The one call has its values in a form that no other shares."""
        return ()

    @property
    def fingerprint(self) -> str:
        facts = f"shared-values {self.values.layout.schema} {self.shared.known} {self.windows.on_disk}"
        return hashlib.sha256(facts.encode()).hexdigest()[:16]

    def step(self, inputs: tuple[pa.Table, ...], state: StateStore, epoch: EpochContext) -> pa.Table:
        """The numbers of values of the windows that fire, or of the steps that are over."""
        (table,) = inputs
        slices = self.slices(self.values, state, epoch)
        rows, ends, after = self._counted(table, slices.at.shut_before, epoch)
        if self.cumulates:
            pieces = self._steps(rows, self._open(ends, after), slices, state)
        else:
            fired = slices.fired(after, lambda chosen: self.values.cut(rows, ends, chosen))
            pieces = self.values.folded(fired)
        if len(pieces) == 0:
            return self.output_schema().empty_table()
        counts = self.shared.counted(contiguous(pieces), self.calls[0].name, _BY)
        return self._with_windows(counts, ends_of(counts), epoch)

    def _steps(self, rows: pa.Table, ends: Ints, slices: Slices, state: StateStore) -> pa.Table:
        """The new values of the steps that are over."""
        values = self.values
        values.add(values.cut(rows, ends, np.ones(len(ends), np.bool_)), slices.slices)
        emitted = state.timeline(values.given)
        over = values.stored(slices.slices.take_due(slices.at.upto))
        new_values = over
        if len(over):
            last = self.windows.last_ends(ends_of(over))
            new_values = values.first(contiguous(over), last, emitted, slices.at.upto)
        emitted.forget_due(slices.at.upto)
        return new_values


def _upto(bits: Bits, positions: Ints) -> Bits:
    """The OR of each row's bits and the bits before it in its segment. ``positions``: of rows in their
    segment."""
    bits_so_far, step = bits.copy(), 1
    while step <= positions.max(initial=0):
        bits_so_far |= np.where(positions >= step, np.roll(bits_so_far, step), 0).astype(bits.dtype)
        step *= 2
    return bits_so_far
