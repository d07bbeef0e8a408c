"""Sessions that are used again have nothing of who had them before."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.session.environments import ask, new_session
from tidemill.errors import ExecutionError
from tidemill.runtime.batch import frames
from tidemill.runtime.spark.session import _IDLE, give_back, lent_session, time_zone
from tidemill.session.environment import TableEnvironment

SETTINGS = {"spark.tidemill.test": "lent"}


def test_the_same_settings_have_the_same_session(spark: SparkSession) -> None:
    first = lent_session(spark, settings=SETTINGS)
    first.range(3).createTempView("left_behind")
    give_back(first, settings=SETTINGS, has_views=True)
    assert lent_session(spark, settings=SETTINGS | time_zone("UTC")) is not first
    again = lent_session(spark, settings=SETTINGS)
    assert again is first
    assert not again.catalog.tableExists("left_behind")
    assert again.conf.get("spark.tidemill.test") == "lent"
    assert lent_session(spark, settings=SETTINGS) is not first


def test_no_two_have_one_at_a_time(spark: SparkSession) -> None:
    held: set[int] = set()
    lock = threading.Lock()

    def use(number: int) -> None:
        session = lent_session(spark, settings=SETTINGS)
        with lock:
            assert id(session) not in held
            held.add(id(session))
        session.sql(f"SELECT {number}").collect()
        with lock:
            held.remove(id(session))
        give_back(session, settings=SETTINGS, has_views=True)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(use, range(40)))


def test_sessions_that_are_given_back_have_no_views(spark: SparkSession, tmp_path: Path) -> None:
    """Neither where a query was analysed in one, nor where its plan was known."""
    env = batch(table__local_time_zone="Asia/Hovd")
    ask(
        env,
        "CREATE TABLE t (n INT) WITH "
        f"('connector' = 'filesystem', 'path' = '{tmp_path}/t', 'format' = 'parquet')",
        "INSERT INTO t VALUES (1), (2)",
    )
    twice = "WITH u AS (SELECT n, COUNT(*) AS c FROM t GROUP BY n) SELECT a.n FROM u a JOIN u b ON a.n = b.c"
    for query in (twice, "SELECT COUNT(*) FROM t", twice):
        ask(env, query)
        java: list[Any] = [session._jsparkSession for _, session in _IDLE]
        assert [s.sessionState().catalog().listLocalTempViews("*").size() for s in java] == [0] * len(java)
    assert java


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[SparkSession]:
    """The sessions that were lent, in turn."""
    found: list[SparkSession] = []

    def noted(*given: Any, **options: Any) -> SparkSession:
        found.append(lent_session(*given, **options))
        return found[-1]

    monkeypatch.setattr(frames, "lent_session", noted)
    return found


def batch(**options: str) -> TableEnvironment:
    return new_session(parallelism__default="1", execution__runtime_mode="batch", **options)


def test_a_query_that_fails_keeps_its_own(spark: SparkSession, made: list[SparkSession]) -> None:
    env = batch(table__local_time_zone="Asia/Tokyo")
    divided = "SELECT 1 / (x - x) FROM (VALUES (1), (2)) AS v(x)"
    for _ in range(2):
        with pytest.raises(ExecutionError, match="by zero"):
            ask(env, divided)
    assert len({id(session) for session in made}) == len(made) > 0


def test_tables_that_are_frames_are_read_anew(spark: SparkSession, made: list[SparkSession]) -> None:
    """A session remembers which files the tables of Spark's catalog had."""
    env = batch(table__local_time_zone="Asia/Seoul")
    ask(env, "CREATE TABLE g (n INT) WITH ('connector' = 'datagen', 'number-of-rows' = '3')")
    assert [ask(env, "SELECT COUNT(*) FROM g") for _ in range(2)] == [[(3,)]] * 2
    assert len({id(session) for session in made}) == len(made) > 0
