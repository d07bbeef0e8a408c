"""MIN and MAX as accumulators.

For append-only input the state is only the extreme. For retracting input there is also a multiset of (key,
value). If a retraction removes the last copy of the extreme, the group's values are read again; any other
change only compares.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from tidemill.changelog.columns import Ints, Mask, single, vector
from tidemill.changelog.values import ranks
from tidemill.operators.aggregates.api import Aggregate, AggregateSpec, Cells, Source, State
from tidemill.operators.aggregates.count import count_weights
from tidemill.operators.aggregates.declaration import AggregateDeclaration, Direction, FlinkPhases, Merging
from tidemill.operators.aggregates.extreme import Extreme, as_array, as_cell
from tidemill.operators.aggregates.running_extreme import HeldValues, running_least
from tidemill.operators.aggregates.value_table import VALUE, ValueTable
from tidemill.operators.rows.grouped import GroupedRows, WeightKey
from tidemill.state.layout import Layout
from tidemill.state.table import StateTable


@dataclass(frozen=True, slots=True)
class ExtremeAccumulator:
    """Over append-only input: the extreme so far, NULL before the first value."""

    name: str
    arg: str
    weight_key: WeightKey
    extreme: Extreme

    @property
    def fields(self) -> tuple[pa.Field, ...]:
        return (pa.field(self.name, self.extreme.kind),)

    def delta(self, rows: GroupedRows) -> Cells:
        return self._per_group(rows, self.arg, counting(rows, self.arg, self.weight_key))

    def fold(self, rows: GroupedRows) -> Cells:
        return self._per_group(rows, self.name, rows.valid(self.name))

    def merge(self, old: Cells, new: Cells) -> Cells:
        return (self.extreme.better(old[0], new[0]),)

    def _per_group(self, rows: GroupedRows, column: str, mask: Mask | None) -> Cells:
        return (self.extreme.best(rows.array(column), mask, rows.reduce),)


@dataclass(frozen=True, slots=True)
class RetractableExtremeAccumulator:
    """Over retracting input: the extreme in the record, all values in a state table."""

    name: str
    arg: str
    weight_key: WeightKey
    extreme: Extreme
    values: ValueTable

    @property
    def fields(self) -> tuple[pa.Field, ...]:
        return (pa.field(self.name, self.extreme.kind),)

    @property
    def layout(self) -> Layout:
        return self.values.layout

    def advance(self, old: Cells, rows: GroupedRows, table: StateTable) -> tuple[Cells, Cells]:
        """The extremes before and after the epoch's rows; the table takes the rows' weights."""
        self.values.put(rows, table)
        weights = count_weights(rows, (self.arg,), self.weight_key)
        column = rows.array(self.arg)
        came = None if weights is None else weights > 0
        new = self.extreme.best(column, came, rows.reduce)
        after = as_array(self.extreme.better(old[0], new), self.extreme.kind)
        if weights is None or not (weights < 0).any():
            return old, (as_cell(after),)
        went = self.extreme.best(column, weights < 0, rows.reduce)
        shaken = np.flatnonzero(self.extreme.beats(went, as_cell(after)))
        if len(shaken):
            after = self._recomputed(after, shaken, rows, table)
        return old, (as_cell(after),)

    def run(self, old: Cells, rows: GroupedRows, table: StateTable) -> Cells:
        """The extreme after each row (``rows`` in group order)."""
        kind = self.extreme.kind
        before, stored = self._values_before(old, rows, table)
        weights = count_weights(rows, (self.arg,), self.weight_key)
        column = rows.array(self.arg)
        both = single(pa.chunked_array([stored, column], kind))
        codes = ranks(both) if self.extreme.least else ~ranks(both)
        n = len(stored)
        ones = np.ones(len(column), np.int64)
        least, present = running_least(
            codes[n:],
            ones if weights is None else weights,
            rows.groups.starts,
            HeldValues(codes[:n], before.counts, before.offsets),
        )
        valued = np.flatnonzero(vector(both.is_valid()).values)
        valued = valued[np.argsort(codes[valued], kind="stable")]
        best_rows = np.searchsorted(codes[valued], least)
        picks = np.zeros(len(least), np.int64)
        picks[present] = valued[best_rows[present]]
        return (as_cell(both.take(pa.array(picks, mask=~present))),)

    def take_in(self, rows: GroupedRows, table: StateTable) -> None:
        """The table takes the rows' weights."""
        self.values.put(rows, table)

    def _values_before(self, old: Cells, rows: GroupedRows, table: StateTable) -> tuple[HeldValues, pa.Array]:
        """The values before the epoch: all values of groups whose extreme may go, otherwise only the
        extreme."""
        weights = count_weights(rows, (self.arg,), self.weight_key)
        went = np.zeros(len(rows.groups.order), np.bool_) if weights is None else weights < 0
        extremes = as_array(old[0], self.extreme.kind)
        there = vector(extremes.is_valid()).values
        starts = rows.groups.starts
        worst = self.extreme.best(rows.array(self.arg), went, lambda f, v: f.reduceat(v, starts))
        shaken = np.flatnonzero(there & self.extreme.beats(worst, old[0]))
        owners, entries = table.gather(rows.hashes[shaken], [k.take(pa.array(shaken)) for k in rows.keys])
        calm = np.setdiff1d(np.flatnonzero(there), shaken)
        owners = np.concatenate([shaken[owners], calm])
        order = np.argsort(owners, kind="stable")
        stored = single(pa.chunked_array([single(entries.column(VALUE)), extremes.take(pa.array(calm))]))
        counts = np.concatenate([self.values.counts(entries), np.ones(len(calm), np.int64)])
        offsets = np.searchsorted(owners[order], np.arange(rows.groups.count + 1))
        picked = stored.take(pa.array(order))
        return HeldValues(np.zeros(0, np.int64), counts[order], offsets), picked

    def _recomputed(self, after: pa.Array, shaken: Ints, rows: GroupedRows, table: StateTable) -> pa.Array:
        """``after`` with the extremes of the groups ``shaken`` read from the table; negative counts are no
        values."""
        keys = [key.take(pa.array(shaken)) for key in rows.keys]
        owners, entries = table.gather(rows.hashes[shaken], keys)
        there = np.flatnonzero(self.values.counts(entries) > 0)
        owners, values = owners[there], single(entries.column(VALUE)).take(pa.array(there))
        source_row = np.arange(len(after))
        source_row[shaken] = len(after) + len(shaken)
        kind = self.extreme.kind
        chunks = [after, pa.nulls(len(shaken), kind)]
        if len(owners):
            starts = np.flatnonzero(np.diff(owners, prepend=-1))
            best = as_array(self.extreme.best(values, None, lambda f, v: f.reduceat(v, starts)), kind)
            chunks[1] = best
            source_row[shaken] = len(after) + len(best)
            source_row[shaken[owners[starts]]] = len(after) + np.arange(len(best))
        chunks.append(pa.nulls(1, kind))
        return single(pa.chunked_array(chunks, kind)).take(pa.array(source_row))


def counting(rows: GroupedRows, arg: str, key: WeightKey) -> Mask | None:
    """The rows that count for a call over ``arg``; None: all rows."""
    weights = count_weights(rows, (arg,), key)
    return None if weights is None else weights > 0


def _extreme(least: bool, spec: AggregateSpec, source: Source) -> Aggregate:
    """DISTINCT changes nothing for MIN and MAX and is dropped."""
    kind = spec.arg_types[0]
    key: WeightKey = (spec.filter, ())
    name = _plain(spec).canonical("MIN" if least else "MAX")
    extreme = Extreme(least, kind)
    if source.retracts:
        table = _plain(spec).canonical("VALUES")
        values = ValueTable.of(table, source, spec.args, spec.arg_types, key)
        stateful = RetractableExtremeAccumulator(name, spec.args[0], key, extreme, values)
        return Aggregate(spec, (stateful,), lambda state: _column(state, name, kind, spec.result))
    simple = ExtremeAccumulator(name, spec.args[0], key, extreme)
    return Aggregate(spec, (simple,), lambda state: _column(state, name, kind, spec.result))


def _column(state: State, name: str, kind: pa.DataType, result: pa.DataType) -> pa.Array:
    array = as_array(state[name][0], kind)
    return array if array.type == result else array.cast(result)


def _plain(spec: AggregateSpec) -> AggregateSpec:
    return replace(spec, distinct=False, options=(), user=None)


def minimum(spec: AggregateSpec, source: Source) -> Aggregate:
    return _extreme(True, spec, source)


def maximum(spec: AggregateSpec, source: Source) -> Aggregate:
    return _extreme(False, spec, source)


DECLARATIONS: tuple[AggregateDeclaration, ...] = (
    AggregateDeclaration(
        name="MIN",
        build=minimum,
        ordered=False,
        merging=Merging.ALWAYS,
        parts=(),
        merged_by="MIN",
        over_no_rows=None,
        ignores_distinct=True,
        counts_null=False,
        gives_row_value=True,
        gives_only_argument=True,
        direction=Direction.DOWN,
        widens=True,
        phases=FlinkPhases(
            two_phase=True,
            split=True,
            bucketed=True,
            fixed_width=True,
            buffers=("min",),
            retract_buffers=("min",),
        ),
    ),
    AggregateDeclaration(
        name="MAX",
        build=maximum,
        ordered=False,
        merging=Merging.ALWAYS,
        parts=(),
        merged_by="MAX",
        over_no_rows=None,
        ignores_distinct=True,
        counts_null=False,
        gives_row_value=True,
        gives_only_argument=True,
        direction=Direction.UP,
        widens=True,
        phases=FlinkPhases(
            two_phase=True,
            split=True,
            bucketed=True,
            fixed_width=True,
            buffers=("max",),
            retract_buffers=("max",),
        ),
    ),
)
