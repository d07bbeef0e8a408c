"""SINGLE_VALUE: the value of a scalar subquery; more than one row is an error, no row is NULL."""

from __future__ import annotations

import pyarrow as pa

from tidemill.errors import ExecutionError
from tidemill.operators.aggregates.api import Aggregate, AggregateSpec, Source, State
from tidemill.operators.aggregates.count import CountAccumulator
from tidemill.operators.aggregates.declaration import AggregateDeclaration, Direction, FlinkPhases, Merging
from tidemill.operators.aggregates.min_max import maximum


def single_value(spec: AggregateSpec, source: Source) -> Aggregate:
    """With at most one row the maximum is the value."""
    inner = maximum(spec, source)
    number = CountAccumulator(spec.canonical("ROWS"), (), spec.weight_key)

    def result(state: State) -> pa.Array:
        if (state[number.name][0].values > 1).any():
            raise ExecutionError("SingleValueAggFunction received more than one element.")
        return inner.result(state)

    return Aggregate(spec, (*inner.accumulators, number), result)


DECLARATIONS: tuple[AggregateDeclaration, ...] = (
    AggregateDeclaration(
        name="SINGLE_VALUE",
        build=single_value,
        ordered=False,
        merging=Merging.NEVER,
        parts=(),
        merged_by="SINGLE_VALUE",
        over_no_rows=None,
        ignores_distinct=False,
        counts_null=False,
        gives_row_value=False,
        gives_only_argument=False,
        direction=Direction.ANY,
        widens=True,
        phases=FlinkPhases(
            two_phase=False,
            split=True,
            bucketed=False,
            fixed_width=False,
            buffers=("single_value",),
            retract_buffers=("single_value",),
        ),
    ),
)
