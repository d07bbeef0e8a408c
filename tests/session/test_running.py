"""Queries and INSERTs run: rows with kinds, Python values, views, DataFrames in and out, both modes."""

from __future__ import annotations

import io
import signal
import tempfile
import threading
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.session.environments import ask, new_session
from tidemill.changelog.rowkind import RowKind
from tidemill.errors import Position, TidemillError, ValidationError
from tidemill.session.environment import TableEnvironment

UV = """
SELECT `day`, SUM(cnt) total FROM (
  SELECT `day`, MOD(user_id, 10), COUNT(DISTINCT user_id) AS cnt FROM source GROUP BY `day`, MOD(user_id, 10))
GROUP BY `day`
"""


@pytest.fixture
def session(spark: SparkSession) -> TableEnvironment:
    return new_session()


@pytest.fixture
def visits(session: TableEnvironment, tmp_path: Path) -> TableEnvironment:
    (tmp_path / "visits.csv").write_text("1,2023-12-19\n2,2023-12-19\n11,2023-12-19\n")
    session.execute_sql(
        "CREATE TABLE source (user_id BIGINT, `day` STRING) "
        f"WITH ('connector'='filesystem', 'path'='{tmp_path}/visits.csv', 'format'='csv')"
    )
    return session


def changes(session: TableEnvironment, query: str) -> list[tuple[str, int]]:
    return [(r.kind.short, r[1]) for r in session.execute_sql(query).collect()]


def test_unique_visitors_in_one_bundle_are_one_row(visits: TableEnvironment) -> None:
    assert changes(visits, UV) == [("+I", 3)]


def test_unique_visitors_without_mini_batch_change_row_by_row(visits: TableEnvironment) -> None:
    visits.execute_sql("SET 'table.exec.mini-batch.enabled' = 'false'")
    assert changes(visits, UV) == [
        ("+I", 1),
        ("-U", 1),
        ("+U", 2),
        ("-U", 2),
        ("+U", 1),
        ("-U", 1),
        ("+U", 3),
    ]


def test_batch_gives_the_final_row(visits: TableEnvironment) -> None:
    visits.execute_sql("SET 'execution.runtime-mode' = 'batch'")
    result = visits.execute_sql(UV)
    assert not result.changelog
    assert [tuple(r) for r in result.collect()] == [("2023-12-19", 3)]


def test_rows_have_names_kinds_and_python_values(session: TableEnvironment) -> None:
    row = next(session.sql_query("SELECT 1 AS a, 'x' AS b, TRUE AS c, ARRAY[1, 2] AS d").execute().collect())
    assert row.kind is RowKind.INSERT
    assert row["d"] == [1, 2]
    assert tuple(row) == (1, "x", True, [1, 2])


def test_to_pandas_folds_the_changelog(visits: TableEnvironment) -> None:
    visits.get_config().set("tidemill.epoch.max-rows", "1")
    result = visits.execute_sql("SELECT `day`, COUNT(*) AS n FROM source GROUP BY `day`")
    frame = result.to_pandas()
    assert frame.to_dict("records") == [{"day": "2023-12-19", "n": 3}]


def test_epochs_of_one_row_show_every_update(visits: TableEnvironment) -> None:
    visits.get_config().set("tidemill.epoch.max-rows", "1")
    query = "SELECT `day`, COUNT(*) AS n FROM source GROUP BY `day`"
    assert changes(visits, query) == [("+I", 1), ("-U", 1), ("+U", 2), ("-U", 2), ("+U", 3)]


def test_print_writes_the_table(session: TableEnvironment) -> None:
    out = io.StringIO()
    session.sql_query("SELECT 1 AS a").execute().print(out)
    assert out.getvalue().splitlines()[1:4] == [
        "| op |           a |",
        "+----+-------------+",
        "| +I |           1 |",
    ]


def test_a_dataframe_goes_in_and_comes_out(session: TableEnvironment, spark: SparkSession) -> None:
    frame = spark.createDataFrame(
        [(1, "a", {"k": 1}), (2, "b", {}), (3, "a", None)], "id INT NOT NULL, g STRING, m MAP<STRING, INT>"
    )
    session.create_temporary_view("people", frame)
    assert ask(session, "DESCRIBE people") == [
        ("id", "INT", False, None, None, None),
        ("g", "STRING", True, None, None, None),
        ("m", "MAP<STRING NOT NULL, INT>", True, None, None, None),
    ]
    table = session.sql_query("SELECT g, SUM(id) AS s FROM people GROUP BY g")
    assert sorted(tuple(r) for r in table.to_spark().collect()) == [("a", 4), ("b", 2)]
    assert sorted(tuple(r) for r in table.execute().collect()) == [("a", 4), ("b", 2)]
    maps = [r[0] for r in session.execute_sql("SELECT m FROM people").collect()]
    assert sorted(map(repr, maps)) == ["None", "{'k': 1}", "{}"]
    assert session.drop_temporary_view("people")
    assert not session.drop_temporary_view("people")


def test_a_table_becomes_a_view(session: TableEnvironment) -> None:
    session.create_temporary_view("ones", session.sql_query("SELECT 1 AS a"))
    assert [tuple(r) for r in session.from_path("ones").execute().collect()] == [(1,)]
    with pytest.raises(ValidationError, match="takes a query"):
        session.sql_query("SHOW TABLES")


def test_inserts_and_create_table_as_write_files(visits: TableEnvironment, tmp_path: Path) -> None:
    out = tmp_path / "out"
    visits.execute_sql(
        f"CREATE TABLE copied WITH ('connector'='filesystem', 'path'='{out}', 'format'='csv') "
        "AS SELECT user_id, `day` FROM source"
    ).wait(60)
    assert ask(visits, "DESCRIBE copied")[0][:2] == ("user_id", "BIGINT")
    assert sorted(ask(visits, "SELECT user_id FROM copied")) == [(1,), (2,), (11,)]
    visits.execute_sql("INSERT INTO copied VALUES (7, 'x')").wait(60)
    assert sorted(ask(visits, "SELECT user_id FROM copied")) == [(1,), (2,), (7,), (11,)]


def test_a_statement_set_is_one_job(visits: TableEnvironment, capsys: pytest.CaptureFixture[str]) -> None:
    visits.execute_sql("CREATE TABLE p (a BIGINT) WITH ('connector'='print', 'print-identifier'='p')")
    both = visits.create_statement_set()
    both.add_insert_sql("INSERT INTO p SELECT MAX(user_id) FROM source")
    both.add_insert_sql("INSERT INTO p SELECT COUNT(*) FROM source")
    both.execute().wait(60)
    assert sorted(capsys.readouterr().out.splitlines()) == ["p> +I[11]", "p> +I[3]"]
    with pytest.raises(ValidationError, match="empty"):
        both.execute()


def test_what_fails_in_the_job_fails_for_the_reader(visits: TableEnvironment) -> None:
    with pytest.raises(TidemillError, match="zero"):
        ask(visits, "SELECT 1 / (user_id - 2) FROM source")


def test_closing_a_result_stops_its_job(session: TableEnvironment) -> None:
    session.execute_sql("CREATE TABLE g (n BIGINT) WITH ('connector'='datagen', 'rows-per-second'='100')")
    result = session.execute_sql("SELECT n FROM g")
    with result.collect() as rows:
        next(rows)
    assert result.job is not None
    assert not result.job.is_running()


def test_explain_has_three_sections(visits: TableEnvironment) -> None:
    text = visits.explain_sql("SELECT COUNT(*) FROM source", "CHANGELOG_MODE")
    assert "== Optimized Physical Plan ==\nGroupAggregate(select=[COUNT(*) AS EXPR$0], changelogMode=" in text
    assert visits.sql_query("SELECT 1 AS a").explain().startswith("== Abstract Syntax Tree ==")


def test_the_jobs_of_a_script_have_checkpoints_of_their_own(visits: TableEnvironment, tmp_path: Path) -> None:
    visits.get_config().set("execution.checkpointing.dir", str(tmp_path / "c"))
    assert ask(visits, "SELECT COUNT(*) FROM source") == [(3,)]
    assert ask(visits, "SELECT SUM(user_id) FROM source") == [(14,)]
    assert (tmp_path / "c" / "job.json").exists()
    assert (tmp_path / "c" / "job-2" / "job.json").exists()
    again = new_session(execution__checkpointing__dir=str(tmp_path / "c"))
    again.context.catalogs = visits.context.catalogs
    assert ask(again, "SELECT COUNT(*) FROM source") == []
    with pytest.raises(TidemillError, match="belongs to another query"):
        ask(again, "SELECT MAX(user_id) FROM source")
    assert ask(again, "SELECT SUM(user_id) FROM source") == [], "the job that was refused has no number"


WINDOWS = "SELECT COUNT(*)\nFROM TABLE(HOP(TABLE t, DESCRIPTOR(ts), INTERVAL '1' HOUR, INTERVAL '2' HOUR))"


def test_a_stream_has_windows_by_a_time_attribute_only(session: TableEnvironment) -> None:
    session.execute_sql("CREATE TEMPORARY VIEW t AS SELECT TIMESTAMP '2020-01-01' AS ts")
    with pytest.raises(ValidationError, match="requires the timecol is a time attribute type") as raised:
        session.execute_sql(WINDOWS).collect()
    assert raised.value.position == Position(2, 12)


def test_a_batch_has_windows_by_any_time(session: TableEnvironment) -> None:
    session.execute_sql("SET 'execution.runtime-mode' = 'batch'")
    session.execute_sql("CREATE TEMPORARY VIEW t AS SELECT TIMESTAMP '2020-01-01' AS ts")
    assert ask(session, WINDOWS) == [(2,)]


def test_ctrl_c_ends_a_query_and_its_state_goes(
    session: TableEnvironment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    session.execute_sql("CREATE TABLE slow (n INT) WITH ('connector' = 'datagen', 'rows-per-second' = '1')")
    result = session.execute_sql("SELECT COUNT(*) FROM slow")
    rows = result.collect()
    next(rows)
    assert result.job is not None
    assert list(tmp_path.glob("tidemill-*/state")) != []
    interrupt = threading.Timer(0.1, signal.pthread_kill, (threading.main_thread().ident, signal.SIGINT))
    interrupt.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            list(rows)
    finally:
        signal.signal(signal.SIGINT, before)
    result.job.wait()
    assert list(tmp_path.glob("tidemill-*/state")) == []
