"""Windows whose state is built of a batch aggregation, against a job that has read the rows itself."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.operators import differential_session_aggregate as sessions
from tests.operators import differential_window_aggregate as windows
from tests.runtime.state_tables.partitioned_job import OPERATOR, PartitionedJob
from tests.tiers import examples
from tidemill.changelog.watermarks import END, NONE
from tidemill.connectors.worker_errors import WorkerError
from tidemill.errors import NotSupportedError
from tidemill.operators.aggregates.api import AggregateSpec
from tidemill.operators.window.aggregate import WindowAggregateSpec
from tidemill.operators.window.assigners.assigner import Assigner
from tidemill.operators.window.clock import Clock
from tidemill.operators.window.output import WindowColumns
from tidemill.state.run import DUE

GAP, TABLE = 5, "window_aggregate_1"
Row = tuple[str | None, int, int]
"""Its key, time and value."""
_PLAIN = (windows.COUNT, windows.SUM, windows.LARGEST)
_DISTINCT = (windows.COUNT, windows.SUM, windows.DISTINCT)
_LIST = AggregateSpec(function="LISTAGG", name="l", args=("k",), arg_types=(pa.string(),), result=pa.string())
keys = st.sampled_from(["a", "b", "c", None])
rows_strategy = st.lists(st.tuples(keys, st.integers(-12, 30), st.integers(0, 3)), max_size=14)


def spec_of(assigner: Assigner, calls: tuple[AggregateSpec, ...]) -> WindowAggregateSpec:
    return WindowAggregateSpec(
        keys=(("k", pa.string()),),
        calls=calls,
        time="t",
        clock=Clock(),
        columns=WindowColumns(start="ws", end="we"),
        output=("k", *(c.name for c in calls), "ws", "we"),
        windows=assigner,
    )


def table_of(rows: Iterable[tuple[Row, int]]) -> pa.Table:
    """Rows and the watermarks before them."""
    made = [(key, value, time * 1000, number, mark) for number, ((key, time, value), mark) in enumerate(rows)]
    types = (pa.string(), pa.int64(), pa.int64(), pa.int64(), pa.int64())
    columns = zip(*made, strict=True) if made else [[]] * len(types)
    arrays = [pa.array(list(c), kind) for c, kind in zip(columns, types, strict=True)]
    table = pa.table(arrays, names=["k", "v", "t", "$seq", "$wm"])
    return table.set_column(2, "t", table.column("t").cast(pa.timestamp("us")))


def aggregated(rows: Iterable[Row], group: Callable[[Row], Any]) -> dict[Any, dict[str, Any]]:
    """As SQL would: by key and group."""
    found: dict[Any, list[int]] = {}
    for row in rows:
        found.setdefault((row[0], group(row)), []).append(row[2])
    return {
        (key, of): {"k": key, "COUNT(*)": len(v), "SUM(v)": sum(v), "MAX(v)": max(v), "of": of, "values": v}
        for (key, of), v in found.items()
    }


def history(spec: WindowAggregateSpec, rows: list[Row], watermark: int) -> dict[str, list[dict[str, Any]]]:
    """The slices that are in an open window, and the values of each."""
    ended = watermark + 1 if watermark != NONE else NONE

    def end(row: Row) -> int:
        return int(spec.windows.slice_ends(np.array([row[1]]))[0])

    kept = [row for row in rows if any(e > ended for e in windows.ends_of(spec.windows, row[1]))]
    records = [{**found, DUE: found["of"]} for found in aggregated(kept, end).values()]
    values = Counter((row[0], end(row), row[2]) for row in kept)
    sets = [{"k": k, DUE: due, "v": v, "$weight": n} for (k, due, v), n in values.items()]
    last = {due: int(spec.windows.last_ends(np.array([due]))[0]) for _, due, _ in values}
    first: dict[Any, int] = {}
    for key, due, value in values:
        known = first.setdefault((key, last[due], value), due)
        first[key, last[due], value] = min(known, due)
    firsts = [{"k": k, DUE: e, "$value0": v, "$first": due} for (k, e, v), due in first.items()]
    return {TABLE: records, f"{TABLE}_sets0": sets, f"{TABLE}_firsts0": firsts}


def sessions_of(rows: list[Row], watermark: int) -> list[dict[str, Any]]:
    """The sessions that are open."""
    found: list[dict[str, Any]] = []
    for key in {row[0] for row in rows}:
        made: list[list[Row]] = []
        for row in sorted((r for r in rows if r[0] == key), key=lambda r: r[1]):
            if not made or row[1] > made[-1][-1][1] + GAP:
                made.append([])
            made[-1].append(row)
        for own in made:
            if own[-1][1] + GAP - 1 > watermark:
                ((record),) = aggregated(own, lambda _: 0).values()
                found.append({**record, "$start": own[0][1], "$last": own[-1][1] + GAP})
    return found


def values_of(records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The values of sessions, with how often each is there."""
    return [
        {**record, "v": value, "$weight": count}
        for record in records
        for value, count in Counter(record["values"]).items()
    ]


def went_on(job: PartitionedJob, rows: list[Row], cuts: list[int], delay: int) -> list[list[tuple[Any, ...]]]:
    """What is shown in each epoch. Watermarks are ``delay`` behind the rows."""
    mark, shown = job.mark, []
    for first, last in pairwise([0, *sorted(c for c in cuts if c <= len(rows)), len(rows), len(rows)]):
        marked = []
        for row in rows[first:last]:
            marked.append((row, mark))
            mark = max(mark, row[1] - delay)
        output = job.step(table_of(marked), END if first == len(rows) else mark)
        names = [n for n in output.column_names if not n.startswith("$")]
        shown.append(sorted((tuple(r.values()) for r in output.select(names).to_pylist()), key=repr))
    return shown


def check_goes_on(
    job: PartitionedJob,
    built: PartitionedJob,
    history: list[Row],
    later: list[Row],
    watermark: int,
    cuts: list[int],
    delay: int,
) -> None:
    job.step(table_of((row, NONE) for row in history), watermark)
    assert went_on(built, later, cuts, delay) == went_on(job, later, cuts, delay)
    assert built.late == job.late


KINDS = [
    *((name, _PLAIN) for name in ("hop", "hop, each slice in many", "hop that divides nothing", "tumble")),
    *((name, _PLAIN) for name in ("cumulate", "cumulate with a short step", "hop by months")),
    *((name, _DISTINCT) for name in ("tumble", "hop", "hop that divides nothing")),
    *((name, _DISTINCT) for name in ("cumulate", "cumulate with a short step", "cumulate by months")),
]


@pytest.mark.parametrize(("name", "calls"), KINDS)
@settings(max_examples=examples(40), deadline=None)
@given(
    before=rows_strategy,
    later=rows_strategy,
    watermark=st.integers(-14, 30),
    cuts=st.lists(st.integers(0, 14), max_size=3),
    delay=st.sampled_from([0, 2, 9]),
    partitions=st.tuples(*[st.sampled_from([1, 3])] * 3),
)
def test_windows_go_on_as_those_that_read_the_rows(
    name: str,
    calls: tuple[AggregateSpec, ...],
    before: list[Row],
    later: list[Row],
    watermark: int,
    cuts: list[int],
    delay: int,
    partitions: tuple[int, int, int],
) -> None:
    """Also rows that are late for some of their windows, or for all."""
    spec = spec_of(windows.WINDOWS[name], calls)
    with TemporaryDirectory() as place:
        job = PartitionedJob(Path(place) / "read", spec, ("k",), partitions[0])
        new = PartitionedJob(Path(place) / "built", spec, ("k",), partitions[1])
        built = new.built(history(spec, before, watermark), watermark)
        built.partitions = partitions[2]
        check_goes_on(job, built, before, later, watermark, cuts, delay)


@pytest.mark.parametrize("calls", [_PLAIN, _DISTINCT])
@settings(max_examples=examples(60), deadline=None)
@given(
    before=rows_strategy,
    later=rows_strategy,
    watermark=st.integers(-14, 30) | st.just(NONE),
    cuts=st.lists(st.integers(0, 14), max_size=3),
    delay=st.sampled_from([0, 2, 9]),
    partitions=st.tuples(*[st.sampled_from([1, 3])] * 3),
)
def test_sessions_go_on_as_those_that_read_the_rows(
    calls: tuple[AggregateSpec, ...],
    before: list[Row],
    later: list[Row],
    watermark: int,
    cuts: list[int],
    delay: int,
    partitions: tuple[int, int, int],
) -> None:
    spec = sessions.spec_of(calls, (("k", pa.string()),), False)
    records = sessions_of(before, watermark)
    if calls is _DISTINCT:
        records = values_of(records)
    with TemporaryDirectory() as place:
        job = PartitionedJob(Path(place) / "read", spec, ("k",), partitions[0])
        new = PartitionedJob(Path(place) / "built", spec, ("k",), partitions[1])
        built = new.built({TABLE: records}, watermark, GAP)
        built.partitions = partitions[2]
        check_goes_on(job, built, before, later, watermark, cuts, delay)


def test_slices_that_no_open_window_has_are_refused(tmp_path: Path) -> None:
    """HOP of ten by five: a slice up to 5 is in the windows that end at 5 and 10."""
    spec = spec_of(windows.WINDOWS["hop"], _PLAIN)
    record = {"k": "a", "COUNT(*)": 1, "SUM(v)": 1, "MAX(v)": 1}
    job = PartitionedJob(tmp_path, spec, ("k",), 1)
    assert job.built({TABLE: [{**record, DUE: 5}]}, 8).slices
    for due, mark, why in (
        (5, 9, "column 'due' has passed: all windows that have the rows ended before the watermark"),
        (7, 8, "column 'due' must be the end of a slice of the windows, in milliseconds"),
    ):
        with pytest.raises(WorkerError, match=why):
            job.built({TABLE: [{**record, DUE: due}]}, mark)
    with pytest.raises(NotSupportedError, match="without a watermark: its windows share rows") as raised:
        job.new_tables(NONE)
    assert "tidemill.savepoint.watermark" in str(raised.value.hint)


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ([{}, {}], "Two rows for 'window_aggregate_1' have the same key"),
        ([{}, {"v": 2, "$start": 12}], "column 'session_start' touches another session of its key"),
        ([{"$weight": 0}], "column '(weight)' must be 1 or more"),
        ([{"$last": None}], "column 'session_end' must not be NULL"),
        ([{"$last": 13}], "column 'session_end' must be 5 ms or more after"),
        ([{"$start": 3, "$last": 8}], "column 'session_end' has passed"),
    ],
)
def test_what_breaks_the_sessions_of_values_is_refused(
    changed: list[dict[str, Any]], why: str, tmp_path: Path
) -> None:
    spec = sessions.spec_of(_DISTINCT, (("k", pa.string()),), False)
    job = PartitionedJob(tmp_path, spec, ("k",), 1)
    row = {"k": "a", "v": 1, "$start": 10, "$last": 17, "$weight": 1}
    assert job.built({TABLE: [row, {**row, "v": 2}, {**row, "k": "b"}]}, 8, GAP).slices
    with pytest.raises(WorkerError, match=why):
        job.built({TABLE: [{**row, **change} for change in changed]}, 8, GAP)


def test_values_lie_in_slices_that_are_given(tmp_path: Path) -> None:
    spec = spec_of(windows.WINDOWS["tumble"], _DISTINCT)
    job = PartitionedJob(tmp_path, spec, ("k",), 1)
    (values,) = (name for name in job.new_tables(NONE) if name != TABLE)
    record = {"k": "a", "COUNT(*)": 1, "SUM(v)": 1, DUE: 13}
    value = {"k": "a", "v": 1, DUE: 13}
    assert [c.name for c in job.new_tables(NONE)[TABLE].columns] == ["k", "due", "COUNT(*)", "SUM(v)"]
    assert job.built({TABLE: [record], values: [value]}, NONE).slices
    for given_values, why in (
        ([{**value, DUE: 23}], "lacks slices and keys that the table"),
        ([{**value, "k": None}], "lacks slices and keys that the table"),
        ([value, value], "have the same key"),
        ([{**value, "v": None}], "column 'v' must not be NULL"),
        ([{**value, DUE: 12}], "column 'due' must be the end of a window"),
    ):
        with pytest.raises(WorkerError, match=why):
            job.built({TABLE: [record], values: given_values}, NONE)


def test_a_slice_counts_the_values_that_it_has_first(tmp_path: Path) -> None:
    """CUMULATE of 12 by 4: values of the steps before belong to the slice that is given."""
    spec = spec_of(windows.WINDOWS["cumulate"], (windows.COUNT, windows.DISTINCT))
    job = PartitionedJob(tmp_path, spec, ("k",), 1)
    values = f"{TABLE}_firsts0"
    record = {"k": "a", "COUNT(*)": 3, DUE: 8}
    firsts = [{"k": "a", "$value0": n, "$first": due, DUE: 12} for n, due in ((1, 4), (2, 8))]
    job = job.built({TABLE: [record, {**record, DUE: 12}], values: firsts}, 8)
    output = job.step(table_of([]), END)
    assert output.select(["n", "d"]).to_pylist() == [{"n": 6, "d": 2}]
    for changed, why in (
        ({"$first": 12}, "lacks slices and keys that the table"),
        ({"$first": 3}, r"column '\$first' must be the end of a step of the window"),
        ({"$first": 16}, r"column '\$first' must be the end of a step of the window"),
        ({"$first": None}, r"column '\$first' must not be NULL"),
        ({DUE: 8}, "column 'due' must be the end of the last window of the value"),
    ):
        with pytest.raises(WorkerError, match=why):
            job.built({TABLE: [record], values: [{**firsts[0], **changed}]}, 7)


@pytest.mark.parametrize(
    ("name", "calls", "why"),
    [
        ("cumulate", (windows.TOTAL,), "CUMULATE keeps more of DISTINCT values than their number"),
        (
            "hop",
            (_LIST,),
            "more than accumulators and values",
        ),
    ],
)
def test_what_cannot_be_right_is_refused(
    name: str, calls: tuple[AggregateSpec, ...], why: str, tmp_path: Path
) -> None:
    job = PartitionedJob(tmp_path, spec_of(windows.WINDOWS[name], calls), ("k",), 1)
    with pytest.raises(NotSupportedError, match=f"State of {TABLE}, windows, cannot be built: .*{why}"):
        job.new_tables(5)
    assert OPERATOR in job.identity().schema
