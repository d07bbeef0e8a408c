"""A window without a gap is forgotten by its state TTL, with all that was counted of it."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from tidemill.changelog.hashing import hash_columns
from tidemill.changelog.watermarks import NONE
from tidemill.operators.aggregates.api import AggregateSpec
from tidemill.operators.api import EpochContext
from tidemill.operators.window.clock import Clock
from tidemill.operators.window.dynamic import DynamicAggregateSpec
from tidemill.operators.window.output import WindowColumns
from tidemill.state.store import StateStore

I64 = pa.int64()
SPEC = DynamicAggregateSpec(
    keys=(("k", pa.string()),),
    calls=(AggregateSpec(function="COUNT", name="n", args=(), arg_types=(), result=I64),),
    time="t",
    slide=10,
    state_ttl=100,
    clock=Clock(),
    columns=WindowColumns(start="ws", end="we"),
    output=("k", "n", "ws", "we"),
)


def rows(*came: tuple[str, int]) -> pa.Table:
    keys = pa.array([k for k, _ in came], pa.string())
    return pa.table(
        {
            "k": keys,
            "t": pa.array([t * 1000 for _, t in came], I64).cast(pa.timestamp("us")),
            "$wm": pa.array([NONE] * len(came), I64),
            "$seq": pa.array(range(len(came)), I64),
            "$hash": pa.array(hash_columns([keys], len(came))),
        }
    )


def test_a_window_goes_with_its_ttl_and_begins_anew(tmp_path: Path) -> None:
    """Per epoch: its rows, the processing time, the watermark after it; and what is shown."""
    epochs = [
        (rows(("a", 1), ("b", 2)), 0, 9, {("a", 0, 10, 1), ("b", 0, 10, 1)}),
        (rows(("a", 12)), 90, 19, {("a", 0, 20, 2), ("b", 0, 20, 1)}),
        # Nothing has come of b for longer than its TTL.
        (rows(), 150, 29, {("a", 0, 30, 2)}),
        (rows(("b", 33)), 160, 39, {("a", 0, 40, 2), ("b", 30, 40, 1)}),
        (rows(), 400, 49, set()),
    ]
    manifest, before = None, NONE
    for number, (table, time, mark, expected) in enumerate(epochs):
        store = StateStore.open(str(tmp_path), "op", 0, manifest, number, now=time)
        context = EpochContext(epoch=number, time=time, partition=0, watermark=mark, before=before)
        output = SPEC.step((table,), store, context)
        bounds = [[v // 1000 for v in output.column(c).cast(I64).to_pylist()] for c in ("ws", "we")]
        found = zip(output.column("k").to_pylist(), *bounds, output.column("n").to_pylist(), strict=True)
        assert set(found) == expected
        manifest, before = store.flush(), mark
    store = StateStore.open(str(tmp_path), "op", 0, manifest, len(epochs), now=400)
    assert len(store.table(SPEC.tables.counted).everything()) == 0
