"""JSON_ARRAYAGG and JSON_OBJECTAGG: a group's values as JSON text, by arrival.

The members of JSON_OBJECTAGG are sorted by key; the same key twice, or a NULL key, is an error, as in Flink.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidemill.changelog.columns import Vec, to_arrow, vector
from tidemill.changelog.grouping import group_rows
from tidemill.changelog.hashing import hash_columns
from tidemill.errors import ExecutionError
from tidemill.functions.text.json_functions import json_values
from tidemill.operators.aggregates.api import Aggregate, AggregateSpec, Source, State
from tidemill.operators.aggregates.arrivals import ArrivalsAccumulator, Bag, bag_of
from tidemill.operators.aggregates.collections import joined
from tidemill.operators.aggregates.declaration import AggregateDeclaration, Direction, FlinkPhases, Merging


def json_arrayagg(spec: AggregateSpec, source: Source) -> Aggregate:
    """Default ABSENT ON NULL."""
    options = dict(spec.options)
    nulls = options.get("NULLS") == "NULL ON NULL"
    raw = bool(options.get("RAW"))
    arrivals = ArrivalsAccumulator.of(spec, source, nulls=nulls)

    def result(state: State) -> pa.Array:
        bag: Bag = state[arrivals.name][0]
        return _wrapped("[", joined(bag, json_values(bag.columns[0], raw), ","), "]")

    return Aggregate(spec, (arrivals,), result)


def json_objectagg(spec: AggregateSpec, source: Source) -> Aggregate:
    """Default NULL ON NULL."""
    options = dict(spec.options)
    absent = options.get("NULLS") == "ABSENT ON NULL"
    raw = bool(options.get("RAW"))
    arrivals = ArrivalsAccumulator.of(spec, source, nulls=True)

    def result(state: State) -> pa.Array:
        bag: Bag = state[arrivals.name][0]
        keys, values = bag.columns
        _check_keys(bag, keys)
        owners = bag.owners()
        if absent and values.null_count:
            not_null = np.flatnonzero(vector(values.is_valid()).values)
            picks = pa.array(not_null)
            keys, values, owners = keys.take(picks), values.take(picks), owners[not_null]
        by_key = pc.sort_indices(
            pa.table({"owner": owners, "key": keys}), [("owner", "ascending"), ("key", "ascending")]
        )
        keys, values = keys.take(by_key), values.take(by_key)
        bag = bag_of(owners, [keys, values], len(bag.offsets) - 1)
        members = pc.binary_join_element_wise(json_values(keys, False), json_values(values, raw), ":")
        return _wrapped("{", joined(bag, members, ","), "}")

    return Aggregate(spec, (arrivals,), result)


def _wrapped(left: str, inner: pa.Array, right: str) -> pa.Array:
    return pc.binary_join_element_wise(left, inner, right, "")


def _check_keys(bag: Bag, keys: pa.Array) -> None:
    if keys.null_count:
        raise ExecutionError("JSON_OBJECTAGG: a key is NULL. Keys must not be NULL.")
    identity = [to_arrow(Vec(bag.owners()), pa.int64()), keys]
    groups = group_rows(hash_columns(identity, len(keys)), identity)
    if groups.count < len(keys):
        again = int(groups.order[groups.starts[np.flatnonzero(groups.sizes > 1)[0]]])
        raise ExecutionError(
            f"Key '{keys[again].as_py()}' is already present. Duplicate keys are not allowed in "
            "JSON_OBJECTAGG. Please ensure that keys are unique."
        )


DECLARATIONS: tuple[AggregateDeclaration, ...] = (
    AggregateDeclaration(
        name="JSON_ARRAYAGG",
        build=json_arrayagg,
        ordered=True,
        merging=Merging.NEVER,
        parts=(),
        merged_by="JSON_ARRAYAGG",
        over_no_rows="[]",
        ignores_distinct=False,
        counts_null=False,
        gives_row_value=False,
        gives_only_argument=False,
        direction=Direction.ANY,
        widens=False,
        phases=FlinkPhases(
            two_phase=False,
            split=False,
            bucketed=False,
            fixed_width=False,
            buffers=("json_arrayagg",),
            retract_buffers=("json_arrayagg",),
        ),
    ),
    AggregateDeclaration(
        name="JSON_OBJECTAGG",
        build=json_objectagg,
        ordered=True,
        merging=Merging.NEVER,
        parts=(),
        merged_by="JSON_OBJECTAGG",
        over_no_rows="{}",
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
            buffers=("json_objectagg",),
            retract_buffers=("json_objectagg",),
        ),
    ),
)
