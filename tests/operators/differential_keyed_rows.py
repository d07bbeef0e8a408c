"""ChangelogNormalize and Deduplicate against Flink's per-row functions, written out."""

from __future__ import annotations

from collections.abc import Callable
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.operators.epochs import Epochs, fold
from tests.operators.naive_aggregate import Change
from tidemill.operators.changelog_normalize import ChangelogNormalizeSpec
from tidemill.operators.deduplicate import DeduplicateSpec

COLUMNS = (("v", pa.int64()), ("k", pa.string()), ("t", pa.int64()))
Row = tuple[int, str | None, int]
row = st.tuples(st.integers(0, 2), st.sampled_from(["a", "b", None]), st.integers(0, 3))
epochs = st.lists(st.lists(st.tuples(row, st.integers(0, 3)), max_size=8), min_size=1, max_size=4)


def table_of(rows: list[tuple[Row, int]], start: int, kinds: bool) -> pa.Table:
    columns: dict[str, Any] = {n: pa.array([r[i] for r, _ in rows], t) for i, (n, t) in enumerate(COLUMNS)}
    if kinds:
        columns["$kind"] = pa.array([kind for _, kind in rows], pa.int8())
    columns["$seq"] = pa.array(range(start, start + len(rows)), pa.int64())
    # Out of order, as an exchange delivers.
    return pa.table(columns).take(pa.array(sorted(range(len(rows)), key=lambda i: i * 7 % 5), pa.int64()))


def replaced(before: Row | None, after: Row | None) -> list[Change]:
    if before is None or after is None:
        return [(kind, r) for kind, r in ((3, before), (0, after)) if r is not None]
    return [(1, before), (2, after)]


Rule = Callable[[Row | None, Row, int], Row | None]


def normalized(held: Row | None, new: Row, kind: int) -> Row | None:
    return None if kind & 1 else held if held == new else new


def keep_first(held: Row | None, new: Row, kind: int) -> Row | None:
    return held or new


def keep_last(held: Row | None, new: Row, kind: int) -> Row | None:
    return held if held == new else new


def earliest(held: Row | None, new: Row, kind: int) -> Row | None:
    return new if held is None or new[2] < held[2] else held


def latest(held: Row | None, new: Row, kind: int) -> Row | None:
    return new if held is None or new[2] >= held[2] else held


def dedup(time: str | None, keep_last: bool, **more: Any) -> DeduplicateSpec:
    return DeduplicateSpec(columns=COLUMNS, keys=("k",), time=time, keep_last=keep_last, **more)


NORMALIZE = ChangelogNormalizeSpec(columns=COLUMNS, keys=("k",))
CASES: dict[str, tuple[Any, Rule]] = {
    "normalize": (NORMALIZE, normalized),
    "normalize per record": (
        ChangelogNormalizeSpec(columns=COLUMNS, keys=("k",), per_record=True),
        normalized,
    ),
    "keep first": (dedup(None, False), keep_first),
    "keep last": (dedup(None, True), keep_last),
    "keep last per record": (dedup(None, True, per_record=True), keep_last),
    "earliest": (dedup("t", False, compact=True), earliest),
    "latest": (dedup("t", True, compact=True), latest),
    "earliest per record": (dedup("t", False, per_record=True), earliest),
    "latest per record": (dedup("t", True, per_record=True), latest),
}


@pytest.mark.parametrize("case", CASES)
@settings(max_examples=25, deadline=None)
@given(cuts=epochs)
def test_changes_are_flinks(case: str, cuts: list[list[tuple[Row, int]]]) -> None:
    spec, rule = CASES[case]
    held: dict[str | None, Row] = {}
    start = 0
    with TemporaryDirectory() as root:
        run = Epochs(root, spec)
        for rows in cuts:
            got = run.step(table_of(rows, start, spec.__class__ is ChangelogNormalizeSpec))
            start += len(rows)
            before = dict(held)
            steps: list[Change] = []
            for new, kind in rows:
                old = held.get(new[1])
                now = rule(old, new, kind)
                if now is not old:
                    steps += replaced(old, now)
                if now is None:
                    held.pop(new[1], None)
                else:
                    held[new[1]] = now
            if spec.per_record:
                assert got == steps
            else:
                net = [c for k in {*before, *held} for c in net_change(spec, before.get(k), held.get(k))]
                assert sorted(map(repr, got)) == sorted(map(repr, net))


def net_change(spec: Any, before: Row | None, after: Row | None) -> list[Change]:
    if before == after and not (isinstance(spec, DeduplicateSpec) and spec.time and before is not after):
        return []
    return replaced(before, after)


def test_improvements_within_a_bundle_are_shown_unless_compact() -> None:
    """In arrival order (v, k, t); each later time replaces the row."""
    rows: list[tuple[Row, int]] = [((1, "a", 1), 0), ((2, "a", 0), 0), ((3, "a", 1), 0), ((4, "a", 2), 0)]
    with TemporaryDirectory() as root:
        changes = Epochs(root, dedup("t", True)).step(table_of(rows, 0, False))
    assert [(kind, r[0]) for kind, r in changes] == [(0, 1), (1, 1), (2, 3), (1, 3), (2, 4)]
    shown: dict[Any, int] = {}
    fold(shown, changes)
    assert shown == {(4, "a", 2): 1}


def test_without_update_before_only_the_new_row_is_shown() -> None:
    spec = ChangelogNormalizeSpec(columns=COLUMNS, keys=("k",), emit_update_before=False, sequence=True)
    with TemporaryDirectory() as root:
        run = Epochs(root, spec)
        assert run.step(table_of([((1, "a", 0), 2)], 0, True)) == [(0, (1, "a", 0))]
        assert run.step(table_of([((2, "a", 0), 2)], 1, True)) == [(2, (2, "a", 0))]
        assert run.step(table_of([((9, "a", 9), 3)], 2, True)) == [(3, (2, "a", 0))]
