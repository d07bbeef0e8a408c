"""Joins that forget against two dicts of rows: all kinds, random clocks, epoch cuts, restarts, merges."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.operators.differential_join import KINDS, LOOSE, less, loosely, spec_of, table_of
from tests.operators.epochs import Epochs, fold
from tests.operators.naive_aggregate import freeze
from tests.operators.naive_join import Row
from tests.tiers import examples
from tidemill.operators.join.operator import JoinSpec

TTLS = ((3, 3), (3, 0), (0, 2), (2, 5))


@dataclass
class Entry:
    """How often a row is there, how many rows matched it so far, when it was last written."""

    count: int
    matches: int
    time: int


@dataclass
class ForgettingJoin:
    """Rows per side as Flink's join state has them; ``shown`` is what the changelog adds up to."""

    spec: JoinSpec
    held: tuple[dict[Row, Entry], dict[Row, Entry]] = field(default_factory=lambda: ({}, {}))
    shown: Counter[Row] = field(default_factory=Counter)

    def epoch(self, changes: tuple[list[tuple[int, Row]], ...], now: int) -> None:
        net: list[Counter[Row]] = [Counter(), Counter()]
        for side, rows in enumerate(changes):
            ttl = self.spec.sides[side].ttl
            for row, entry in list(self.held[side].items()):
                if ttl and entry.time + ttl <= now:
                    del self.held[side][row]
            for kind, row in rows:
                net[side][row] += -1 if kind & 1 else 1
        before = [{row: e.count for row, e in held.items()} for held in self.held]
        after = [
            {row: max(b.get(row, 0) + n.get(row, 0), 0) for row in {*b, *n}}
            for b, n in zip(before, net, strict=True)
        ]
        self._pairs(before, after)
        for side in (0, 1):
            self._rows(side, before, after, net, now)

    def _pairs(self, before: list[dict[Row, int]], after: list[dict[Row, int]]) -> None:
        if self.spec.kind in ("SEMI", "ANTI"):
            return
        for a in after[0]:
            for b in after[1]:
                if self._match(a, b):
                    gain = after[0][a] * after[1][b] - before[0].get(a, 0) * before[1].get(b, 0)
                    self._show((*a, *b), gain)

    def _rows(
        self,
        side: int,
        before: list[dict[Row, int]],
        after: list[dict[Row, int]],
        net: list[Counter[Row]],
        now: int,
    ) -> None:
        """One side's state after the epoch, and what its lonely rows show."""
        other = 1 - side
        for row in after[side]:
            partners = [r for r in after[other] if self._match(*((row, r) if side == 0 else (r, row)))]
            entry = self.held[side].get(row)
            was = entry.matches if entry else 0
            gain = sum(after[other][r] - before[other].get(r, 0) for r in partners)
            now_matched = was + gain if entry else sum(after[other][r] for r in partners)
            if self.spec.counted[side]:
                semi = self.spec.kind == "SEMI"
                shows = [after[side][row] * ((now_matched > 0) == semi)]
                shows.append(before[side].get(row, 0) * ((was > 0) == semi))
                nulls = () if self.spec.kind in ("SEMI", "ANTI") else (None,) * 3
                self._show((*row, *nulls) if side == 0 else (*nulls, *row), shows[0] - shows[1])
            touched = row in net[side] or (self.spec.counted[side] and any(r in net[other] for r in partners))
            if touched:
                self.held[side][row] = Entry(after[side][row], now_matched, now)
            if not after[side][row]:
                self.held[side].pop(row, None)

    def _show(self, row: Row, times: int) -> None:
        self.shown[tuple(freeze(v) for v in row)] += times

    def _match(self, a: Row, b: Row) -> bool:
        return a[0] == b[0] and (
            loosely(a, b) if self.spec.loose else self.spec.residual is None or less(a, b)
        )


rows_strategy = st.tuples(
    st.sampled_from(["a", "b", "a longer key"]), st.sampled_from([0.0, 1.5]), st.sampled_from([1, 2, None])
)
changes_strategy = st.lists(st.tuples(st.integers(0, 1), st.integers(0, 3), rows_strategy), max_size=8)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("ttls", TTLS)
@settings(max_examples=examples(5), deadline=None)
@given(
    epochs=st.lists(st.tuples(st.integers(0, 3), changes_strategy), min_size=1, max_size=7),
    residual=st.booleans(),
    loose=st.booleans(),
    weak=st.booleans(),
)
def test_what_expired_is_forgotten_and_its_results_stay(
    kind: str, ttls: tuple[int, int], epochs: list[tuple[int, Any]], residual: bool, loose: bool, weak: bool
) -> None:
    """Rows may also be taken back that are not there, any more or at all."""
    plain = spec_of(kind, "one", residual)
    if loose and plain.filters:
        plain = replace(plain, residual=None, loose=LOOSE)
    sides = [replace(side, ttl=ttl) for side, ttl in zip(plain.sides, ttls, strict=True)]
    spec = replace(plain, left=sides[0], right=sides[1])
    twin = ForgettingJoin(spec)
    shown: dict[Any, int] = {}
    now = 0
    with TemporaryDirectory() as root:
        runner = Epochs(root, spec)
        for step, drawn in epochs:
            now += step
            changes = tuple([(k, row) for s, k, row in drawn if s == side] for side in (0, 1))
            twin.epoch(changes, now)
            fold(shown, runner.step(*(table_of(s, changes[s], True, weak, "one") for s in (0, 1)), time=now))
            assert shown == {row: n for row, n in twin.shown.items() if n}
