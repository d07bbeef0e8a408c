"""Running watermarks in pieces against one pass over all rows, row by row."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidemill.changelog.watermarks import NONE, Control, Prefix, Running

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
