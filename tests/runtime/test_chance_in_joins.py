"""Conditions over both sides of a join that draw a value or read the clock."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from tests.session.environments import ask, new_session
from tidemill.errors import NotSupportedError
from tidemill.session.environment import TableEnvironment

SIDES = "(VALUES (1), (2)) AS a(x) {} (VALUES (1), (3)) AS b(y)"
CONDITIONS = {
    "RAND() + a.x + b.y < 100": [(1, 1), (1, 3), (2, 1), (2, 3)],
    "a.x = b.y AND RAND() + a.x + b.y < 100": [(1, 1)],
    "a.x = b.y AND RAND() + a.x + b.y > 100": [],
    "a.x + RAND_INTEGER(1) = b.y": [(1, 1)],
    "UUID() <> CAST(a.x + b.y AS STRING)": [(1, 1), (1, 3), (2, 1), (2, 3)],
}


@pytest.fixture(params=["batch", "streaming"])
def mode(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def env(spark: SparkSession, mode: str) -> TableEnvironment:
    return new_session(execution__runtime_mode=mode)


@pytest.mark.parametrize(("condition", "found"), CONDITIONS.items(), ids=CONDITIONS)
def test_an_inner_join_has_them(env: TableEnvironment, condition: str, found: list[tuple[int, int]]) -> None:
    query = f"SELECT a.x, b.y FROM {SIDES.format('JOIN')} ON {condition}"
    assert sorted(ask(env, query)) == found


def test_each_pair_is_drawn_for_itself(spark: SparkSession) -> None:
    """In streaming each row of the left side is, so that what was joined is what is taken back."""
    numbers = ", ".join(f"({n})" for n in range(60))
    sides = f"(VALUES {numbers}) AS a(x) JOIN (VALUES {numbers}) AS b(y)"
    query = f"SELECT a.x, b.y FROM {sides} ON RAND() + 0 * (a.x + b.y) < 0.5"
    pairs = set(ask(new_session(execution__runtime_mode="batch"), query))
    assert 1400 < len(pairs) < 2200
    assert len({x for x, _ in pairs}) == len({y for _, y in pairs}) == 60


@pytest.mark.parametrize("kind", ["LEFT", "RIGHT", "FULL"])
def test_an_outer_join_has_them_in_streaming_alone(env: TableEnvironment, mode: str, kind: str) -> None:
    query = f"SELECT a.x, b.y FROM {SIDES.format(kind + ' JOIN')} ON a.x = b.y AND RAND() + a.x + b.y > 100"
    if mode == "batch":
        with pytest.raises(
            NotSupportedError, match=r"^RAND in a condition over both sides of a \w+OuterJoin"
        ):
            ask(env, query)
    else:
        assert len(ask(env, query)) == {"LEFT": 2, "RIGHT": 2, "FULL": 4}[kind]


@pytest.mark.parametrize("clock", ["UNIX_TIMESTAMP()", "EXTRACT(YEAR FROM CURRENT_DATE)"])
@pytest.mark.parametrize(
    ("kind", "found"),
    [("", 1), ("LEFT", 2), ("RIGHT", 2), ("FULL", 3)],
)
def test_the_clock_is_one_for_all_rows(env: TableEnvironment, clock: str, kind: str, found: int) -> None:
    sides = SIDES.format(kind + " JOIN")
    rows = ask(env, f"SELECT a.x, b.y FROM {sides} ON a.x = b.y AND a.x + b.y < {clock}")
    assert (1, 1) in rows
    assert len(rows) == found
