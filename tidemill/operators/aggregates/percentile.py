"""PERCENTILE(value, percentage[, frequency]): linear interpolation over a group's sorted values.

The percentage is a constant, a number or an array. The kernel gets it as a column and keeps it in the record.
As in Flink and Hive, the position between neighbours is ``(n - 1) * percentage``.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa

from tidemill.changelog.columns import Mask, Values, Vec, single, to_arrow, vector
from tidemill.operators.aggregates.api import Aggregate, AggregateSpec, Source, State
from tidemill.operators.aggregates.arrivals import Bag
from tidemill.operators.aggregates.counts import CountsAccumulator
from tidemill.operators.aggregates.declaration import AggregateDeclaration, Direction, FlinkPhases, Merging
from tidemill.operators.aggregates.extreme import as_array
from tidemill.operators.aggregates.first_last import EndAccumulator


def percentile(spec: AggregateSpec, source: Source) -> Aggregate:
    value, fraction, *frequency = range(len(spec.args))
    chosen = (value, *frequency)
    counted = CountsAccumulator.of(
        replace(
            spec,
            args=tuple(spec.args[i] for i in chosen),
            arg_types=tuple(spec.arg_types[i] for i in chosen),
        ),
        source,
    )
    arg, kind = spec.args[fraction], spec.arg_types[fraction]
    name = replace(spec, args=(arg,), distinct=False, filter=None).canonical("PERCENTAGE")
    percentage = EndAccumulator(name, arg, kind, (None, ()), last=False)

    def result(state: State) -> pa.Array:
        fractions = as_array(state[percentage.name][0], kind)
        ranked = _Ranked.of(state[counted.name][0])
        if pa.types.is_list(kind):
            return _several(ranked, fractions, spec.result)
        numbers = vector(fractions.cast(pa.float64()))
        everyone = np.arange(len(fractions))
        there = ranked.present & numbers.mask()
        values = ranked.at(everyone, np.where(there, numbers.values, 0.0))
        return to_arrow(Vec(values, there), pa.float64()).cast(spec.result)

    return Aggregate(spec, (counted, percentage), result)


class _Ranked:
    """Values sorted within their group, with the number of copies up to and with each."""

    def __init__(self, values: Values, copies: Values, offsets: Values) -> None:
        self.values = values
        self.upto = np.cumsum(copies)
        before = np.concatenate([[0], self.upto])
        self.first = before[offsets[:-1]]
        self.count = before[offsets[1:]] - self.first
        self.present: Mask = self.count > 0

    @classmethod
    def of(cls, bag: Bag) -> _Ranked:
        assert bag.counts is not None
        values = vector(bag.columns[0].cast(pa.float64())).values
        copies = bag.counts
        if len(bag.columns) > 1:
            copies = copies * np.maximum(vector(bag.columns[1].cast(pa.int64())).values, 0)
        order = np.lexsort((values, bag.owners()))
        return cls(values[order], copies[order], bag.offsets)

    def at(self, groups: Values, fractions: Values) -> Values:
        """The percentile per query; undefined for empty groups."""
        if len(self.values) == 0:
            return np.zeros(len(groups))
        position = np.maximum(self.count[groups] - 1, 0) * fractions
        low = np.floor(position).astype(np.int64)
        high = np.ceil(position).astype(np.int64)
        a, b = self._value(groups, low), self._value(groups, high)
        between: Values = a + (b - a) * (position - low)
        return between

    def _value(self, groups: Values, position: Values) -> Values:
        index = np.searchsorted(self.upto, self.first[groups] + position, side="right")
        percentiles: Values = self.values[np.minimum(index, len(self.values) - 1)]
        return percentiles


def _several(ranked: _Ranked, fractions: pa.Array, kind: pa.DataType) -> pa.Array:
    """An array of percentiles per group, in the order of the percentages."""
    fractions = single(pa.chunked_array([fractions]))
    sizes = np.where(ranked.present, vector(fractions.value_lengths().fill_null(0)).values, 0)
    picks = pa.array(np.flatnonzero(ranked.present))
    flat = vector(fractions.take(picks).flatten().cast(pa.float64())).values
    groups = np.repeat(np.arange(len(sizes)), sizes)
    offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int32)
    values = to_arrow(Vec(ranked.at(groups, flat)), pa.float64()).cast(kind.value_type)
    mask = np.append(~ranked.present, False)
    return pa.ListArray.from_arrays(pa.array(offsets, mask=mask), values, type=kind)


DECLARATIONS: tuple[AggregateDeclaration, ...] = (
    AggregateDeclaration(
        name="PERCENTILE",
        build=percentile,
        ordered=False,
        merging=Merging.NEVER,
        parts=(),
        merged_by="PERCENTILE",
        over_no_rows=None,
        ignores_distinct=False,
        counts_null=False,
        gives_row_value=False,
        gives_only_argument=False,
        direction=Direction.ANY,
        widens=False,
        phases=FlinkPhases(
            two_phase=True,
            split=False,
            bucketed=False,
            fixed_width=False,
            buffers=("percentile",),
            retract_buffers=("percentile",),
        ),
    ),
)
