"""COUNT(*), COUNT(x), and the counts that other aggregates need: sums of weights."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from tidemill.changelog.columns import Ints, Vec, to_arrow
from tidemill.operators.aggregates.api import Aggregate, AggregateSpec, Cells, Source, State, no_nulls
from tidemill.operators.aggregates.declaration import AggregateDeclaration, Direction, FlinkPhases, Merging
from tidemill.operators.rows.grouped import GroupedRows, WeightKey


@dataclass(frozen=True, slots=True)
class CountAccumulator:
    """Rows whose ``args`` are all not NULL, by weight."""

    name: str
    args: tuple[str, ...]
    weight_key: WeightKey

    @property
    def fields(self) -> tuple[pa.Field, ...]:
        return (pa.field(self.name, pa.int64()),)

    def delta(self, rows: GroupedRows) -> Cells:
        weights = count_weights(rows, self.args, self.weight_key)
        if weights is None:
            return (Vec(rows.counts()),)
        return (Vec(rows.reduce(np.add, weights)),)

    def fold(self, rows: GroupedRows) -> Cells:
        return (Vec(rows.reduce(np.add, no_nulls(rows.vec(self.name)).values)),)

    def merge(self, old: Cells, new: Cells) -> Cells:
        return (Vec(no_nulls(old[0]).values + new[0].values),)


def count_weights(rows: GroupedRows, args: tuple[str, ...], key: WeightKey) -> Ints | None:
    """Row weights with 0 if an argument is NULL; None: every row counts +1."""
    weights = rows.row_weights(key)
    for arg in args:
        valid = rows.valid(arg)
        if valid is not None:
            weights = valid.astype(np.int64) if weights is None else np.where(valid, weights, 0)
    return weights


def count_of(spec: AggregateSpec) -> CountAccumulator:
    """The count of the call's non-NULL arguments."""
    return CountAccumulator(spec.canonical("COUNT"), spec.args, spec.weight_key)


def count(spec: AggregateSpec, source: Source) -> Aggregate:
    accumulator = count_of(spec)

    def result(state: State) -> pa.Array:
        return to_arrow(Vec(state[accumulator.name][0].values), spec.result)

    return Aggregate(spec, (accumulator,), result)


DECLARATIONS: tuple[AggregateDeclaration, ...] = (
    AggregateDeclaration(
        name="COUNT",
        build=count,
        ordered=False,
        merging=Merging.ALWAYS,
        parts=(),
        merged_by="$SUM0",
        over_no_rows=0,
        ignores_distinct=False,
        counts_null=False,
        gives_row_value=False,
        gives_only_argument=False,
        direction=Direction.UP,
        widens=True,
        phases=FlinkPhases(
            two_phase=True,
            split=True,
            bucketed=False,
            fixed_width=True,
            buffers=("count",),
            retract_buffers=("count",),
        ),
    ),
    AggregateDeclaration(
        name="APPROX_COUNT_DISTINCT",
        build=None,
        ordered=False,
        merging=Merging.NEVER,
        parts=(),
        merged_by="APPROX_COUNT_DISTINCT",
        over_no_rows=0,
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
            buffers=("approx_count_distinct",),
            retract_buffers=("approx_count_distinct",),
        ),
    ),
)
