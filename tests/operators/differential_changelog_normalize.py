"""ChangelogNormalize against Flink's per-row function, written out."""

from __future__ import annotations

from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.operators.epochs import Epochs
from tests.operators.naive_aggregate import Change
from tests.tiers import examples
from tidemill.operators.changelog_normalize import ChangelogNormalizeSpec

COLUMNS = (("v", pa.int64()), ("k", pa.string()), ("t", pa.int64()))
Row = tuple[int, str | None, int]
row = st.tuples(st.integers(0, 2), st.sampled_from(["a", "b", None]), st.integers(0, 3))
epochs = st.lists(st.lists(st.tuples(row, st.integers(0, 3)), max_size=8), min_size=1, max_size=4)


def table_of(rows: list[tuple[Row, int]], start: int) -> pa.Table:
    columns: dict[str, Any] = {n: pa.array([r[i] for r, _ in rows], t) for i, (n, t) in enumerate(COLUMNS)}
    columns["$kind"] = pa.array([kind for _, kind in rows], pa.int8())
    columns["$seq"] = pa.array(range(start, start + len(rows)), pa.int64())
    # Out of order, as an exchange delivers.
    return pa.table(columns).take(pa.array(sorted(range(len(rows)), key=lambda i: i * 7 % 5), pa.int64()))


def replaced(before: Row | None, after: Row | None) -> list[Change]:
    if before is None or after is None:
        return [(kind, r) for kind, r in ((3, before), (0, after)) if r is not None]
    return [(1, before), (2, after)]


def normalized(held: Row | None, new: Row, kind: int) -> Row | None:
    return None if kind & 1 else held if held == new else new


@pytest.mark.parametrize("per_record", [False, True])
@settings(max_examples=examples(25), deadline=None)
@given(cuts=epochs)
def test_changes_are_flinks(per_record: bool, cuts: list[list[tuple[Row, int]]]) -> None:
    spec = ChangelogNormalizeSpec(columns=COLUMNS, keys=("k",), per_record=per_record)
    held: dict[str | None, Row] = {}
    start = 0
    with TemporaryDirectory() as root:
        run = Epochs(root, spec)
        for rows in cuts:
            got = run.step(table_of(rows, start))
            start += len(rows)
            before = dict(held)
            steps: list[Change] = []
            for new, kind in rows:
                old = held.get(new[1])
                now = normalized(old, new, kind)
                if now is not old:
                    steps += replaced(old, now)
                if now is None:
                    held.pop(new[1], None)
                else:
                    held[new[1]] = now
            if spec.per_record:
                assert got == steps
            else:
                touched = sorted({*before, *held}, key=str)
                net = [
                    c
                    for k in touched
                    if before.get(k) != held.get(k)
                    for c in replaced(before.get(k), held.get(k))
                ]
                assert sorted(map(repr, got)) == sorted(map(repr, net))


def test_without_update_before_only_the_new_row_is_shown() -> None:
    spec = ChangelogNormalizeSpec(columns=COLUMNS, keys=("k",), emit_update_before=False, sequence=True)
    with TemporaryDirectory() as root:
        run = Epochs(root, spec)
        assert run.step(table_of([((1, "a", 0), 2)], 0)) == [(0, (1, "a", 0))]
        assert run.step(table_of([((2, "a", 0), 2)], 1)) == [(2, (2, "a", 0))]
        assert run.step(table_of([((9, "a", 9), 3)], 2)) == [(3, (2, "a", 0))]
