"""The catalog over a savepoint: its tables have what the job has shown."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.session.environments import ask, new_session
from tidemill.errors import NotPermittedError, NotSupportedError, StateError, ValidationError
from tidemill.files.fence import Fence
from tidemill.session.environment import TableEnvironment
from tidemill.session.permissions import Permissions

LONG = 300.0
SLICE = "1704067800000"
"""The end of the one window, in milliseconds."""


@pytest.fixture(scope="module")
def job(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[TableEnvironment, Path]]:
    """Sums of three cities by themselves and by window; a job that has stopped, and its savepoint."""
    root = tmp_path_factory.mktemp("state")
    (root / "in").mkdir()
    lines = [f"c{i % 3},u{i % 4},{i},2024-01-01 00:00:{i % 60:02d}" for i in range(90)]
    (root / "in" / "a.csv").write_text("\n".join(lines) + "\n")
    options = {"parallelism.default": "2", "execution.checkpointing.dir": str(root / "job")}
    session = TableEnvironment.create(options)
    ask(
        session,
        f"""CREATE TABLE t (city STRING, buyer STRING, price INT, ts TIMESTAMP(3),
         WATERMARK FOR ts AS ts) WITH (
         'connector'='filesystem', 'path'='{root}/in', 'format'='csv', 'source.monitor-interval'='1 s')""",
        "CREATE TABLE sums (city STRING, n BIGINT, total INT, buyers BIGINT) WITH ('connector'='blackhole')",
        "CREATE TABLE windows (city STRING, n BIGINT) WITH ('connector'='blackhole')",
    )
    started = session.execute_sql(
        """EXECUTE STATEMENT SET BEGIN
        INSERT INTO sums SELECT city, COUNT(*), SUM(price), COUNT(DISTINCT buyer) FROM t GROUP BY city;
        INSERT INTO windows SELECT city, COUNT(*) FROM
         TABLE(TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '10' MINUTE)) GROUP BY window_start, window_end, city;
        END"""
    ).job
    assert started is not None
    end = time.monotonic() + LONG
    while not list((root / "job").rglob("1.commit.json")):
        assert time.monotonic() < end
        time.sleep(0.05)
    yield session, root
    started.cancel()


def test_state_is_tables(job: tuple[TableEnvironment, Path]) -> None:
    """A savepoint that a job has written while it ran."""
    running, root = job
    ((job_id, *_),) = ask(running, "SHOW JOBS")
    place = str(root / "savepoint")
    ask(running, f"CREATE SAVEPOINT '{place}' FOR JOB '{job_id}'")
    session = new_session(parallelism__default="2", execution__runtime_mode="batch")
    ask(session, f"CREATE CATALOG s WITH ('type'='savepoint', 'path'='{place}')", "USE CATALOG s")
    assert [name for (name,) in ask(session, "SHOW TABLES")] == [
        "columns",
        "epochs",
        "group_aggregate_1",
        "group_aggregate_1_distinct_buyer",
        "operators",
        "sizes",
        "window_aggregate_1",
    ]
    assert [row[:2] for row in ask(session, "DESCRIBE group_aggregate_1")] == [
        ("city", "STRING"),
        ("COUNT(*)", "BIGINT"),
        ("COUNT(DISTINCT buyer)", "BIGINT"),
        ("SUM(price)", "BIGINT"),
        ("partition_id", "INT"),
    ]
    totals = "SELECT city, `COUNT(*)`, `SUM(price)`, `COUNT(DISTINCT buyer)` FROM group_aggregate_1"
    assert sorted(ask(session, totals)) == [("c0", 30, 1305, 4), ("c1", 30, 1335, 4), ("c2", 30, 1365, 4)]
    kept = """SELECT s.city, COUNT(*) AS n, MAX(buyer) AS last FROM group_aggregate_1_distinct_buyer d
     JOIN group_aggregate_1 s ON s.city = d.city AND s.partition_id = d.partition_id GROUP BY s.city"""
    assert sorted(ask(session, kept)) == [("c0", 4, "u3"), ("c1", 4, "u3"), ("c2", 4, "u3")]
    assert sorted(ask(session, "SELECT due, city, `COUNT(*)` FROM window_aggregate_1")) == [
        (int(SLICE), city, 30) for city in ("c0", "c1", "c2")
    ]
    assert ask(session, "SELECT SUM(row_count) AS n FROM sizes WHERE table_name = 'group_aggregate_1'") == [
        (3,)
    ]
    with pytest.raises(NotSupportedError, match="Catalog 's' is a savepoint: changes of it"):
        ask(session, "DROP TABLE group_aggregate_1")


def test_what_a_catalog_needs(tmp_path: Path) -> None:
    session = new_session()
    with pytest.raises(ValidationError, match="Catalog 's' needs the option 'path'"):
        ask(session, "CREATE CATALOG s WITH ('type'='savepoint')")
    ask(session, f"CREATE CATALOG s WITH ('type'='savepoint', 'path'='{tmp_path}/nothing')")
    with pytest.raises(StateError, match="is not a savepoint: there is nothing"):
        ask(session, "SHOW TABLES FROM s.state")
    session.context.permissions = Permissions(fence=Fence(allowed=("/elsewhere",)))
    with pytest.raises(NotPermittedError, match="Option 'path' of the catalog names a path"):
        ask(session, "SHOW TABLES FROM s.`state`")
