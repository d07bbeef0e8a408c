"""FIRST_VALUE and LAST_VALUE: the first or last value that is not NULL, by arrival.

Over append-only input the state is only the value: epochs are in arrival order, and rows of an epoch in
``$seq`` order. Over retracting input the remaining values are kept in order.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from tidemill.changelog.columns import single, vector
from tidemill.operators.aggregates.api import Aggregate, AggregateSpec, Cells, Source, State
from tidemill.operators.aggregates.arrivals import ArrivalsAccumulator, Bag
from tidemill.operators.aggregates.count import count_weights
from tidemill.operators.aggregates.declaration import AggregateDeclaration, Direction, FlinkPhases, Merging
from tidemill.operators.aggregates.extreme import as_array, as_cell
from tidemill.operators.rows.grouped import GroupedRows, WeightKey


@dataclass(frozen=True, slots=True)
class EndAccumulator:
    """``last``: LAST_VALUE, else FIRST_VALUE."""

    name: str
    arg: str
    kind: pa.DataType
    weight_key: WeightKey
    last: bool

    @property
    def fields(self) -> tuple[pa.Field, ...]:
        return (pa.field(self.name, self.kind),)

    def delta(self, rows: GroupedRows) -> Cells:
        weights = count_weights(rows, (self.arg,), self.weight_key)
        positions = np.arange(len(rows.groups.order))
        outside = -1 if self.last else len(positions)
        counts = np.ones(len(positions), np.bool_) if weights is None else weights > 0
        end_positions = rows.reduce(
            np.maximum if self.last else np.minimum, np.where(counts, positions, outside)
        )
        there = end_positions != outside
        picks = pa.array(np.where(there, end_positions, 0), mask=None if there.all() else ~there)
        return (as_cell(rows.array(self.arg).take(picks)),)

    def fold(self, rows: GroupedRows) -> Cells:
        raise NotImplementedError("a value by arrival cannot be pre-aggregated")

    def merge(self, old: Cells, new: Cells) -> Cells:
        a, b = as_array(old[0], self.kind), as_array(new[0], self.kind)
        preferred, other = (b, a) if self.last else (a, b)
        if preferred.null_count == 0:
            return (as_cell(preferred),)
        n = len(preferred)
        there = vector(preferred.is_valid()).values
        both = single(pa.chunked_array([preferred, other], self.kind))
        return (as_cell(both.take(pa.array(np.where(there, np.arange(n), np.arange(n, 2 * n))))),)


def _end(last: bool) -> Callable[[AggregateSpec, Source], Aggregate]:
    def build(spec: AggregateSpec, source: Source) -> Aggregate:
        if source.retracts:
            return _end_of_arrivals(spec, source, last)
        name = spec.canonical("LAST_VALUE" if last else "FIRST_VALUE")
        end = EndAccumulator(name, spec.args[0], spec.arg_types[0], spec.weight_key, last)

        def result(state: State) -> pa.Array:
            return as_array(state[name][0], end.kind).cast(spec.result)

        return Aggregate(spec, (end,), result)

    return build


def _end_of_arrivals(spec: AggregateSpec, source: Source, last: bool) -> Aggregate:
    arrivals = ArrivalsAccumulator.of(spec, source, nulls=False)

    def result(state: State) -> pa.Array:
        bag: Bag = state[arrivals.name][0]
        rows = bag.offsets[1:] - 1 if last else bag.offsets[:-1]
        empty = bag.sizes == 0
        picks = pa.array(np.where(empty, 0, rows), mask=empty)
        return (
            bag.columns[0].take(picks).cast(spec.result)
            if len(bag.columns[0])
            else pa.nulls(len(empty), spec.result)
        )

    return Aggregate(spec, (arrivals,), result)


first_value = _end(last=False)
last_value = _end(last=True)


def _declaration(name: str, build: Callable[[AggregateSpec, Source], Aggregate]) -> AggregateDeclaration:
    buffers = (name.lower(),)
    return AggregateDeclaration(
        name=name,
        build=build,
        ordered=True,
        merging=Merging.NEVER,
        parts=(),
        merged_by=name,
        over_no_rows=None,
        ignores_distinct=False,
        counts_null=False,
        gives_row_value=True,
        gives_only_argument=False,
        direction=Direction.ANY,
        widens=True,
        phases=FlinkPhases(
            two_phase=False,
            split=True,
            bucketed=True,
            fixed_width=False,
            buffers=buffers,
            retract_buffers=buffers,
        ),
    )


DECLARATIONS: tuple[AggregateDeclaration, ...] = (
    _declaration("FIRST_VALUE", first_value),
    _declaration("LAST_VALUE", last_value),
)
