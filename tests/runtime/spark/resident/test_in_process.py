"""Resident epochs of unions, lookup joins and SELECTs against what Python makes of the same input."""

from __future__ import annotations

import csv
import datetime as dt
import json
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random

import pytest

from tests.runtime.running import Session, folded
from tests.runtime.spark.resident.differential_epochs import CASES
from tests.runtime.spark.resident.in_process import in_process
from tests.runtime.spark.resident.jobs import heard, make_input, make_types, options, ran

Pair = tuple[int | None, int | None]
Pairs = Sequence[Pair]
Rows = list[tuple[int, int, int]]
"""``k``, ``v``, ``id``."""


def counted(values: list[int]) -> Pairs:
    return list(Counter(values).items())


NAIVE: dict[str, Callable[[Rows, Rows, dict[int, int]], Pairs]] = {
    "window rows": lambda a, b, d: [(i, v) for _, v, i in a if v > 2],
    "union": lambda a, b, d: [(i, v) for _, v, i in a] + [(i + 100, v) for _, v, i in b if v > 3],
    "union of a table with itself": lambda a, b, d: counted([k for k, _, _ in a] + [v for _, v, _ in a]),
    "union of changes": lambda a, b, d: [*counted([k for k, _, _ in a]), *((i, v) for _, v, i in b)],
    "aggregation of changes": lambda a, b, d: counted(
        [*Counter(k for k, _, _ in a).values(), *(v for _, v, _ in b)]
    ),
    "lookup join": lambda a, b, d: [(i, d[k]) for k, _, i in a if k in d],
    "outer lookup join": lambda a, b, d: [(i, d.get(v)) for _, v, i in a],
    "aggregation of a lookup join": lambda a, b, d: counted([d[k] for k, _, _ in a if k in d]),
}


def read(path: Path) -> Rows:
    with path.open() as file:
        return [(int(k), int(v), int(i)) for _, k, v, i in csv.reader(file)]


def added_up(lines: list[str]) -> Counter[Pair]:
    found: Counter[Pair] = Counter()
    for change in map(json.loads, lines):
        for image, weight in ((change["before"], -1), (change["after"], 1)):
            if image is not None:
                found[image["x"], image["y"]] += weight
    return +found


@pytest.mark.parametrize("case", NAIVE)
def test_rows_add_up_to_what_python_makes_of_them(case: str, tmp_path: Path) -> None:
    chance = Random(case)
    tables = make_input(tmp_path / "input", chance)
    a, b = read(tmp_path / "input" / "a.csv"), read(tmp_path / "input" / "b.csv")
    with (tmp_path / "input" / "d.csv").open() as file:
        d = {int(k): int(w) for k, w in csv.reader(file)}
    session = Session(options(chance.choice((7, 11, 60)), "resident"))
    with in_process(tmp_path), heard() as found:
        (lines,) = ran(session, tables, tmp_path, CASES[case])
    assert added_up(lines) == Counter(NAIVE[case](a, b, d))
    assert found.resident
    assert found.failures == []


@pytest.mark.parametrize("case", ["windows of a union", "windows of a table twice", "union of windows"])
def test_where_epochs_end_changes_nothing(case: str, tmp_path: Path) -> None:
    """Also by event time, in which rows of one table may come by two branches."""
    tables, found = make_input(tmp_path / "input", Random(case)), []
    for rows in (60, 13, 5):
        session = Session(options(rows, "resident"))
        with in_process(tmp_path):
            (lines,) = ran(session, tables, tmp_path / str(rows), CASES[case])
        found.append(added_up(lines))
    assert found[0] == found[1] == found[2]
    assert found[0]


def test_a_select_gives_rows_of_all_types(tmp_path: Path) -> None:
    session = Session({**options(7, "resident"), "table.local-time-zone": "Asia/Tokyo"})
    session.execute(make_types(tmp_path))
    with in_process(tmp_path), heard() as found:
        rows = folded(session.changes("SELECT i, CAST(l AS STRING) FROM types"))
        values = session.changes("SELECT d, l, m, z, x, o, y FROM types")
    assert rows[5, "1945-05-01 00:00:05.005"] == 1
    assert sum(rows.values()) == 40
    _, (day, local, exact, instant, data, row, numbers) = values[5]
    assert (day, local) == (dt.date(2005, 2, 6), dt.datetime(1945, 5, 1, 0, 0, 5, 5000))
    assert str(exact) == "5.25"
    assert instant.isoformat() == "2024-05-01T01:00:05.035000+00:00"
    assert (data, tuple(row), numbers) == (b"\0\1\2", (5, ["5", None]), [5, None])
    assert len(found.resident) == 12
