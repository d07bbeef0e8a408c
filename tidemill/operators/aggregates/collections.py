"""LISTAGG, ARRAY_AGG and COLLECT: a group's values as one text, array or multiset."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidemill.changelog.columns import Ints, Mask, Vec, to_arrow
from tidemill.operators.aggregates.api import Aggregate, AggregateSpec, Source, State
from tidemill.operators.aggregates.arrivals import ArrivalsAccumulator, Bag
from tidemill.operators.aggregates.counts import CountsAccumulator
from tidemill.operators.aggregates.declaration import AggregateDeclaration, Direction, FlinkPhases, Merging
from tidemill.types.entries import by_key


def lists_of(bag: Bag, values: pa.Array, kind: pa.DataType, missing: Mask | None = None) -> pa.Array:
    """One list per group, NULL if ``missing``."""
    # A list is NULL if its own offset is.
    offsets = pa.array(bag.offsets.astype(np.int32), mask=_but_last(missing))
    return pa.ListArray.from_arrays(offsets, values, type=kind)


def _but_last(missing: Mask | None) -> Mask | None:
    return None if missing is None else np.append(missing, False)


def array_agg(spec: AggregateSpec, source: Source) -> Aggregate:
    """NULLs are elements unless ``NULLS`` says IGNORE NULLS; no row gives NULL."""
    nulls = dict(spec.options).get("NULLS") != "IGNORE NULLS"
    arrivals = ArrivalsAccumulator.of(spec, source, nulls=nulls)

    def result(state: State) -> pa.Array:
        bag: Bag = state[arrivals.name][0]
        return lists_of(bag, bag.columns[0].cast(spec.result.value_type), spec.result, bag.sizes == 0)

    return Aggregate(spec, (arrivals,), result)


def listagg(spec: AggregateSpec, source: Source) -> Aggregate:
    """The non-NULL texts with ``SEPARATOR`` between them; NULL if there are none."""
    separator = dict(spec.options).get("SEPARATOR", ",")
    arrivals = ArrivalsAccumulator.of(spec, source, nulls=False)

    def result(state: State) -> pa.Array:
        bag: Bag = state[arrivals.name][0]
        return joined(bag, bag.columns[0], separator, bag.sizes == 0)

    return Aggregate(spec, (arrivals,), result)


def joined(bag: Bag, texts: pa.Array, separator: str, missing: Mask | None = None) -> pa.Array:
    """The texts of each group with ``separator`` between them."""
    lists = lists_of(bag, texts.cast(pa.string()), pa.list_(pa.string()), missing)
    return pc.binary_join(lists, separator)


def collect(spec: AggregateSpec, source: Source) -> Aggregate:
    """A multiset: (value, number of copies) entries; values that are NULL are left out."""
    counted = CountsAccumulator.of(spec, source)

    def result(state: State) -> pa.Array:
        bag: Bag = state[counted.name][0]
        assert bag.counts is not None
        entry = spec.result.value_type
        counts: Ints = bag.counts.astype(np.int32)
        entries = pa.StructArray.from_arrays(
            [bag.columns[0].cast(entry.field(0).type), to_arrow(Vec(counts), pa.int32())],
            fields=[entry.field(0), entry.field(1)],
        )
        return by_key(lists_of(bag, entries, spec.result))

    return Aggregate(spec, (counted,), result)


DECLARATIONS: tuple[AggregateDeclaration, ...] = (
    AggregateDeclaration(
        name="LISTAGG",
        build=listagg,
        ordered=True,
        merging=Merging.NEVER,
        parts=(),
        merged_by="LISTAGG",
        over_no_rows=None,
        ignores_distinct=False,
        counts_null=False,
        gives_row_value=False,
        gives_only_argument=False,
        direction=Direction.ANY,
        widens=False,
        phases=FlinkPhases(
            two_phase=True,
            split=True,
            bucketed=False,
            fixed_width=False,
            buffers=("accDelimiter", "concatAcc"),
            retract_buffers=("listagg",),
        ),
    ),
    AggregateDeclaration(
        name="ARRAY_AGG",
        build=array_agg,
        ordered=True,
        merging=Merging.NEVER,
        parts=(),
        merged_by="ARRAY_AGG",
        over_no_rows=None,
        ignores_distinct=False,
        counts_null=True,
        gives_row_value=False,
        gives_only_argument=False,
        direction=Direction.ANY,
        widens=False,
        phases=FlinkPhases(
            two_phase=True,
            split=False,
            bucketed=False,
            fixed_width=False,
            buffers=("array_agg",),
            retract_buffers=("array_agg",),
        ),
    ),
    AggregateDeclaration(
        name="COLLECT",
        build=collect,
        ordered=False,
        merging=Merging.NEVER,
        parts=(),
        merged_by="COLLECT",
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
            buffers=("collect",),
            retract_buffers=("collect",),
        ),
    ),
)
