"""DISTINCT in cumulating windows: stores the first slice of each value, and no set per slice.

A value counts in every window from its first slice on. So a slice adds the values that appear in it first,
and these merge as rows do. If a row with the value comes to an earlier slice, the value moves there: a row is
added to the earlier slice, and retracted from the later slice, which was not emitted yet. Cost: one lookup
and at most one write per distinct value of an epoch. A window's values are removed with its end, without
being read.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pyarrow as pa

from tidemill.changelog.columns import Hashes, Ints, Vec, single, to_arrow, validity, vector
from tidemill.changelog.grouping import Groups, group_rows
from tidemill.changelog.hashing import hash_columns, mix
from tidemill.operators.aggregates.api import AggregateSpec
from tidemill.operators.aggregates.registry import merges
from tidemill.operators.group_aggregate.operator import GroupAggregateSpec
from tidemill.operators.rows.grouped import WeightKey
from tidemill.operators.window.store.partial_aggregates import END
from tidemill.state.layout import Layout
from tidemill.state.store import StateStore
from tidemill.state.timeline import by_time_order

FIRST = "$first"
_SIGN = "$sign"
_NUMBER = pa.int64()
_APART = np.uint64(0xA0761D6478BD642F)


@dataclass(frozen=True, kw_only=True)
class View:
    """The distinct values of ``args`` among rows that pass ``filter``; ``column`` is TRUE in the rows that
    tell which are new in their slice. ``name``: of no other view of the operator."""

    name: str
    args: tuple[tuple[str, pa.DataType], ...]
    filter: str | None

    @property
    def column(self) -> str:
        return f"$values{self.name}"

    def layout(self, keys: tuple[pa.Field, ...]) -> Layout:
        """The layout of values, by the end of the last window that contains them."""
        return Layout(
            name=f"firsts{self.name}",
            keys=keys,
            values=tuple(pa.field(f"$value{i}", kind) for i, (_, kind) in enumerate(self.args)),
            columns=(pa.field(FIRST, _NUMBER),),
            by_time=True,
            since=FIRST,
        )


@dataclass(frozen=True, kw_only=True)
class FirstSliceDistinct:
    """``group``: the aggregation by ``$end`` and ``keys`` as it was asked for."""

    group: GroupAggregateSpec
    keys: tuple[tuple[str, pa.DataType], ...]

    @cached_property
    def views(self) -> Mapping[WeightKey, View]:
        by_key: dict[WeightKey, View] = {}
        for call in self.group.calls:
            if call.distinct and call.weight_key not in by_key:
                args = tuple(zip(call.args, call.arg_types, strict=True))
                # By older rules a number is the name.
                name = str(len(by_key)) if call.since is None else call.canonical("")
                by_key[call.weight_key] = View(name=name, args=args, filter=call.filter)
        return by_key

    @cached_property
    def summing(self) -> GroupAggregateSpec:
        """The aggregation that counts values as rows."""
        return replace(self.group, calls=tuple(map(self._over_values, self.group.calls)))

    @property
    def serves(self) -> bool:
        """Whether all calls can be computed this way."""
        every = all(_serves(call) for call in self.group.calls if call.distinct)
        return every and not self.group.retracts and self.separates

    @property
    def separates(self) -> bool:
        """Whether the calls without DISTINCT can be kept as accumulators, apart from the values."""
        return bool(self.views) and self.summing.folds

    def _over_values(self, call: AggregateSpec) -> AggregateSpec:
        if not call.distinct:
            return call
        return replace(call, distinct=False, filter=self.views[call.weight_key].column)

    def plain(self, rows: pa.Table) -> pa.Table:
        """``rows`` for the summing aggregation; they add no values."""
        return self._with(rows, None, np.zeros(len(rows), np.int64))

    def added(self, rows: pa.Table, last: Ints, state: StateStore) -> pa.Table:
        """The pieces that ``rows`` add to the numbers of values. ``$end``: their slices. ``last``: the ends
        of their last windows."""
        return self.told([self._of(view, rows, last, state) for view in self.views.values()])

    def told(self, parts: list[pa.Table]) -> pa.Table:
        """The pieces of rows that stand for values."""
        table = pa.concat_tables([p for p in parts if len(p)] or parts[:1])
        if len(table) == 0:
            return self.summing.local_schema().empty_table().drop_columns(["$hash"])
        grouped = self.summing.grouped(self.summing.ordered(table))
        signs = grouped.vec(_SIGN).values
        for call in self.summing.calls:
            # These rows do not count as rows, only as values.
            tells = np.zeros(len(table), np.bool_)
            if call.filter is not None and call.filter in self._columns:
                tells = grouped.filter(call.filter)
            grouped.set_row_weights(call.weight_key, np.where(tells, signs, 0))
        grouped.set_row_weights((None, ()), np.zeros(len(table), np.int64))
        return self.summing.combined(grouped).drop_columns(["$hash"])

    def told_once(self, rows: pa.Table, segments: Ints) -> pa.Table:
        """The pieces that ``rows`` add to the numbers of values: each value at its first row in its segment.
        The segments are in order."""
        return self.told([self._once(view, rows, segments) for view in self.views.values()])

    def _once(self, view: View, rows: pa.Table, segments: Ints) -> pa.Table:
        there = counting(view, rows)
        values = [single(rows.column(name)).take(pa.array(there)) for name, _ in view.args]
        columns = [pa.array(segments[there]), *values]
        heads = there[group_rows(hash_columns(columns, len(there)), columns).heads]
        return self._with(rows.take(pa.array(heads)), view, np.ones(len(heads), np.int64))

    def forget(self, upto: int, state: StateStore) -> None:
        for view in self.views.values():
            state.timeline(view.layout(self.fields)).take_due(upto)

    @cached_property
    def _columns(self) -> frozenset[str]:
        return frozenset(view.column for view in self.views.values())

    @cached_property
    def fields(self) -> tuple[pa.Field, ...]:
        return tuple(pa.field(name, kind) for name, kind in self.keys)

    def _of(self, view: View, rows: pa.Table, last: Ints, state: StateStore) -> pa.Table:
        layout = view.layout(self.fields)
        table = state.timeline(layout)
        there = counting(view, rows)
        if len(there) < len(rows):
            rows, last = rows.take(pa.array(there)), last[there]
        own = [single(rows.column(name)) for name, _ in self.keys]
        values = [single(rows.column(name)) for name, _ in view.args]
        hashes = hash_columns(own, len(rows))
        groups = _grouped(last, own, hashes, values)
        slices = vector(single(rows.column(END))).values[groups.order] if len(rows) else last
        first = np.minimum.reduceat(slices, groups.starts) if len(rows) else last
        heads = groups.heads
        codes = layout.codes(hashes[heads], [c.take(pa.array(heads)) for c in values])
        order = by_time_order(last[heads], codes)
        heads, first, codes = heads[order], first[order], codes[order]
        identity = [c.take(pa.array(heads)) for c in (*own, *values)]
        stored = table.lookup(last[heads], codes, identity)
        before = stored.vec(FIRST).values
        moved = np.flatnonzero(~stored.there | (first < before))
        columns = dict(zip([f.name for f in (*layout.keys, *layout.values)], identity, strict=True))
        columns_to_store = {name: column.take(pa.array(moved)) for name, column in columns.items()}
        columns_to_store[FIRST] = to_arrow(Vec(first[moved]), _NUMBER)
        table.put(last[heads][moved], codes[moved], columns_to_store)
        left = moved[stored.there[moved]]
        picks = np.concatenate([heads[moved], heads[left]])
        ends = np.concatenate([first[moved], before[left]])
        signs = np.repeat(np.array([1, -1], np.int64), [len(moved), len(left)])
        column_index = rows.schema.get_field_index(END)
        changed_rows = rows.take(pa.array(picks)).set_column(column_index, END, pa.array(ends, _NUMBER))
        return self._with(changed_rows, view, signs)

    def telling(self, rows: pa.Table, view: View) -> pa.Table:
        """``rows`` of nothing but ``$end``, keys and values, as rows that tell these."""
        for call in self.summing.calls:
            for name, kind in zip(call.args, call.arg_types, strict=True):
                if name not in rows.schema.names:
                    rows = rows.append_column(name, pa.nulls(len(rows), kind))
        # Always in the same order, whatever is already stored.
        args = [name for call in self.summing.calls for name in call.args]
        rows = rows.select(list(dict.fromkeys((END, *(name for name, _ in self.keys), *args))))
        return self._with(rows, view, np.ones(len(rows), np.int64))

    def _with(self, rows: pa.Table, view: View | None, signs: Ints) -> pa.Table:
        """``rows`` that tell values of ``view``, new (+1) or gone from their slices (-1)."""
        if "$hash" in rows.schema.names:
            rows = rows.drop_columns(["$hash"])
        for other in self.views.values():
            rows = rows.append_column(other.column, pa.array(np.full(len(rows), other == view)))
        return rows.append_column(_SIGN, to_arrow(Vec(signs), _NUMBER))


def _grouped(last: Ints, own: list[pa.Array], hashes: Hashes, values: list[pa.Array]) -> Groups:
    """Groups rows by (``last``, ``own``, ``values``). ``hashes``: of ``own``. If all rows are in one window,
    ``last`` is not compared."""
    columns = [*own, *values]
    # The factor keeps hashes apart even if a key equals its value.
    codes = hash_columns(values, len(last)) + hashes * _APART
    if len(last) and (last != last[0]).any():
        columns = [pa.array(last), *columns]
        codes = mix(codes) + last.view(np.uint64) * _APART
    return group_rows(codes, columns)


def _serves(call: AggregateSpec) -> bool:
    """Whether the call allows values to move between slices.

    MIN and MAX allow it: a value that is retracted from a later slice is still in the window.
    """
    return merges(call, lambda kind: pa.types.is_integer(kind) or pa.types.is_decimal(kind))


def counting(view: View, rows: pa.Table) -> Ints:
    """The rows that pass the filter, and have all arguments."""
    counts = np.ones(len(rows), np.bool_)
    if view.filter is not None:
        passes = vector(single(rows.column(view.filter)))
        counts &= passes.values & passes.mask()
    for name, _ in view.args:
        valid = validity(single(rows.column(name)))
        if valid is not None:
            counts &= valid
    return np.flatnonzero(counts)
