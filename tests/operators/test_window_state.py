"""Savepoints of earlier versions: the fingerprints of window kernels, and the tables that kernels write."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from tests.operators import (
    differential_dynamic_aggregate,
    differential_session_aggregate,
    differential_session_emission,
    differential_shared_values,
    differential_window_aggregate,
    differential_window_buffer,
    differential_window_buffer_emission,
    differential_window_emission,
)
from tests.operators.timed_epochs import TimedEpochs
from tidemill.operators.window.assigners.assigner import Assigner
from tidemill.operators.window.assigners.calendar import Calendar
from tidemill.operators.window.assigners.cumulate import Cumulate, CumulateOverMonths
from tidemill.operators.window.assigners.hop import Hop
from tidemill.operators.window.assigners.tumble import Tumble
from tidemill.operators.window.clock import Clock
from tidemill.operators.window.dynamic import DynamicAggregateSpec
from tidemill.operators.window.triggers.processing_time import ByClockSpec
from tidemill.operators.window.triggers.trigger import Trigger
from tidemill.state.layout import Layout
from tidemill.state.store import StateStore

RECORDED = Path(__file__).with_name("window_state.json")
LATE = Trigger(early=10, late=7, lateness=9)
_SLICES = ("accumulated", "distinct", "rows go, with sets")


def _specs() -> dict[str, Any]:
    of = differential_window_aggregate.spec_of
    found: dict[str, Any] = {}
    for calls in _SLICES:
        for fixed in ("tumble", "hop", "cumulate"):
            found[f"{fixed}, {calls}"] = of(fixed, calls)
            found[f"{fixed}, {calls}, more than once"] = differential_window_emission.emitting(
                fixed, calls, LATE
            )
    hop = of("hop", "accumulated")
    months: dict[str, Assigner] = {
        "months": Calendar(inner=Tumble(size=3, offset=1), offset=4),
        "months, hop": Calendar(inner=Hop(size=3, slide=1)),
        "months, cumulate": Calendar(inner=Cumulate(size=4, slide=2)),
        "months by days": CumulateOverMonths(months=1, slide=86_400_000, offset=5),
    }
    for name, windows in months.items():
        found[name] = replace(hop, windows=windows)
    for shape in differential_session_aggregate.SHAPES:
        found[f"sessions, {shape}"] = differential_session_aggregate.spec_of(
            *differential_session_aggregate.SHAPES[shape]
        )
        found[f"sessions, {shape}, more than once"] = differential_session_emission.emitting(shape, LATE)
    for calls in differential_dynamic_aggregate.CALLS:
        parts = differential_dynamic_aggregate.parts_of(calls, 12, 3)
        found[f"dynamic, {calls}"] = DynamicAggregateSpec(**parts)
        found[f"dynamic, {calls}, more than once"] = DynamicAggregateSpec(**parts, trigger=LATE)
    for shape in ("hop", "cumulate"):
        found[f"shared values, {shape}"] = differential_shared_values.spec_of(shape, 8)
    top = differential_window_buffer.top(1, 3, keyed=True, append=True)
    join = differential_window_buffer.join("FULL", retracts=False)
    for name, gate in {"top": top, "join": join}.items():
        found[name] = gate
        found[f"{name}, more than once"] = differential_window_buffer_emission.emitting(
            gate, "early after a while, late after another"
        )
    clocked = ("hop, accumulated", "sessions, accumulated", "top", "join, more than once")
    return found | {f"{n}, by clock": ByClockSpec(inner=found[n], clock=Clock()) for n in clocked}


SPECS = _specs()


def _inputs(name: str, epoch: int) -> tuple[pa.Table, ...]:
    """Some rows of that epoch, also late ones, for each input of the kernel."""
    random = np.random.default_rng([epoch, len(name)])
    times = np.sort(random.integers(epoch * 9 - 12, epoch * 9 + 12, 8))
    marks = np.maximum.accumulate(times) - 4
    keys = pa.array([["a", "b", None][k] for k in random.integers(0, 3, 8)], pa.string())
    values = pa.array(random.integers(0, 4, 8), pa.int64())
    stamps = pa.array(times * 1000, pa.int64()).cast(pa.timestamp("us"))
    hidden: dict[str, pa.Array] = {
        "$seq": pa.array(np.arange(8) + epoch * 8),
        "$hash": pa.array(random.integers(0, 9, 8), pa.uint64()),
    }
    if "by clock" not in name:
        hidden["$wm"] = pa.array(marks)
    if name.startswith(("top", "join")):
        return tuple(_attached(side, keys, values, times, hidden) for side in _sides(name))
    columns = {"k": keys, "v": values, "t": stamps, "small": pa.array(values.to_numpy() < 2), **hidden}
    if "go" in name:
        columns["$kind"] = pa.array([0, 0, 3, 0, 0, 0, 0, 3], pa.int8())
    return (pa.table(columns),)


def _sides(name: str) -> tuple[str, ...]:
    return ("",) if name.startswith("top") else ("l", "r")


def _attached(
    side: str, keys: pa.Array, values: pa.Array, times: np.ndarray[Any, Any], hidden: dict[str, pa.Array]
) -> pa.Table:
    ends = times // 10 * 10 + 10
    bounds = (pa.array(t * 1000, pa.int64()).cast(pa.timestamp("us")) for t in (ends - 10, ends))
    own = dict(zip("kvse", (keys, values, *bounds), strict=True))
    if not side:
        own["n"] = values
    return pa.table({f"{side}{column}": array for column, array in own.items()} | hidden)


def _written(name: str, root: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The tables that the kernel asks the store for, and what is in their records."""
    asked: set[str] = set()

    def note(method: str) -> Any:
        plain = getattr(StateStore, method)

        def noted(store: StateStore, layout: Layout) -> Any:
            if store.operator == "op":
                asked.add(f"{layout.name}{' by time' * layout.by_time}: {_text(layout)}")
            return plain(store, layout)

        return noted

    for method in ("table", "timeline"):
        monkeypatch.setattr(StateStore, method, note(method))
    kernel = TimedEpochs(str(root), SPECS[name])
    for epoch in range(2):
        kernel.step(*_inputs(name, epoch), mark=epoch * 9 - 6, time=epoch * 8)
    return sorted(asked)


def _text(layout: Layout) -> str:
    parts = [(f.name, str(f.type)) for f in (*layout.keys, *layout.values, *layout.columns)]
    return ", ".join(" ".join(part) for part in parts) + " and weights" * layout.additive


@pytest.mark.parametrize("name", SPECS)
def test_as_written(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told = [SPECS[name].fingerprint, *_written(name, tmp_path, monkeypatch)]
    assert hashlib.sha256("\n".join(told).encode()).hexdigest()[:16] == recorded()[name], told


def recorded() -> dict[str, str]:
    found: dict[str, str] = json.loads(RECORDED.read_text())
    return found
