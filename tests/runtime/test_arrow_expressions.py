"""Projections and filters over Arrow give what the JVM gives, and leave to it what is not exact there."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.runtime.running import Change, Session, folded
from tidemill.errors import ExecutionError
from tidemill.runtime.checkpoint.epochs import EpochPlan
from tidemill.runtime.epoch_loop import StreamingJob

NAMES = ("Apple", "apple", "", "\\N", "pear/plum")
QUERIES = {
    "projected and filtered": "SELECT n * 0.908, UPPER(s), HOUR(ts) FROM t WHERE MOD(n, 3) = 1 AND k <> 2",
    "rows are counted": "SELECT COUNT(*) FROM t WHERE n < 70",
    "keys are computed": "SELECT d, COUNT(*), MAX(n) FROM (SELECT DATE_FORMAT(ts, 'HH:mm') AS d, n FROM t"
    " WHERE s LIKE '%p%') GROUP BY d",
    "between operators": "SELECT m - 1, SUM(n) FROM (SELECT k + 1 AS m, SUM(n) AS n FROM t GROUP BY k)"
    " WHERE n > 500 GROUP BY m - 1",
    "by event time": "SELECT window_start, k, SUM(m)"
    " FROM TABLE(TUMBLE(TABLE v, DESCRIPTOR(ts), INTERVAL '1' MINUTE)) WHERE m > 8"
    " GROUP BY window_start, window_end, k",
    "two readers": "SELECT x.n, y.n FROM (SELECT n + 1 AS n FROM t WHERE k = 1) AS x"
    " JOIN (SELECT n * 2 AS n, s FROM t WHERE CHAR_LENGTH(s) > 1) AS y ON x.n = y.n",
    "a union": "SELECT m, COUNT(*) FROM (SELECT -n AS m FROM t UNION ALL SELECT n + 1 FROM t WHERE k > 0)"
    " GROUP BY m",
    "a user's function": "SELECT n, letters(s, 'p') FROM t WHERE letters(s, 'p') > 1 OR n < 9",
    "only the filter has kernels": "SELECT INITCAP(s), n FROM t WHERE k = 1 AND n > 9",
    "the source gives no Arrow": "SELECT a + 1 FROM (VALUES (1), (2)) AS r(a) WHERE a > 1",
}


def session(folder: Path, arrow: bool) -> Session:
    made = Session(
        {
            "tidemill.epoch.max-rows": "50",
            "parallelism.default": "2",
            "table.exec.arrow-expressions.enabled": str(arrow).lower(),
        }
    )
    made.execute(
        "CREATE TABLE t (k INT, n BIGINT, s STRING, ts TIMESTAMP(3), WATERMARK FOR ts AS ts) WITH ("
        "'format' = 'csv', 'connector' = 'filesystem', 'csv.null-literal' = '\\N', "
        f"'path' = '{folder / 't.csv'}')",
        "CREATE FUNCTION letters AS 'tidemill.connectors.nexmark.functions.count_char' LANGUAGE PYTHON",
        "CREATE VIEW v AS SELECT ts, k, n + 1 AS m FROM t WHERE s IS NOT NULL",
    )
    return made


def write(folder: Path, names: tuple[str, ...] = NAMES, first: int = 0) -> None:
    lines = (
        f"{n % 4},{n},{names[n % len(names)]},2024-01-01 00:{n // 60:02}:{n % 60:02}\n"
        for n in range(first, first + 120)
    )
    (folder / "t.csv").write_text("".join(lines))


@pytest.mark.parametrize("query", QUERIES.values(), ids=QUERIES)
def test_one_meaning(tmp_path: Path, spark: SparkSession, query: str) -> None:
    write(tmp_path)
    over_arrow, in_the_jvm = (folded(session(tmp_path, arrow).changes(query)) for arrow in (True, False))
    assert over_arrow == in_the_jvm
    assert over_arrow


def test_what_is_not_exact_is_left_to_the_jvm(
    tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From the first such epoch on, which runs again."""
    discarded: list[int] = []
    discard = StreamingJob._discard

    def noted(job: StreamingJob, plan: EpochPlan) -> None:
        discarded.append(plan.epoch)
        discard(job, plan)

    monkeypatch.setattr(StreamingJob, "_discard", noted)
    write(tmp_path, ("STRASSE", "İ", "É"))
    found: list[Change] = session(tmp_path, True).changes("SELECT n, LOWER(s) FROM t WHERE n < 3")
    assert folded(found) == {(0, "strasse"): 1, (1, "i\u0307"): 1, (2, "é"): 1}
    assert discarded == [1]


def test_the_current_time_is_that_of_the_epoch(tmp_path: Path, spark: SparkSession) -> None:
    write(tmp_path)
    changes = session(tmp_path, True).changes("SELECT n, PROCTIME(), NOW() FROM t")
    assert {row[0] for _, row in changes} == set(range(120))
    times = {row[0]: row[1:] for _, row in changes}
    assert len({times[n] for n in range(50)}) == len({times[n] for n in range(50, 100)}) == 1
    assert len(set(times.values())) == 3
    assert all(now == proctime for now, proctime in times.values())
    age = dt.datetime.now(dt.UTC) - max(times.values())[0].astimezone(dt.UTC)
    assert dt.timedelta(0) <= age < dt.timedelta(minutes=5)


def test_errors_are_the_jvm_s(tmp_path: Path, spark: SparkSession) -> None:
    write(tmp_path)
    with pytest.raises(ExecutionError, match=r"\(100 / n\) failed: / by zero"):
        session(tmp_path, True).changes("SELECT 100 / n FROM t")
