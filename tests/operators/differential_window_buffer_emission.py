"""Top-N and joins of windows that show more than their end, against lists of rows: right at every epoch."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.operators.differential_window_buffer import (
    KINDS,
    TOPS,
    Row,
    Side,
    arrivals,
    best,
    join,
    joined,
    plain,
    reached,
    table_of,
)
from tests.operators.differential_window_emission import EMISSIONS
from tests.operators.epochs import fold
from tests.operators.timed_epochs import TimedEpochs, pieces
from tests.tiers import examples
from tidemill.changelog.watermarks import END, NONE
from tidemill.operators.window.triggers.trigger import Trigger
from tidemill.operators.window.window_buffer import WindowBufferSpec

Rows = list[tuple[Any, ...]]


def emitting(gate: WindowBufferSpec, trigger: str) -> WindowBufferSpec:
    return WindowBufferSpec(
        inner=gate.inner,
        ports=gate.ports,
        clock=gate.clock,
        ends=gate.ends,
        trigger=EMISSIONS[trigger],
        keeps_time=True,
        sequence=True,
    )


@dataclass
class Naive:
    """All rows of each side by window; ``give``: what those of one window show."""

    trigger: Trigger
    give: Callable[..., Rows]
    sides: tuple[Side, ...]
    late: int = 0

    def take(self, side: int, rows: list[Row]) -> None:
        for row in rows:
            if row.mark != NONE and row.end - 1 + self.trigger.lateness <= row.mark:
                self.late += 1
            else:
                self.sides[side].whole.setdefault(row.end, []).append(row)

    def seen(self, mark: int) -> dict[Any, int]:
        """Where everything has been shown that is to be."""
        shown: Counter[tuple[Any, ...]] = Counter()
        for end in {end for side in self.sides for end in side.whole}:
            if self.trigger.early is not None or end - 1 <= mark:
                shown.update(self.give(*(side.rows(end) for side in self.sides)))
        return dict(shown)


@dataclass
class Patience:
    """How long epochs are apart, and after which of them all timers have time to come."""

    waits: list[int]
    patient: list[bool]

    @staticmethod
    def drawn() -> st.SearchStrategy[Patience]:
        waits = st.lists(st.integers(0, 8), min_size=8, max_size=8)
        return st.builds(Patience, waits, st.lists(st.booleans(), min_size=8, max_size=8))


@dataclass
class Driven:
    """An operator under test: what it has shown so far."""

    kernel: TimedEpochs
    nothing: tuple[pa.Table, ...]
    names: tuple[str, ...]
    patience: Patience
    shown: dict[Any, int] = field(default_factory=dict)
    now: int = 0
    number: int = 0

    def step(self, tables: tuple[pa.Table, ...], mark: int, twin: Naive) -> None:
        self.now += self.patience.waits[self.number]
        patient = self.patience.patient[self.number]
        self.number += 1
        self._run(tables, mark)
        while patient and self.kernel.timer is not None:
            assert self.kernel.timer > self.now
            self.now = self.kernel.timer
            self._run(self.nothing, mark)
        at_once = not twin.trigger.early and not twin.trigger.late
        if at_once or patient or mark == END:
            assert self.shown == twin.seen(mark)

    def _run(self, tables: tuple[pa.Table, ...], mark: int) -> None:
        rows = self.kernel.step(*tables, mark=mark, time=self.now).to_pylist()
        assert [r["$wm"] for r in rows] == sorted(r["$wm"] for r in rows), "windows in order"
        fold(self.shown, [(r["$kind"], tuple(plain(r[n]) for n in self.names)) for r in rows])


@pytest.mark.parametrize("trigger", EMISSIONS)
@pytest.mark.parametrize("shape", TOPS)
@settings(max_examples=examples(8), deadline=None)
@given(data=st.data(), cuts=st.lists(st.integers(0, 30), max_size=6), patience=Patience.drawn())
def test_top_n(shape: str, trigger: str, data: st.DataObject, cuts: list[int], patience: Patience) -> None:
    gate, append = TOPS[shape]
    spec = emitting(gate, trigger)
    rows = data.draw(arrivals(retracts=not append))
    twin = Naive(spec.trigger, lambda found: best(gate, found, append), (Side(),))
    nothing = (table_of([], ordered=append, retracts=not append),)
    names = ("k", "v", "e", "r", *(("n",) if append else ()))
    with tempfile.TemporaryDirectory() as root:
        driven = Driven(TimedEpochs(root, spec), nothing, names, patience)
        for first, behind in pieces(len(rows), cuts):
            twin.take(0, rows[first:behind])
            table = table_of(rows[first:behind], ordered=append, retracts=not append)
            driven.step((table,), reached(rows, behind), twin)
        assert driven.kernel.late == twin.late


@pytest.mark.parametrize("trigger", EMISSIONS)
@pytest.mark.parametrize("retracts", [False, True], ids=["rows stay", "rows go"])
@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=examples(4), deadline=None)
@given(
    data=st.data(),
    cuts=st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30)), max_size=6),
    patience=Patience.drawn(),
)
def test_join(
    kind: str,
    retracts: bool,
    trigger: str,
    data: st.DataObject,
    cuts: list[tuple[int, int]],
    patience: Patience,
) -> None:
    spec = emitting(join(kind, retracts=retracts), trigger)
    sides = data.draw(arrivals(retracts)), data.draw(arrivals(retracts))
    twin = Naive(spec.trigger, lambda left, right: joined(kind, left, right), (Side(), Side()))
    nothing = tuple(table_of([], side, ordered=False, retracts=retracts) for side in "lr")
    names = tuple(n for n in spec.output_schema().names if n[1:] in ("k", "v", "e"))
    # Each side is cut at places of its own.
    both = [sorted(min(c[i], len(sides[i])) for c in cuts) for i in (0, 1)]
    steps = list(zip(*([0, *own, len(rows)] for own, rows in zip(both, sides, strict=True)), strict=True))
    with tempfile.TemporaryDirectory() as root:
        driven = Driven(TimedEpochs(root, spec), nothing, names, patience)
        for before, after in pairwise(steps):
            tables = []
            for number, (side, rows) in enumerate(zip("lr", sides, strict=True)):
                part = rows[before[number] : after[number]]
                twin.take(number, part)
                tables.append(table_of(part, side, ordered=False, retracts=retracts))
            mark = min(reached(rows, upto) for rows, upto in zip(sides, after, strict=True))
            driven.step(tuple(tables), mark, twin)
        assert driven.kernel.late == twin.late
