"""The catalog over a savepoint: its tables have what the job has shown."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.session.environments import ask, new_session
from tidemill.errors import NotPermittedError, NotSupportedError, StateError, ValidationError
from tidemill.files.fence import Fence
from tidemill.session.environment import TableEnvironment
from tidemill.session.jobs.job import JobHandle
from tidemill.session.permissions import Permissions

LONG = 300.0
SLICE = "1704067800000"
"""The end of the one window, in milliseconds."""


@pytest.fixture(scope="module")
def job(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[TableEnvironment, Path]]:
    """Sums of three cities by themselves and by window, by a job that waits for more."""
    root = tmp_path_factory.mktemp("state")
    (root / "in").mkdir()
    lines = [f"c{i % 3},u{i % 4},{i},2024-01-01 00:00:{i % 60:02d}" for i in range(90)]
    (root / "in" / "a.csv").write_text("\n".join(lines) + "\n")
    options = {"parallelism.default": "2", "execution.checkpointing.dir": str(root / "job")}
    session = TableEnvironment.create(options)
    started = start(session, root)
    until(lambda: bool(list((root / "job").rglob("1.commit.json"))))
    yield session, root
    started.cancel()


def start(session: TableEnvironment, root: Path) -> JobHandle:
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
    return started


def until(what: Callable[[], bool]) -> None:
    end = time.monotonic() + LONG
    while not what():
        assert time.monotonic() < end
        time.sleep(0.05)


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
        "largest_keys",
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
    largest = "SELECT key_text, row_count FROM largest_keys WHERE table_name LIKE '%_distinct_buyer'"
    assert sorted(ask(session, largest)) == [(f'{{"city": "c{n}"}}', 4) for n in range(3)]
    ask(session, "LOAD MODULE state")
    known = ask(session, f"SELECT * FROM savepoint_metadata('{place}')")
    listed = ask(session, "SELECT text, name, id, partition_count, byte_count FROM operators")
    assert known == [(1, text, name, key, n, 4096, n, 0, size) for text, name, key, n, size in listed]
    assert len(known) == 2
    assert ask(session, f"DIFF SAVEPOINT '{place}' WITH '{place}'") == []
    with pytest.raises(NotSupportedError, match="Catalog 's' is a savepoint: changes of it"):
        ask(session, "DROP TABLE group_aggregate_1")


def test_a_running_job_is_looked_at_anew_by_each_statement(
    job: tuple[TableEnvironment, Path], tmp_path: Path
) -> None:
    running, _ = job
    ((job_id, *_),) = ask(running, "SHOW JOBS")
    ask(
        running,
        f"SET 'execution.checkpointing.savepoint-dir' = '{tmp_path}'",
        f"CREATE CATALOG j WITH ('type'='savepoint', 'job'='{job_id}')",
        "SET 'execution.runtime-mode' = 'batch'",
    )
    total = "SELECT SUM(`COUNT(*)`) AS n FROM j.state.group_aggregate_1"
    for _ in range(3):
        assert ask(running, total) == [(90,)]
    assert len(list(tmp_path.iterdir())) == 2, "older looks are gone"
    ask(running, "CREATE CATALOG gone WITH ('type'='savepoint', 'job'='nosuch')")
    with pytest.raises(ValidationError, match="There is no job 'nosuch'"):
        ask(running, "SHOW TABLES FROM gone.state")


@pytest.mark.thorough
def test_a_job_goes_on_from_an_edited_savepoint(job: tuple[TableEnvironment, Path], tmp_path: Path) -> None:
    """A city is there that no row had, one total is mended, and a city is forgotten."""
    running, root = job
    ((job_id, *_),) = ask(running, "SHOW JOBS")
    ask(running, f"CREATE SAVEPOINT '{tmp_path}/old' FOR JOB '{job_id}'")
    editor = new_session(parallelism__default="2", execution__runtime_mode="batch")
    insert = """INSERT INTO group_aggregate_1 (city, `COUNT(*)`, `SUM(price)`, `COUNT(DISTINCT buyer)`)
     VALUES ('c9', 1, 7, 0)"""
    ask(editor, f"CREATE CATALOG s WITH ('type'='savepoint', 'path'='{tmp_path}/old')", "USE CATALOG s")
    with pytest.raises(ValidationError, match=r"'tidemill.savepoint.target' does not say where"):
        editor.execute_sql(insert).wait()
    ask(editor, f"SET 'tidemill.savepoint.target' = '{tmp_path}/new'")
    with pytest.raises(ValidationError, match=r"column 'COUNT\(\*\)' must be 1 or more"):
        editor.execute_sql(insert.replace("'c9', 1", "'c9', 0")).wait()
    assert not (tmp_path / "new").exists()
    editor.execute_sql(insert).wait()
    totals = "SELECT city, `COUNT(*)`, `SUM(price)` FROM group_aggregate_1"
    assert len(ask(editor, totals)) == 3, "the old savepoint stays as it is"
    update = "UPDATE group_aggregate_1 SET `SUM(price)` = `SUM(price)` + 1000 WHERE city = 'c1'"
    delete = "DELETE FROM group_aggregate_1 WHERE city = 'c2'"
    merge = """MERGE INTO group_aggregate_1 g USING (VALUES ('c0', 5), ('c7', 6)) AS m (city, more)
     ON g.city = m.city WHEN MATCHED THEN UPDATE SET `SUM(price)` = `SUM(price)` + more
     WHEN NOT MATCHED THEN INSERT (city, `COUNT(*)`, `SUM(price)`, `COUNT(DISTINCT buyer)`)
     VALUES (m.city, 1, more, 0)"""
    changes = ((update, "new", "updated"), (delete, "updated", "deleted"), (merge, "deleted", "merged"))
    for change, old, new in changes:
        ask(editor, f"CREATE CATALOG {new} WITH ('type'='savepoint', 'path'='{tmp_path}/{old}')")
        ask(editor, f"USE CATALOG {new}", f"SET 'tidemill.savepoint.target' = '{tmp_path}/{new}'")
        editor.execute_sql(change).wait()
    ask(editor, f"CREATE CATALOG e WITH ('type'='savepoint', 'path'='{tmp_path}/merged')")
    ask(editor, "USE CATALOG e")
    assert sorted(ask(editor, totals)) == [("c0", 30, 1310), ("c1", 30, 2335), ("c7", 1, 6), ("c9", 1, 7)]
    # A job goes on from it, on more partitions, with rows that were not there before.
    options = {
        "parallelism.default": "3",
        "execution.checkpointing.dir": str(tmp_path / "again"),
        "execution.state-recovery.path": str(tmp_path / "merged"),
    }
    again = TableEnvironment.create(options)
    lines = ["c1,u9,5,2024-01-01 00:01:00", "c9,u1,5,2024-01-01 00:01:00", "c2,u1,9,2024-01-01 00:01:00"]
    (root / "in" / "b.csv").write_text("\n".join(lines) + "\n")
    going_on = start(again, root)
    until(lambda: bool(list((tmp_path / "again").rglob("2.commit.json"))))
    going_on.cancel()
    ask(editor, f"CREATE CATALOG a WITH ('type'='savepoint', 'path'='{tmp_path}/again')", "USE CATALOG a")
    totals = totals.replace(" FROM", ", `COUNT(DISTINCT buyer)` FROM")
    assert sorted(ask(editor, totals)) == [
        ("c0", 30, 1310, 4),
        ("c1", 31, 2340, 5),
        ("c2", 1, 9, 1),
        ("c7", 1, 6, 0),
        ("c9", 2, 12, 1),
    ]


@pytest.mark.thorough
def test_slices_of_windows_can_be_mended(job: tuple[TableEnvironment, Path], tmp_path: Path) -> None:
    """What the other tests have read meanwhile is there as well."""
    running, _ = job
    ((job_id, *_),) = ask(running, "SHOW JOBS")
    ask(running, f"CREATE SAVEPOINT '{tmp_path}/old' FOR JOB '{job_id}'")
    editor = new_session(parallelism__default="2", execution__runtime_mode="batch")
    ask(editor, f"CREATE CATALOG s WITH ('type'='savepoint', 'path'='{tmp_path}/old')", "USE CATALOG s")
    ask(editor, f"SET 'tidemill.savepoint.target' = '{tmp_path}/updated'")
    with pytest.raises(ValidationError, match="is not in the state: rows of this table can only be changed"):
        editor.execute_sql(
            f"INSERT INTO window_aggregate_1 (city, due, `COUNT(*)`) VALUES ('c8', {SLICE}, 1)"
        ).wait()
    with pytest.raises(ValidationError, match=r"column 'COUNT\(\*\)' must be 1 or more. The row: .*c1"):
        editor.execute_sql("UPDATE window_aggregate_1 SET `COUNT(*)` = -1 WHERE city = 'c1'").wait()
    for column in ("city", "due", "partition_id"):
        with pytest.raises(
            NotSupportedError, match=f"UPDATE of the column '{column}', which tells rows apart"
        ):
            editor.execute_sql(f"UPDATE window_aggregate_1 SET {column} = NULL")
    editor.execute_sql("UPDATE window_aggregate_1 SET `COUNT(*)` = 77 WHERE city = 'c1'").wait()
    ask(editor, f"CREATE CATALOG u WITH ('type'='savepoint', 'path'='{tmp_path}/updated')", "USE CATALOG u")
    ask(editor, f"SET 'tidemill.savepoint.target' = '{tmp_path}/deleted'")
    editor.execute_sql("DELETE FROM window_aggregate_1 WHERE city = 'c0'").wait()
    ask(editor, f"CREATE CATALOG d WITH ('type'='savepoint', 'path'='{tmp_path}/deleted')", "USE CATALOG d")
    found = dict(ask(editor, "SELECT city, `COUNT(*)` FROM window_aggregate_1"))
    assert "c0" not in found
    assert (found["c1"], found["c2"] >= 30) == (77, True)


def test_what_a_catalog_needs(tmp_path: Path) -> None:
    session = new_session()
    with pytest.raises(
        ValidationError, match="Catalog 's' needs either the option 'path' or the option 'job'"
    ):
        ask(session, "CREATE CATALOG s WITH ('type'='savepoint')")
    ask(session, f"CREATE CATALOG s WITH ('type'='savepoint', 'path'='{tmp_path}/nothing')")
    with pytest.raises(StateError, match="is not a savepoint: there is nothing"):
        ask(session, "SHOW TABLES FROM s.state")
    session.context.permissions = Permissions(fence=Fence(allowed=("/elsewhere",)))
    with pytest.raises(NotPermittedError, match="Option 'path' of the catalog names a path"):
        ask(session, "SHOW TABLES FROM s.`state`")
    with pytest.raises(NotPermittedError, match="DIFF SAVEPOINT names a path"):
        ask(session, f"DIFF SAVEPOINT '/elsewhere/a' WITH '{tmp_path}'")
    with pytest.raises(NotPermittedError, match=r"'state.path' of table .*savepoint_metadata.* names a path"):
        ask(session, "LOAD MODULE state", f"SELECT * FROM savepoint_metadata('{tmp_path}')")
