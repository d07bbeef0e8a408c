"""Which jobs have resident epochs, and how EXPLAIN and a warning say why others have not."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest
from pyspark import SparkContext
from pyspark.sql import SparkSession

from tests.runtime.running import Session
from tests.runtime.spark.resident.jobs import heard
from tidemill.session.context import SessionContext
from tidemill.session.dispatch import execute
from tidemill.sql.parser import parse_statement

_SPARK_JOBS = "Epochs are Spark jobs, because "
TABLES = (
    "CREATE TABLE a (k BIGINT, v STRING, l ARRAY<BIGINT>, p AS PROCTIME()) WITH ('connector'='datagen')",
    "CREATE TABLE f (k BIGINT, v STRING) WITH ('connector'='filesystem', 'path'='/p', 'format'='csv')",
    "CREATE TABLE j (k BIGINT, v STRING) "
    "WITH ('connector'='jdbc', 'url'='jdbc:postgresql://h/d', 'table-name'='j')",
    "CREATE TABLE s (x BIGINT, y STRING) WITH ('connector'='print')",
    "CREATE TABLE c (x STRING, y BIGINT) WITH ('connector'='blackhole')",
)


def epochs(query: str, *options: str) -> str:
    """The line of EXPLAIN about them; '' for none."""
    context = SessionContext()
    for text in (*TABLES, *options):
        execute(parse_statement(text), context)
    ((text,),) = list(execute(parse_statement(f"EXPLAIN EXECUTION_PLAN {query}"), context).collect())
    return "".join(line for line in str(text).splitlines() if "pochs are " in line)


@pytest.mark.parametrize(
    ("query", "why"),
    [
        ("INSERT INTO c SELECT v, COUNT(*) FROM f GROUP BY v", ""),
        ("INSERT INTO c SELECT v, COUNT(*) FROM a GROUP BY v", ""),
        ("SELECT v, COUNT(*) FROM f GROUP BY v", ""),
        ("SELECT k, v FROM f", ""),
        ("SELECT l FROM a", ""),
        ("INSERT INTO s SELECT k, v FROM f UNION ALL SELECT k, v FROM a", ""),
        (
            "INSERT INTO s SELECT k, v FROM f UNION ALL SELECT u, v FROM a, UNNEST(l) AS t (u)",
            "the JVM evaluates a table function",
        ),
        ("INSERT INTO s SELECT u, v FROM a, UNNEST(l) AS t (u)", "the JVM evaluates a table function"),
        ("INSERT INTO s SELECT k, v FROM j", "Spark reads scan"),
        ("INSERT INTO s SELECT k, REGEXP_REPLACE(v, '(?=a)', 'b') FROM f", "the JVM evaluates an expression"),
        ("INSERT INTO s SELECT a.k, j.v FROM a JOIN j FOR SYSTEM_TIME AS OF a.p ON a.k = j.k", ""),
        (
            "INSERT INTO s SELECT a.k, j.v FROM a LEFT JOIN j FOR SYSTEM_TIME AS OF a.p"
            " ON a.k = j.k AND j.v > a.v",
            "the JVM evaluates a table function",
        ),
    ],
)
def test_explain_says_why(query: str, why: str) -> None:
    said = epochs(query)
    assert said == "Epochs are resident" if not why else said.startswith(f"{_SPARK_JOBS}{why}")


def test_explain_says_nothing_if_the_option_is_off() -> None:
    assert epochs("INSERT INTO s SELECT k, v FROM f", "SET 'tidemill.epoch.resident' = 'false'") == ""


def test_explain_while_spark_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Spark starts in a thread of its own: its context is known before it knows its master."""
    monkeypatch.setattr(SparkContext, "_active_spark_context", object.__new__(SparkContext))
    assert epochs("INSERT INTO c SELECT v, COUNT(*) FROM f GROUP BY v") == "Epochs are resident"


def test_a_job_that_cannot_warns_once(
    spark: SparkSession, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "t.csv").write_text("1\n2\n")
    session = Session({"tidemill.epoch.resident": "true", "tidemill.epoch.max-rows": "1"})
    session.execute(
        f"CREATE TABLE t (x INT) WITH ('connector'='filesystem', 'path'='{tmp_path}/t.csv', 'format'='csv')"
    )
    with caplog.at_level(logging.WARNING, "tidemill"), heard() as found:
        query = "SELECT REGEXP_REPLACE(CAST(x AS STRING), '(?=1)', '-') FROM t"
        assert session.changes(query) == [("+I", ("-1",)), ("+I", ("2",))]
    (warning,) = (r.getMessage() for r in caplog.records if "resident" in r.getMessage())
    assert warning == (
        "'tidemill.epoch.resident' has no effect on this job: the JVM evaluates an expression."
    )
    assert found.resident == found.spark == []
