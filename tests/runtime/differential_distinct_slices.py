"""Batch COUNT(DISTINCT) by windows that overlap: the way over slices against each window of each row."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from datetime import datetime, timedelta
from itertools import product
from pathlib import Path
from random import Random
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.session.environments import ask, new_session
from tidemill.session.environment import TableEnvironment

BEGIN = datetime(2024, 1, 1)
Row = tuple[int | None, int | None, float | None, int, int]
"""a, b, u, v and the second of a row."""
Bounds = Callable[[int], list[tuple[int, int]]]


def tumble(second: int) -> list[tuple[int, int]]:
    return [(second // 10 * 10, second // 10 * 10 + 10)]


def hop(second: int) -> list[tuple[int, int]]:
    starts = range(second // 4 * 4, second - 10, -4)
    return [(start, start + 10) for start in starts]


def cumulate(second: int) -> list[tuple[int, int]]:
    start = (second - 1) // 9 * 9 + 1
    return [(start, start + end) for end in (3, 6, 9) if start + end > second]


TIME = "TABLE t, DESCRIPTOR(ts), INTERVAL"
WINDOWS: dict[str, Bounds] = {
    f"HOP({TIME} '4' SECOND, INTERVAL '10' SECOND)": hop,
    f"TUMBLE({TIME} '10' SECOND)": tumble,
    f"CUMULATE({TIME} '3' SECOND, INTERVAL '9' SECOND, INTERVAL '1' SECOND)": cumulate,
}
SETS = {"CUBE(a, b)": ((1, 1), (1, 0), (0, 1), (0, 0)), "a, b": ((1, 1),)}


@pytest.fixture(scope="module")
def rows() -> list[Row]:
    chance = Random(7)
    return [
        (
            chance.choice([1, 2, None]),
            chance.choice([1, None]),
            chance.choice([0.0, -0.0, 1.5, 2.5, None]) if chance.random() < 0.7 else None,
            chance.choice([chance.randrange(10), chance.randrange(2**31)]),
            chance.choice([chance.randrange(-20, 40), 39]),
        )
        for _ in range(60)
    ]


@pytest.fixture(scope="module")
def session(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory, rows: list[Row]
) -> TableEnvironment:
    made = new_session(parallelism__default="2", execution__runtime_mode="batch", table__dml_sync="true")
    folder: Path = tmp_path_factory.mktemp("slices")
    ask(
        made,
        "CREATE TABLE t (a INT, b INT, u DOUBLE, v INT, ts TIMESTAMP(3)) WITH "
        f"('connector' = 'filesystem', 'path' = '{folder}', 'format' = 'parquet')",
        f"INSERT INTO t VALUES {', '.join(map(_literal, rows))}",
    )
    return made


def _literal(row: Row) -> str:
    *values, second = row
    pairs = zip(values, ("INT", "INT", "DOUBLE", "INT"), strict=True)
    texts = [f"CAST({'NULL' if x is None else repr(str(x))} AS {kind})" for x, kind in pairs]
    return f"({', '.join(texts)}, TIMESTAMP '{BEGIN + timedelta(seconds=second)}')"


@pytest.mark.one_case
@pytest.mark.parametrize(("window", "groups"), list(product(WINDOWS, SETS)))
def test_as_over_every_window(session: TableEnvironment, rows: list[Row], window: str, groups: str) -> None:
    """The filter leaves groups without a value, whose rows must be there."""
    found = ask(
        session,
        "SELECT window_start, window_end, a, b, COUNT(DISTINCT u) FILTER (WHERE v > 5), COUNT(*), "
        f"SUM(v) FILTER (WHERE v > 5), MAX(u), MIN(v) FROM TABLE({window}) "
        f"WHERE v > 3 GROUP BY window_start, window_end, {groups}",
    )
    assert sorted(map(repr, found)) == sorted(map(repr, naive(rows, WINDOWS[window], SETS[groups])))


def naive(rows: list[Row], windows: Bounds, sets: tuple[tuple[int, ...], ...]) -> list[tuple[Any, ...]]:
    groups = defaultdict[tuple[Any, ...], list[Row]](list)
    for row in rows:
        a, b, _, v, second = row
        if v > 3:
            for (start, end), (has_a, has_b) in product(windows(second), sets):
                groups[start, end, a if has_a else None, b if has_b else None, has_a, has_b].append(row)
    return [
        (BEGIN + timedelta(seconds=start), BEGIN + timedelta(seconds=end), a, b, *_results(members))
        for (start, end, a, b, *_), members in groups.items()
    ]


def _results(members: list[Row]) -> tuple[Any, ...]:
    values = [str(u) for _, _, u, _, _ in members if u is not None]
    counted = {str(u) for _, _, u, v, _ in members if u is not None and v > 5}
    sums = [v for _, _, _, v, _ in members if v > 5]
    wrapped = (sum(sums) + 2**31) % 2**32 - 2**31
    largest = max((float(u) for u in values), key=lambda u: (u, str(u) != "-0.0"), default=None)
    least = min(v for _, _, _, v, _ in members)
    return len(counted), len(members), wrapped if sums else None, largest, least
