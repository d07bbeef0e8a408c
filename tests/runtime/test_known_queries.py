"""A batch query that is asked again is not analysed again, and answers what is true now."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet
from pyspark.sql import SparkSession

from tests.session.environments import ask, new_session
from tidemill.runtime.spark.batch_frames.relation import Views
from tidemill.session.environment import TableEnvironment


@pytest.fixture
def analysed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Every text that is analysed."""
    found: list[str] = []
    analyse = Views.analysed

    def noted(views: Views, query: str) -> object:
        found.append(query)
        return analyse(views, query)

    monkeypatch.setattr(Views, "analysed", noted)
    return found


@pytest.fixture
def env(spark: SparkSession, tmp_path: Path) -> TableEnvironment:
    write(tmp_path / "t" / "1.parquet", [1, 2, 3])
    made = new_session(parallelism__default="2", execution__runtime_mode="batch")
    ask(made, create("t", tmp_path / "t"))
    return made


def write(path: Path, values: list[int]) -> None:
    path.parent.mkdir(exist_ok=True)
    moments = pa.array([v * 1000 for v in values], pa.timestamp("ms", "UTC"))
    parquet.write_table(pa.table({"n": pa.array(values, pa.int32()), "at": moments}), path)


def create(name: str, path: Path) -> str:
    return (
        f"CREATE TABLE {name} (n INT, `at` TIMESTAMP_LTZ(3)) WITH "
        f"('connector' = 'filesystem', 'path' = '{path}', 'format' = 'parquet')"
    )


SUM = "SELECT SUM(n) FROM t WHERE n > 1"


def test_a_query_is_analysed_once(env: TableEnvironment, analysed: list[str]) -> None:
    assert [ask(env, SUM) for _ in range(3)] == [[(5,)]] * 3
    assert len(analysed) == 1
    assert ask(env, "SELECT SUM(n) FROM t WHERE n > 2") == [(3,)]
    assert len(analysed) == 2


def test_each_run_reads_anew(env: TableEnvironment, tmp_path: Path) -> None:
    assert ask(env, SUM) == [(5,)]
    write(tmp_path / "t" / "2.parquet", [10])
    assert ask(env, SUM) == [(15,)]
    write(tmp_path / "t" / "1.parquet", [7])
    assert ask(env, SUM) == [(17,)]
    (tmp_path / "t" / "2.parquet").unlink()
    assert ask(env, SUM) == [(7,)]
    write(tmp_path / "u" / "1.parquet", [20])
    ask(env, "DROP TABLE t", create("t", tmp_path / "u"))
    assert ask(env, SUM) == [(20,)]


def test_a_part_with_several_readers(env: TableEnvironment, analysed: list[str], tmp_path: Path) -> None:
    query = (
        "WITH g AS (SELECT MOD(n, 2) AS k, COUNT(*) AS c FROM t GROUP BY MOD(n, 2))"
        " SELECT a.k, b.c FROM g AS a JOIN g AS b ON a.k = b.k WHERE a.c > 0"
    )
    assert [sorted(ask(env, query)) for _ in range(2)] == [[(0, 1), (1, 2)]] * 2
    assert len(analysed) == 1
    write(tmp_path / "t" / "2.parquet", [5])
    assert sorted(ask(env, query)) == [(0, 1), (1, 3)]


def test_settings_make_another_query(env: TableEnvironment, analysed: list[str]) -> None:
    query = "SELECT CAST(MAX(`at`) AS STRING) FROM t"
    assert ask(env, query) == [("1970-01-01 00:00:03.000",)]
    ask(env, "SET 'table.local-time-zone' = 'Asia/Tokyo'")
    assert ask(env, query) == [("1970-01-01 09:00:03.000",)]
    ask(env, "RESET 'table.local-time-zone'")
    assert ask(env, query) == [("1970-01-01 00:00:03.000",)]
    assert len(analysed) == 2


@pytest.mark.parametrize("call", ["RAND()", "RAND_INTEGER(1000000000)", "UUID()"])
def test_chance_is_new_each_time(env: TableEnvironment, call: str) -> None:
    drawn = [ask(env, f"SELECT {call}, n FROM t") for _ in range(3)]
    assert len({value for rows in drawn for value, _ in rows}) == 9


def test_the_clock_goes_on(env: TableEnvironment) -> None:
    first, second = (
        ask(env, "SELECT MIN(UNIX_TIMESTAMP()), MIN(CURRENT_TIMESTAMP) FROM t") for _ in range(2)
    )
    assert first[0][1] < second[0][1]


def test_rows_of_the_program_are_never_taken_for_others(env: TableEnvironment) -> None:
    """Frames have names that the next query gives to others."""
    for value in (1, 2):
        env.create_temporary_view("v", pd.DataFrame({"m": [value]}))
        assert ask(env, "SELECT SUM(v.m * t.n) FROM v CROSS JOIN t") == [(6 * value,)]
        env.drop_temporary_view("v")


def test_what_has_to_run_another_way(env: TableEnvironment, analysed: list[str], tmp_path: Path) -> None:
    """A sum that ran over on its way is asked again, each time."""
    most = Decimal("9" * 38)
    column = pa.array([most, most, most.copy_negate()], pa.decimal128(38, 0))
    keys = pa.array([1, 1, 1], pa.int32())
    parquet.write_table(pa.table({"k": keys, "d": column}), tmp_path / "wide.parquet")
    ask(
        env,
        "CREATE TABLE wide (k INT, d DECIMAL(38, 0)) WITH "
        f"('connector' = 'filesystem', 'path' = '{tmp_path}/wide.parquet', 'format' = 'parquet')",
    )
    assert [ask(env, "SELECT k, SUM(d) FROM wide GROUP BY k") for _ in range(2)] == [[(1, most)]] * 2
    assert len(analysed) == 2
    assert ask(env, "SELECT SUM(d) OVER (PARTITION BY k) FROM wide") == [(most,)] * 3


def test_a_relative_path_means_another_table(
    env: TableEnvironment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for place, value in (("a", 1), ("b", 2)):
        (tmp_path / place).mkdir()
        write(tmp_path / place / "r" / "1.parquet", [value])
    ask(env, create("r", Path("r")))
    time.sleep(2.1)  # from now on what is listed is known
    for place, value in (("a", 1), ("a", 1), ("b", 2), ("a", 1)):
        monkeypatch.chdir(tmp_path / place)
        assert ask(env, "SELECT n FROM r") == [(value,)]


def test_two_frames_of_one_query_are_joined(env: TableEnvironment) -> None:
    one, other = (env.sql_query("SELECT n, COUNT(*) AS c FROM t GROUP BY n").to_spark() for _ in range(2))
    found = one.join(other, one.n == other.n).select(one.n, other.c)
    assert sorted(map(tuple, found.collect())) == [(1, 1), (2, 1), (3, 1)]


def test_a_table_joined_with_itself(env: TableEnvironment) -> None:
    query = "SELECT a.n, b.n FROM t AS a JOIN t AS b ON a.n = b.n + 1"
    assert [sorted(ask(env, query)) for _ in range(2)] == [[(2, 1), (3, 2)]] * 2


def test_an_insert_again(env: TableEnvironment, analysed: list[str], tmp_path: Path) -> None:
    ask(
        env,
        "CREATE TABLE copies (n INT) WITH "
        f"('connector' = 'filesystem', 'path' = '{tmp_path}/copies', 'format' = 'csv')",
    )
    for _ in range(2):
        ask(env, "INSERT INTO copies SELECT n FROM t WHERE n > 1")
    assert len(analysed) == 1
    assert ask(env, "SELECT n, COUNT(*) FROM copies GROUP BY n ORDER BY n") == [(2, 2), (3, 2)]


@pytest.mark.thorough
def test_threads_that_ask_one_query(env: TableEnvironment) -> None:
    def asked(number: int) -> list[tuple[object, ...]]:
        return sorted(ask(env, "SELECT MOD(n, 2) AS k, COUNT(*) FROM t GROUP BY MOD(n, 2)"))

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(asked, range(16))) == [[(0, 1), (1, 2)]] * 16
