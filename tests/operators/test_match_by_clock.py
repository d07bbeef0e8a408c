"""MATCH_RECOGNIZE by processing time: rows are searched as they come, the clock says when WITHIN is over."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import pyarrow as pa

from tidemill.changelog.watermarks import END
from tidemill.operators.api import TIMER, EpochContext
from tidemill.operators.match.by_clock import MatchByClockSpec
from tidemill.operators.match.operator import MatchSpec
from tidemill.operators.match.pattern import Reference, Variable
from tidemill.operators.match.skip import Skip, SkipTo
from tidemill.operators.rows.ordering import OrderKey
from tidemill.state.store import StateStore

STAMP = pa.timestamp("us")
SPEC = MatchByClockSpec(
    inner=MatchSpec(
        columns=(("k", pa.int64()), ("t", STAMP), ("v", pa.int64())),
        keys=("k",),
        order=(OrderKey(name="t", ascending=True, nulls_first=False),),
        variables=(Variable(name="A"), Variable(name="B")),
        conditions=(),
        results=tuple(
            (name, kind, Reference(column=column, variable=variable))
            for name, kind, column, variable in (
                ("a", pa.int64(), "v", 0), ("b", pa.int64(), "v", 1), ("done", STAMP, "t", 1),
            )
        ),
        skip=Skip(to=SkipTo.PAST_LAST_ROW),
        within=1000,
    )
)  # fmt: skip


def test_within_by_the_clock(tmp_path: Path) -> None:
    """Epochs at these times bring these values; a pair is a match if they come within a second."""
    base: str | None = None
    shown, timers = [], []
    epochs = [(1000, [1]), (1500, [2]), (3000, [3]), (3999, []), (4500, [4]), (4500, [5, 6]), (9000, [])]
    for number, (time, values) in enumerate(epochs):
        store = StateStore.open(str(tmp_path), "match", 0, base, number)
        last = number == len(epochs) - 1
        context = EpochContext(epoch=number, time=time, partition=0, watermark=END if last else time - 1)
        rows = pa.table(
            {
                "k": pa.array([1] * len(values), pa.int64()),
                "t": pa.array([0] * len(values), STAMP),
                "v": pa.array(values, pa.int64()),
                "$seq": pa.array(values, pa.int64()),
            }
        )
        found = SPEC.step((rows,), store, context).to_pylist()
        shown += [
            (
                row["a"],
                row["b"],
                row["done"] == dt.datetime.fromtimestamp(time / 1000, dt.UTC).replace(tzinfo=None),
            )
            for row in found
        ]
        timers.append(context.notes.get(TIMER))
        base = store.flush()
    assert shown == [(1, 2, True), (4, 5, True)]
    assert timers == [1999, 1999, 3999, None, 5499, 5499, None]
