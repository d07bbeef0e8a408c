"""DISTINCT: one state table per distinct argument list, shared by all calls over it.

A record per (key, value) has the value's count under each FILTER. For append-only input it only tells that
the value appeared, so only a first appearance writes. A call then sees appearances (+1) and disappearances
(-1) of values instead of rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from tidemill.changelog.columns import Ints, Mask, Vec, to_arrow
from tidemill.operators.aggregates.api import AggregateSpec, Source
from tidemill.operators.aggregates.registry import counts_null, ignores_distinct
from tidemill.operators.rows.grouped import GroupedRows, segmented_accumulate
from tidemill.operators.rows.pairs import Pairs, pair_rows
from tidemill.state.layout import Layout
from tidemill.state.lookup import Answers
from tidemill.state.store import StateStore


@dataclass(frozen=True, slots=True)
class DistinctView:
    """``filters``: the FILTER columns of the calls (None: no filter), one count column each. ``key``: the
    ``values_key`` of the calls."""

    args: tuple[str, ...]
    key: tuple[str, ...]
    filters: tuple[str | None, ...]
    retracts: bool
    nulls: bool
    layout: Layout

    def feed(self, rows: GroupedRows, store: StateStore) -> None:
        """Counts the epoch's rows, and sets in ``rows`` the weights that each call sees."""
        pairs = pair_rows(rows, self.args, self._relevant(rows))
        table = store.table(self.layout)
        if len(pairs.codes) == 0:
            for name in self.filters:
                rows.set_row_weights((name, self.key), np.zeros(len(rows.groups.order), np.int64))
            return
        stored = table.lookup(pairs.codes, pairs.identity)
        names = [field.name for field in self.layout.identity]
        columns = dict(zip(names, pairs.identity, strict=True))
        changed = np.full(len(pairs.codes), self.layout.ttl > 0)
        alive = np.zeros(len(pairs.codes), np.bool_)
        for name, column in zip(self.filters, self._columns, strict=True):
            before = _count(stored, column)
            after, weights = self._transitions(rows, pairs, name, before)
            rows.set_row_weights((name, self.key), weights)
            changed |= after != before
            alive |= after > 0
            if column is not None:
                columns[column] = to_arrow(Vec(after), pa.int64())
        picks = np.flatnonzero(changed)
        chosen = {name: column.take(pa.array(picks)) for name, column in columns.items()}
        table.put(pairs.codes[picks], chosen, None if alive.all() else ~alive[picks])

    @property
    def _columns(self) -> tuple[str | None, ...]:
        """The count column per filter; None if a record's existence is enough."""
        return tuple(field.name for field in self.layout.columns) or (None,)

    def _relevant(self, rows: GroupedRows) -> Mask | None:
        """The rows that count for at least one call."""
        keep: Mask | None = None
        if None not in self.filters:
            keep = np.logical_or.reduce([rows.filter(name) for name in self.filters if name is not None])
        if not self.nulls:
            for arg in self.args:
                valid = rows.valid(arg)
                if valid is not None:
                    keep = valid if keep is None else keep & valid
        return keep

    def _transitions(
        self, rows: GroupedRows, pairs: Pairs, name: str | None, before: Ints
    ) -> tuple[Ints, Ints]:
        """Counts after the epoch, and per row (in group order) whether a value appears or disappears."""
        weights = rows.row_weights((name, ()))
        transitions = np.zeros(len(rows.groups.order), np.int64)
        if rows.running or rows.ordered:
            after, steps, positions = _step_by_step(pairs, weights, before)
            transitions[positions] = steps
            return self._as_presence(after), transitions
        after = self._as_presence(before + pairs.sums(weights))
        transitions[pairs.heads] = (after > 0).astype(np.int64) - (before > 0)
        return after, transitions

    def _as_presence(self, counts: Ints) -> Ints:
        """For append-only input only the presence of the value is stored."""
        return np.maximum(counts, 0) if self.retracts else np.minimum(counts, 1)


def _step_by_step(pairs: Pairs, weights: Ints | None, before: Ints) -> tuple[Ints, Ints, Ints]:
    """Counts at the end; per row in pair order its transition, and its position in group order."""
    order, starts, sizes = pairs.groups.order, pairs.groups.starts, pairs.groups.sizes
    positions = pairs.places[order]
    row_weights = np.ones(len(order), np.int64) if weights is None else weights[positions]
    after = segmented_accumulate(np.add, row_weights, starts) + np.repeat(before, sizes)
    steps = (after > 0).astype(np.int64) - (after - row_weights > 0)
    return after[starts + sizes - 1], steps, positions


def _count(stored: Answers, column: str | None) -> Ints:
    if column is None:
        return stored.there.astype(np.int64)
    vec = stored.vec(column)
    return vec.values if vec.valid is None else np.where(vec.valid, vec.values, 0)


def distinct_views(calls: Sequence[AggregateSpec], source: Source) -> tuple[DistinctView, ...]:
    """One view per argument list of the DISTINCT calls (MIN and MAX need none)."""
    filters: dict[tuple[str, ...], dict[str | None, None]] = {}
    by_key: dict[tuple[str, ...], AggregateSpec] = {}
    nulls: set[tuple[str, ...]] = set()
    for call in calls:
        if call.distinct and not ignores_distinct(call):
            filters.setdefault(call.values_key, {})[call.filter] = None
            by_key.setdefault(call.values_key, call)
            if counts_null(call):
                nulls.add(call.values_key)
    return tuple(_view(by_key[key], tuple(names), source, key in nulls) for key, names in filters.items())


def _view(call: AggregateSpec, filters: tuple[str | None, ...], source: Source, nulls: bool) -> DistinctView:
    presence = filters == (None,) and not source.retracts
    values = tuple(pa.field(f"$value{i}", kind) for i, kind in enumerate(call.arg_types))
    since = f" SINCE {call.since}" if call.since else ""
    layout = Layout(
        name=f"DISTINCT({', '.join(call.args)}){since}",
        keys=source.keys,
        values=values,
        columns=() if presence else tuple(pa.field(_column(name), pa.int64()) for name in filters),
        ttl=source.ttl,
    )
    return DistinctView(call.args, call.values_key, filters, source.retracts, nulls, layout)


def _column(filter_: str | None) -> str:
    return "count" if filter_ is None else f"count FILTER {filter_}"
