"""Functions over windows of sorted rows: ranking, shifts, and aggregates over ROWS or RANGE frames.

Rows are sorted by partition, then by the window's order. Aggregates use the group aggregate's kernels: a
frame that starts with the partition is a running aggregate, and a frame that ends with it a running aggregate
in reverse. Other frames are materialized, which costs the sum of their sizes (in slices of bounded memory).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidemill.changelog.columns import Ints, Mask, Values, Vec, single, to_arrow, vector
from tidemill.changelog.grouping import Groups, group_rows
from tidemill.changelog.hashing import hash_columns
from tidemill.errors import NotSupportedError
from tidemill.operators.aggregates.api import Aggregate, AggregateSpec, Source
from tidemill.operators.aggregates.records import is_simple
from tidemill.operators.aggregates.registry import build, declared
from tidemill.operators.rows.grouped import GroupedRows

_SLICE = 4_000_000
_NO_KEYS = Source(keys=(), retracts=False)
_MIRRORED = {"FIRST_VALUE": "LAST_VALUE", "LAST_VALUE": "FIRST_VALUE"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """Bounds relative to the current row (``rows``) or its peers (RANGE), None unbounded; RANGE offsets
    are in the units of the one order column."""

    rows: bool
    lower: int | None
    upper: int | None


@dataclass(frozen=True, slots=True)
class Window:
    """Sorted rows: ``table`` holds the arguments; partitions are ``starts``; ``peers`` marks the first
    of rows that tie; ``order_values``: the one order column as ascending numbers, for RANGE offsets."""

    table: pa.Table
    starts: Ints
    peers: Mask
    order_values: Vec | None

    @property
    def size(self) -> int:
        return len(self.peers)

    @property
    def sizes(self) -> Ints:
        return np.diff(self.starts, append=self.size)

    def of_partition(self, values: Ints) -> Ints:
        return np.repeat(values, self.sizes)

    @property
    def place(self) -> Ints:
        """0-based place in the partition."""
        return np.arange(self.size) - self.of_partition(self.starts)

    def peer_bounds(self) -> tuple[Ints, Ints]:
        first = np.flatnonzero(self.peers)
        sizes = np.diff(first, append=self.size)
        return np.repeat(first, sizes), np.repeat(first + sizes, sizes)

    def argument(self, name: str) -> pa.Array:
        return single(self.table.column(name))


def evaluate(call: AggregateSpec, frame: Frame, window: Window) -> pa.Array:
    """The call's value for each row."""
    function = FUNCTIONS.get(call.function)
    if function is not None:
        return function(call, window).cast(call.result)
    return _aggregate(call, frame, window)


# -- ranking and shifts -----------------------------------------------------------------------------


def _row_number(call: AggregateSpec, window: Window) -> pa.Array:
    return to_arrow(Vec(window.place + 1), pa.int64())


def _rank(call: AggregateSpec, window: Window) -> pa.Array:
    return to_arrow(Vec(_ranks(window)), pa.int64())


def _dense_rank(call: AggregateSpec, window: Window) -> pa.Array:
    number = np.cumsum(window.peers.astype(np.int64))
    return to_arrow(Vec(number - window.of_partition(number[window.starts]) + 1), pa.int64())


def _percent_rank(call: AggregateSpec, window: Window) -> pa.Array:
    others = window.of_partition(np.maximum(window.sizes - 1, 1))
    return to_arrow(Vec((_ranks(window) - 1) / others), pa.float64())


def _cume_dist(call: AggregateSpec, window: Window) -> pa.Array:
    _, end = window.peer_bounds()
    share = (end - window.of_partition(window.starts)) / window.of_partition(window.sizes)
    return to_arrow(Vec(share), pa.float64())


def _ranks(window: Window) -> Ints:
    first, _ = window.peer_bounds()
    return first - window.of_partition(window.starts) + 1


def _ntile(call: AggregateSpec, window: Window) -> pa.Array:
    """Buckets as equal as can be, the larger ones first."""
    buckets = vector(window.argument(call.args[0])).values.astype(np.int64)
    size, position = window.of_partition(window.sizes), window.place
    small, large = size // buckets, size % buckets
    in_large = position < large * (small + 1)
    late = large + (position - large * (small + 1)) // np.maximum(small, 1)
    return to_arrow(Vec(np.where(in_large, position // (small + 1), late) + 1), pa.int64())


def _shift(direction: int) -> Callable[[AggregateSpec, Window], pa.Array]:
    def shifted(call: AggregateSpec, window: Window) -> pa.Array:
        values = window.argument(call.args[0])
        has_offset = np.ones(window.size, np.bool_)
        steps: Values = np.ones(window.size, np.int64)
        if len(call.args) > 1:
            offset = vector(window.argument(call.args[1]))
            steps, has_offset = offset.values.astype(np.int64), offset.mask()
        there = np.arange(window.size) + direction * steps
        start = window.of_partition(window.starts)
        inside = has_offset & (there >= start) & (there < start + window.of_partition(window.sizes))
        if len(call.args) < 3:
            return values.take(pa.array(np.where(inside, there, 0), mask=~inside))
        other = window.argument(call.args[2]).cast(values.type)
        both = single(pa.chunked_array([values, other]))
        return both.take(pa.array(np.where(inside, there, window.size + np.arange(window.size))))

    return shifted


FUNCTIONS: Mapping[str, Callable[[AggregateSpec, Window], pa.Array]] = {
    "ROW_NUMBER": _row_number,
    "RANK": _rank,
    "DENSE_RANK": _dense_rank,
    "PERCENT_RANK": _percent_rank,
    "CUME_DIST": _cume_dist,
    "NTILE": _ntile,
    "LAG": _shift(-1),
    "LEAD": _shift(1),
}


# -- aggregates over frames -------------------------------------------------------------------------


def check_supported(call: AggregateSpec) -> None:
    """NotSupportedError for a function that needs more state than its rows' values."""
    if call.function in FUNCTIONS:
        return
    if not all(is_simple(a) for a in build(call, _NO_KEYS).accumulators):
        raise NotSupportedError(f"{call.function} OVER (...) is not supported")


def _aggregate(call: AggregateSpec, frame: Frame, window: Window) -> pa.Array:
    lo, hi = frame_bounds(frame, window)
    if frame.lower is None:
        return _at(call, _running(call, window), hi - 1, hi > lo)
    if frame.upper is None:
        mirrored = replace(call, function=_MIRRORED.get(call.function, call.function))
        values = _running(mirrored, _reversed(window))
        return _at(call, values, window.size - 1 - lo, hi > lo)
    return of_ranges(call, window.table, lo, hi)


def _running(call: AggregateSpec, window: Window) -> pa.Array:
    """The aggregate from the partition's start up to each row."""
    return _values(call, window.table, Groups(np.arange(window.size), window.starts), running=True)


def _reversed(window: Window) -> Window:
    backwards = pa.array(np.arange(window.size)[::-1])
    ends = window.starts + window.sizes
    return replace(window, table=window.table.take(backwards), starts=window.size - ends[::-1])


def of_ranges(call: AggregateSpec, table: pa.Table, lo: Ints, hi: Ints) -> pa.Array:
    """The aggregate over the rows from each ``lo`` up to, without, its ``hi``."""
    sizes = np.maximum(hi - lo, 0)
    filled = np.flatnonzero(sizes)
    ends = np.cumsum(sizes[filled])
    total = int(ends[-1]) if len(ends) else 0
    cuts = np.searchsorted(ends, np.arange(_SLICE, total + _SLICE, _SLICE), side="right")
    parts = [
        _frames(call, table, lo[part], sizes[part]) for part in np.split(filled, np.unique(cuts)) if len(part)
    ]
    number = np.cumsum(sizes > 0) - 1
    values = single(pa.chunked_array(parts, call.result))
    return _at(call, values, number, sizes > 0)


def _frames(call: AggregateSpec, table: pa.Table, lo: Ints, sizes: Ints) -> pa.Array:
    starts = np.cumsum(sizes) - sizes
    rows = np.arange(int(sizes.sum())) - np.repeat(starts - lo, sizes)
    return _values(call, table.take(pa.array(rows)), Groups(np.arange(len(rows)), starts), running=False)


def _values(call: AggregateSpec, table: pa.Table, groups: Groups, *, running: bool) -> pa.Array:
    if len(table) == 0:
        return pa.nulls(0, call.result)
    aggregate: Aggregate = build(call, _NO_KEYS)
    rows = GroupedRows(table, groups, np.zeros(groups.count, np.uint64), [], None, running=running)
    if call.distinct:
        rows.set_row_weights(call.weight_key, _appearances(call, table, groups))
    state = {a.name: a.delta(rows) for a in aggregate.accumulators if is_simple(a)}
    return aggregate.result(state)


def _appearances(call: AggregateSpec, table: pa.Table, groups: Groups) -> Ints:
    """1 for the first appearance of a value in its group, otherwise 0."""
    identity = [to_arrow(Vec(groups.ids()), pa.int64()), *(single(table.column(a)) for a in call.args)]
    weights = np.zeros(len(table), np.int64)
    weights[group_rows(hash_columns(identity, len(table)), identity).heads] = 1
    return weights


def _at(call: AggregateSpec, values: pa.Array, row_numbers: Ints, there: Mask) -> pa.Array:
    if there.all():
        return values.take(pa.array(row_numbers))
    values_there = values.take(pa.array(np.where(there, row_numbers, 0), mask=~there))
    declaration = declared(call.function)
    return (
        values_there
        if declaration is None or declaration.over_no_rows is None
        else pc.fill_null(values_there, declaration.over_no_rows)
    )


# -- frames -----------------------------------------------------------------------------------------


def frame_bounds(frame: Frame, window: Window) -> tuple[Ints, Ints]:
    """First row of each row's frame, and the row after its last."""
    start = window.of_partition(window.starts)
    end = start + window.of_partition(window.sizes)
    measure = _row_bound if frame.rows else _range_bound
    lo = start if frame.lower is None else measure(window, frame.lower, False)
    hi = end if frame.upper is None else measure(window, frame.upper, True)
    return np.clip(lo, start, end), np.clip(hi, start, end)


def _row_bound(window: Window, offset: int, upper: bool) -> Ints:
    bound: Ints = np.arange(window.size) + offset + upper
    return bound


def _range_bound(window: Window, offset: int, upper: bool) -> Ints:
    """The row at which values are more than ``offset`` from the row's value. The row's peers are always
    within the bound, even if the value is NULL, NaN, infinite, or at the limit of its type."""
    first, end = window.peer_bounds()
    if offset == 0:
        return end if upper else first
    if window.order_values is None:
        raise NotSupportedError("RANGE with an offset needs exactly one numeric or time column in ORDER BY")
    valid = window.order_values.mask() & _is_number(window.order_values.values)
    limit, nearest = (end, np.maximum) if offset > 0 else (first, np.minimum)
    bound = limit.copy()
    rows = np.flatnonzero(valid)
    owner = window.of_partition(np.arange(len(window.starts)))[rows]
    values = window.order_values.values[rows]
    bound[rows] = nearest(_searched(owner, values, *_moved(values, offset, upper), rows), limit[rows])
    return bound


def _is_number(values: Values) -> Mask:
    """Whether values are no NaN. NaN sorts last in ascending order, and first in descending order."""
    is_number: Mask = ~np.isnan(values)
    return is_number


def _moved(values: Values, offset: int, upper: bool) -> tuple[Values, Mask]:
    """``values + offset``, and whether the bound is behind the rows of that value. On integer overflow it is
    behind or before all rows."""
    behind = np.full(len(values), upper)
    if values.dtype.kind == "f":
        return values + offset, behind
    ends = np.iinfo(np.int64)
    clipped = np.clip(values, ends.min - min(offset, 0), ends.max - max(offset, 0))
    return clipped + offset, np.where(clipped != values, offset > 0, behind)


def _searched(owner: Ints, values: Values, wanted_values: Values, behind: Mask, rows: Ints) -> Ints:
    """For each of ``wanted_values`` the row at which it would be inserted among its owner's rows."""
    size = len(rows)
    asks = np.concatenate([np.ones(size, np.int64), 2 * behind.astype(np.int64)])
    order = np.lexsort((asks, np.concatenate([values, wanted_values]), np.tile(owner, 2)))
    passed = np.cumsum(order < size)
    insert_row = np.empty(size, np.int64)
    questions = order >= size
    insert_row[order[questions] - size] = passed[questions]
    after = np.append(rows, rows[-1:] + 1)
    here = after[np.minimum(insert_row, size)]
    # Past the owner's last value the next row belongs to another owner or is NULL.
    last = insert_row > 0
    previous = rows[np.maximum(insert_row - 1, 0)]
    same = last & (owner[np.maximum(insert_row - 1, 0)] == owner)
    result: Ints = np.where(same, previous + 1, here)
    return result
