"""``tidemill run --format json``: documents per script, statements up to the first that fails."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tidemill.client import main


@pytest.fixture
def run(spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Any:
    def documents(*scripts: str, options: tuple[str, ...] = ()) -> list[dict[str, Any]]:
        files = []
        for number, script in enumerate(scripts):
            files.append(tmp_path / f"s{number}.sql")
            files[-1].write_text(script, encoding="utf-8")
        assert main.main(["run", "--format", "json", *options, *map(str, files)]) == 0
        return [json.loads(line) for line in capsys.readouterr().out.splitlines()]

    return documents


def test_rows_columns_and_kinds(run: Any) -> None:
    (document,) = run(
        "SET 'a'='b'; SELECT 1 AS a, CAST(NULL AS STRING) AS s, x'0aff' AS x, 1.50 AS d; RESET;"
    )
    assert document["script"] == "s0.sql"
    assert document["ok"] is True
    setting, query, reset = document["statements"]
    assert (setting["kind"], query["kind"], reset["kind"]) == ("set", "query", "reset")
    assert "rows" not in setting
    assert query["resultKind"] == "SUCCESS_WITH_CONTENT"
    assert len(query["job_id"]) == 32
    assert query["columns"] == [
        {"name": "a", "type": "INT NOT NULL"},
        {"name": "s", "type": "STRING"},
        {"name": "x", "type": "BINARY(2) NOT NULL"},
        {"name": "d", "type": "DECIMAL(3, 2) NOT NULL"},
    ]
    assert query["rows"] == [["+I", 1, None, "x'0aff'", "1.50"]]


def test_ddl_says_ok_and_explain_has_its_text(run: Any) -> None:
    (document,) = run("CREATE TABLE t (a INT) WITH ('connector'='blackhole'); EXPLAIN SELECT 1 AS a;")
    created, explained = document["statements"]
    assert created["rows"] == [["+I", "OK"]]
    assert created["resultKind"] == "SUCCESS"
    assert explained["kind"] == "explain"
    assert explained["explain"] == explained["rows"][0][1]


def test_each_script_has_a_session_of_its_own_and_a_failure_ends_it(run: Any) -> None:
    first, second = run(
        "CREATE TABLE t (a INT) WITH ('connector'='blackhole');\n  SELECT nope FROM t; SELECT 1;",
        "SET 'x'='y';\nSELECT * FROM t;",
    )
    assert first["ok"] is False
    assert len(first["statements"]) == 2
    error = first["statements"][1]["error"]
    assert error["code"] == "VALIDATION"
    assert error["position"] == {"line": 2, "column": 10}
    assert "nope" in error["message"]
    assert "Object 't' not found" in second["statements"][1]["error"]["message"]


def test_what_does_not_parse_has_no_kind(run: Any) -> None:
    (document,) = run("SELECT 1 AS year")
    statement = document["statements"][0]
    assert "kind" not in statement
    assert statement["error"]["code"] == "SQL_SYNTAX"
    assert 'Encountered "year"' in statement["error"]["message"]


def test_print_sinks_write_into_the_document(run: Any) -> None:
    (document,) = run(
        "CREATE TABLE p (a INT) WITH ('connector'='print'); INSERT INTO p VALUES (1), (2); SELECT 3 AS a;"
    )
    insert, query = document["statements"][1:]
    assert insert["kind"] == "insert"
    assert sorted(insert["stdout"]) == ["+I[1]", "+I[2]"]
    assert "rows" not in insert
    assert "stdout" not in query


@pytest.mark.parametrize("mode", ["streaming", "batch"])
def test_columns_go_to_a_sink_by_their_places(run: Any, mode: str) -> None:
    """Whatever the query calls them, twice the same or as another of the sink's."""
    (document,) = run(
        f"SET 'execution.runtime-mode'='{mode}'; CREATE TABLE p (a INT, b INT) WITH ('connector'='print');"
        "INSERT INTO p SELECT x AS b, y AS b FROM (VALUES (1, 2)) AS t(x, y);"
        "INSERT INTO p SELECT a AS b, b AS a FROM (VALUES (1, 2)) AS t(a, b);"
        "INSERT INTO p (b, a) SELECT a, b FROM (VALUES (1, 2)) AS t(a, b);"
    )
    assert [s["stdout"] for s in document["statements"][2:]] == [["+I[1, 2]"], ["+I[1, 2]"], ["+I[2, 1]"]]


def test_rows_before_an_error_stay(run: Any, tmp_path: Path) -> None:
    (tmp_path / "n.csv").write_text("1\n2\n0\n")
    (document,) = run(
        "CREATE TABLE n (v INT) WITH ('connector'='filesystem','path'='${DIR}/n.csv','format'='csv');"
        "SELECT 10 / v AS x FROM n;",
        options=("-D", "tidemill.epoch.max-rows=1"),
    )
    statement = document["statements"][1]
    assert statement["rows"] == [["+I", 10], ["+I", 5]]
    assert statement["error"]["code"] == "EXECUTION"


def test_variables_are_put_in(run: Any) -> None:
    (document,) = run("SELECT '${who}' AS w, '${other}' AS o", options=("-V", "who=me"))
    assert document["statements"][0]["rows"] == [["+I", "me", "${other}"]]


def test_a_script_that_cannot_be_read_is_data(
    spark: SparkSession, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main.main(["run", "--format", "json", "/no/such/file.sql"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["ok"] is False
    assert document["statements"] == []
    assert "No such file" in document["error"]["message"]
