"""A query that is asked again means what its text, its session and its tables mean now."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pandas as pd
import pytest
from pyspark.sql import SparkSession

from tests.session.environments import ask, new_session
from tidemill.errors import ValidationError
from tidemill.session.environment import TableEnvironment

QUERY = "SELECT SUM(n) FROM t"


@pytest.fixture
def env(spark: SparkSession, tmp_path: Path) -> TableEnvironment:
    made = new_session(parallelism__default="1", execution__runtime_mode="batch")
    written(tmp_path / "t", "1\n2\n")
    ask(made, table("t", tmp_path / "t"))
    return made


def written(folder: Path, text: str, name: str = "1.csv") -> None:
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(text)


def table(name: str, path: Path, *, kind: str = "INT", temporary: bool = False) -> str:
    return (
        f"CREATE {'TEMPORARY ' * temporary}TABLE {name} (n {kind}) WITH "
        f"('connector' = 'filesystem', 'path' = '{path}', 'format' = 'csv')"
    )


def test_a_table_with_another_file(env: TableEnvironment, tmp_path: Path) -> None:
    assert ask(env, QUERY) == [(3,)]
    written(tmp_path / "t", "10\n", "2.csv")
    assert ask(env, QUERY) == [(13,)]


def test_a_table_that_is_another_one(env: TableEnvironment, tmp_path: Path) -> None:
    written(tmp_path / "u", "50\n")
    query = "SELECT MAX(n) FROM t"
    assert ask(env, query) == [(2,)]
    assert ask(env, "DROP TABLE t", table("t", tmp_path / "u"), query) == [(50,)]
    assert ask(env, "DROP TABLE t", table("t", tmp_path / "u", kind="STRING"), query) == [("50",)]
    assert ask(env, table("t", tmp_path / "t", temporary=True), query) == [(2,)]
    assert ask(env, "DROP TEMPORARY TABLE t", query) == [("50",)]
    ask(env, "DROP TABLE t")
    with pytest.raises(ValidationError, match="'t' not found"):
        ask(env, query)
    assert ask(env, table("t", tmp_path / "t"), query) == [(2,)]


def test_a_view_that_is_another_one(env: TableEnvironment) -> None:
    query = "SELECT * FROM v"
    assert ask(env, "CREATE VIEW v AS SELECT COUNT(*) AS c FROM t", query) == [(2,)]
    assert ask(env, "ALTER VIEW v AS SELECT SUM(n) AS s, 'x' AS x FROM t", query) == [(3, "x")]
    assert ask(env, "CREATE TEMPORARY VIEW v AS SELECT 1 AS x1", query) == [(1,)]
    assert ask(env, "DROP TEMPORARY VIEW v", query) == [(3, "x")]


def test_names_mean_what_they_mean_now(env: TableEnvironment, tmp_path: Path) -> None:
    written(tmp_path / "u", "7\n")
    ask(env, "CREATE DATABASE d", table("d.t", tmp_path / "u"))
    assert ask(env, QUERY) == [(3,)]
    assert ask(env, "USE d", QUERY) == [(7,)]
    assert ask(env, "USE default_database", QUERY) == [(3,)]


def test_options_mean_what_they_mean_now(env: TableEnvironment) -> None:
    start = "CAST(TIMESTAMP '2020-01-01 00:00:00' AS TIMESTAMP_LTZ(0))"
    moment = f"SELECT DISTINCT {start} = TO_TIMESTAMP_LTZ(1577836800, 0) FROM t"
    ask(env, "SET 'table.local-time-zone' = 'UTC'")
    assert ask(env, moment) == [(True,)]
    ask(env, "SET 'table.local-time-zone' = 'Asia/Kolkata'")
    assert ask(env, moment) == [(False,)]


def test_a_function_that_is_another_one(
    env: TableEnvironment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, factor in (("first", 10), ("second", 100)):
        (tmp_path / f"known_plans_{name}.py").write_text(
            "from tidemill import udf\n\n\n"
            f"@udf(result_type='INT')\ndef times(n: int) -> int:\n    return n * {factor}\n"
        )
    monkeypatch.syspath_prepend(str(tmp_path))
    query = "SELECT SUM(times(n)) FROM t"
    made = "CREATE FUNCTION times AS 'known_plans_{}.times' LANGUAGE PYTHON"
    assert ask(env, made.format("first"), query) == [(30,)]
    assert ask(env, "DROP FUNCTION times", made.format("second"), query) == [(300,)]
    temporary = made.format("first").replace("CREATE", "CREATE TEMPORARY")
    assert ask(env, temporary, query) == [(30,)]


def test_an_answer_that_fails_is_said_where_it_is_asked_for(
    env: TableEnvironment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = tmp_path / "known_plans_broken.py"
    module.write_text(
        "from tidemill import udf\n\n\n@udf(result_type='INT')\ndef f() -> int:\n    return 1\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    made = "CREATE TEMPORARY SYSTEM FUNCTION f AS 'known_plans_broken.{}' LANGUAGE PYTHON"
    query = "SELECT SUM(f()) FROM t"
    assert ask(env, made.format("f"), query) == [(2,)]
    ask(env, "DROP TEMPORARY SYSTEM FUNCTION f")
    with pytest.raises(ValidationError, match=r"at line 1, column 12"):
        ask(env, made.format("gone"), query)


def test_a_frame_that_is_another_one(env: TableEnvironment) -> None:
    query = "SELECT SUM(n) FROM f"
    for values in ([1, 2], [30, 40]):
        env.create_temporary_view("f", pd.DataFrame({"n": values}))
        assert ask(env, query) == [(sum(values),)]
        ask(env, "DROP TEMPORARY VIEW f")


def test_a_query_in_another_mode(env: TableEnvironment) -> None:
    assert ask(env, QUERY) == [(3,)]
    ask(env, "SET 'execution.runtime-mode' = 'streaming'", "SET 'tidemill.epoch.max-rows' = '1'")
    kinds = [row.get_row_kind().name for row in env.execute_sql(QUERY).collect()]
    assert kinds == ["INSERT", "UPDATE_BEFORE", "UPDATE_AFTER"]


def test_a_failure_is_not_kept(env: TableEnvironment, tmp_path: Path) -> None:
    written(tmp_path / "late", "5\n")
    query = "SELECT n FROM late"
    for _ in range(2):
        with pytest.raises(ValidationError, match="late"):
            ask(env, query)
    assert ask(env, table("late", tmp_path / "late"), query) == [(5,)]


def test_many_threads_ask(env: TableEnvironment, tmp_path: Path) -> None:
    def asked(number: int) -> list[tuple[object, ...]]:
        own = new_session(parallelism__default="1", execution__runtime_mode="batch")
        written(tmp_path / f"t{number}", f"{number}\n")
        ask(own, table("t", tmp_path / f"t{number}"))
        return [row for _ in range(3) for row in ask(own, QUERY)]

    with ThreadPoolExecutor(6) as pool:
        assert list(pool.map(asked, range(6))) == [[(number,)] * 3 for number in range(6)]
