"""ORDER BY event time against a list that is looked through row by row."""

from __future__ import annotations

import itertools

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.tiers import examples
from tidemill.changelog.watermarks import END, NONE, Running
from tidemill.operators.api import EpochContext
from tidemill.operators.rows.ordering import OrderKey
from tidemill.operators.temporal_sort import TemporalSortSpec
from tidemill.state.store import StateStore

SPEC = TemporalSortSpec(
    columns=(("t", pa.timestamp("us")), ("v", pa.int64())), order=(OrderKey("t", True, True),)
)
Rows = list[tuple[int, int]]


def naive(rows: Rows, delay: int) -> Rows:
    """Flink's operator: a row waits for the watermark; it is late behind the last row that was given."""
    given: Rows = []
    waiting: Rows = []
    watermark, last = NONE, NONE
    for time, value in rows:
        if time > last:
            waiting.append((time, value))
        if time - delay > watermark:
            watermark = time - delay
            due = sorted((r for r in waiting if r[0] <= watermark), key=lambda r: r[0])
            waiting = [r for r in waiting if r[0] > watermark]
            given += due
            last = max([last, *(t for t, _ in due)])
    return given + sorted(waiting, key=lambda r: r[0])


@settings(max_examples=examples(150), deadline=None)
@given(
    times=st.lists(st.integers(-5, 30), max_size=25),
    delay=st.sampled_from([0, 3]),
    cuts=st.lists(st.integers(0, 25), max_size=4),
)
def test_as_row_by_row(
    times: list[int], delay: int, cuts: list[int], tmp_path_factory: pytest.TempPathFactory
) -> None:
    rows = [(time, number) for number, time in enumerate(times)]
    shown: Rows = []
    running, base, before = Running(), None, NONE
    edges = [0, *sorted(min(c, len(rows)) for c in cuts), len(rows)]
    root = _folder(tmp_path_factory)
    for epoch, (start, end) in enumerate(itertools.pairwise(edges), start=1):
        part = rows[start:end]
        marks = running.before(np.array([t - delay for t, _ in part], np.int64))
        table = pa.table(
            {
                "t": pa.array([t * 1000 for t, _ in part], pa.timestamp("us")),
                "v": pa.array([v for _, v in part], pa.int64()),
                "$seq": pa.array(range(start, end), pa.int64()),
                "$wm": pa.array(marks, pa.int64()),
            }
        )
        watermark = END if end == len(rows) and epoch == len(edges) - 1 else running.mark
        store = StateStore.open(root, "sort", 0, base, epoch, attempt=str(epoch))
        context = EpochContext(epoch=epoch, time=0, partition=0, watermark=watermark, before=before)
        output = SPEC.step((table,), store, context)
        base, before = store.flush(), watermark
        shown += zip(
            [t // 1000 for t in output.column("t").cast(pa.int64()).to_pylist()],
            output.column("v").to_pylist(),
            strict=True,
        )
    assert shown == naive(rows, delay)


def _folder(factory: pytest.TempPathFactory) -> str:
    return str(factory.mktemp("state"))
