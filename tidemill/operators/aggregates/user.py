"""A user's aggregate function: its accumulator is one column of the record, of the declared type.

The function goes on from the stored accumulator, row by row in arrival order or batch by batch; FILTER
and DISTINCT have decided before which rows count.
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from tidemill.errors import ValidationError
from tidemill.operators.aggregates.api import Aggregate, AggregateSpec, Cells, Source, State
from tidemill.operators.aggregates.extreme import as_array, as_cell
from tidemill.operators.rows.grouped import GroupedRows, WeightKey
from tidemill.types.physical import arrow_type
from tidemill.user_functions.aggregates import BoundAggregate


@dataclass(frozen=True, slots=True)
class UserAccumulator:
    name: str
    function: BoundAggregate
    args: tuple[str, ...]
    weight_key: WeightKey

    @property
    def kind(self) -> pa.DataType:
        return arrow_type(self.function.accumulator)

    @property
    def fields(self) -> tuple[pa.Field, ...]:
        return (pa.field(self.name, self.kind),)

    def step(self, old: Cells, rows: GroupedRows) -> Cells:
        columns = [rows.array(a) for a in self.args]
        weights = rows.row_weights(self.weight_key)
        accumulators = as_array(old[0], self.kind)
        return (as_cell(self.function.advanced(accumulators, columns, rows.groups.ids(), weights)),)


def user_aggregate(spec: AggregateSpec, function: BoundAggregate, source: Source) -> Aggregate:
    """ValidationError if the input retracts rows and the function has no ``retract``."""
    if source.retracts and not function.retracts:
        raise ValidationError(
            f"Could not find an implementation method 'retract' of the aggregate function '{function.name}',"
            " whose input takes rows back",
            hint="Give the class a method retract(accumulator, *args), or aggregate an append-only input.",
        )
    accumulator = UserAccumulator(spec.canonical(function.name), function, spec.args, spec.weight_key)

    def result(state: State) -> pa.Array:
        return function.results(as_array(state[accumulator.name][0], accumulator.kind))

    return Aggregate(spec, (accumulator,), result)
