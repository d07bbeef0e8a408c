"""Running watermarks in pieces against one pass over all rows, row by row."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidemill.changelog.watermarks import (
    NONE,
    Control,
    Prefix,
    Running,
    RunningSplits,
    SplitMarks,
    split_key,
)

_MARKS = st.lists(st.integers(-20, 60), max_size=40)


def naive(marks: list[int], interval: int) -> tuple[list[int], int]:
    """What each row saw, and what is reached at the end; one row at a time."""
    shown, highest, passed = [], NONE, NONE
    for mark in marks:
        shown.append(passed)
        highest = max(highest, mark)
        if not interval or (max(highest, -1) + 1) // interval > (max(passed, -1) + 1) // interval:
            passed = highest
    return shown, passed


def pieces(marks: list[int], cuts: list[int]) -> list[list[int]]:
    edges = [0, *sorted(min(c, len(marks)) for c in cuts), len(marks)]
    return [marks[a:b] for a, b in itertools.pairwise(edges)]


@given(_MARKS, st.lists(st.integers(0, 40), max_size=5), st.integers(0, 3), st.sampled_from([0, 1, 5, 7]))
def test_tasks_and_epochs_make_no_difference(
    marks: list[int], cuts: list[int], epochs: int, interval: int
) -> None:
    tasks = pieces(marks, cuts)
    reached: dict[str, int] = {}
    seen: list[int] = []
    for epoch in np.array_split(np.arange(len(tasks)), epochs + 1):
        columns, controls = {}, []
        for task in map(int, epoch):
            running = Running(interval=interval)
            half = len(tasks[task]) // 2
            parts = [tasks[task][:half], tasks[task][half:]]
            columns[task] = np.concatenate([running.before(np.array(p, np.int64)) for p in parts])
            controls.append(Control(origin="s", task=task, mark=running.mark, interval=interval))
        prefix = Prefix.over(reversed([*controls, *controls]), reached)
        for task, column in columns.items():
            seen += prefix.lifted(column, task).tolist()
        reached |= prefix.marks
    shown, passed = naive(marks, interval)
    assert seen == shown
    assert reached.get("s", NONE) == passed


def test_two_readings_of_one_source_do_not_go_before_each_other() -> None:
    readings = (("/0", (5, 9)), ("/1", (5, 9)))
    controls = [
        Control(origin="s", reading=reading, task=2 * n + task, mark=mark)
        for n, (reading, marks) in enumerate(readings)
        for task, mark in enumerate(marks)
    ]
    prefix = Prefix.over(controls, {"s": 3})
    assert [prefix.lifted(np.array([NONE]), task).tolist() for task in range(4)] == [[3], [5], [3], [5]]
    assert prefix.marks == {"s": 9}


def test_flinks_example() -> None:
    running = Running(interval=5)
    passed = [int(running.before(np.array([m]))[0]) for m in (1, 3, 7, 8, 14)] + [running.mark]
    assert passed == [NONE, NONE, NONE, 7, 7, 14]


def test_an_operators_mark_is_the_least_of_its_tasks() -> None:
    controls = [Control(origin="o", task=t, mark=m, whole=True) for t, m in ((0, 9), (1, 4))]
    prefix = Prefix.over(controls, {"o": 2})
    assert prefix.marks == {"o": 4}
    assert prefix.lifted(np.array([1, 3]), 0).tolist() == [1, 3]


@pytest.mark.parametrize("mark", [NONE, -1, 0, 1 << 40])
def test_controls_come_back_as_they_were(mark: int) -> None:
    control = Control(origin="source-0", task=3, mark=mark, interval=5)
    assert Control.of(control.to_bytes()) == control


@given(
    st.lists(_MARKS, min_size=1, max_size=4),
    st.integers(1, 4),
    st.integers(1, 3),
    st.sampled_from([0, 5]),
)
def test_splits_know_nothing_of_each_other(
    splits: list[list[int]], epochs: int, tasks: int, interval: int
) -> None:
    """Each row sees what its own split had reached; the source has come as far as its last split."""
    names = tuple(str(n) for n in range(len(splits)))
    reached: dict[str, int] = {}
    seen: dict[str, list[int]] = {name: [] for name in names}
    for epoch in range(epochs):
        parts = {
            n: np.array_split(np.array(rows, np.int64), epochs)[epoch]
            for n, rows in zip(names, splits, strict=True)
        }
        firsts = np.concatenate([[0], np.cumsum([len(p) for p in parts.values()])]).tolist()
        there = [(first, n) for first, n in zip(firsts, names, strict=False) if len(parts[n])]
        known = {n: reached[split_key("s", n)] for n in names if split_key("s", n) in reached}
        marks = SplitMarks(
            firsts=tuple(first for first, _ in there),
            names=tuple(n for _, n in there),
            reached=known,
            waited=names,
        )
        controls = []
        for task in range(tasks):
            running, mine = RunningSplits(splits=marks, interval=interval), there[task::tasks]
            for first, name in mine:
                shown = running.before(parts[name], first + np.arange(len(parts[name])))
                seen[name] += shown.tolist()
            controls.append(Control(origin="s", task=task, mark=NONE, splits=running.marks(), waited=names))
        reached |= Prefix.over([Control.of(c.to_bytes()) for c in controls], reached).marks
    expected = [naive(rows, interval) for rows in splits]
    assert [seen[n] for n in names] == [shown for shown, _ in expected]
    assert reached["s"] == min(passed for _, passed in expected)


def test_time_does_not_go_back_for_a_new_split() -> None:
    control = Control(origin="s", task=0, mark=NONE, splits=(("a", 9),), waited=("a", "b"))
    assert Prefix.over([control], {"s": 7, split_key("s", "a"): 7}).marks["s"] == 7
    idle = Control(origin="s", task=0, mark=NONE, splits=(("a", 9),), waited=("a",))
    assert Prefix.over([idle], {"s": 7, split_key("s", "a"): 7}).marks["s"] == 9
