"""A watched directory of Debezium files is a live source; two sinks of a job show one epoch to any reader."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.connectors.postgres import Server
from tests.runtime.databases import (
    ask,
    created,
    debezium_table,
    deleted,
    drop_file,
    jdbc_table,
    query,
    updated,
    wait_for,
)
from tests.runtime.running import Session
from tidemill.connectors.jdbc.urls import Database

SOURCE = "account STRING, amount INT"
TOTALS = "account STRING, rows_seen BIGINT, amount INT, PRIMARY KEY (account) NOT ENFORCED"


@contextmanager
def live_job(url: str, folder: Path) -> Iterator[Session]:
    """Totals per account of a watched directory; stopped at the end of the block."""
    session = Session(
        {
            "execution.checkpointing.dir": str(folder / "checkpoint"),
            "table.exec.mini-batch.allow-latency": "10 ms",
        }
    )
    watched = {"source.monitor-interval": "10 ms"}
    session.execute(
        debezium_table("changes", SOURCE, folder / "in", **watched), jdbc_table("totals", TOTALS, url)
    )
    result = session.environment.execute_sql(
        "INSERT INTO totals SELECT account, COUNT(*), SUM(amount) FROM changes GROUP BY account"
    )
    job = result.get_job_client()
    assert job is not None
    try:
        yield session
    finally:
        job.stop()
        job.wait(60)


def test_files_appear_and_results_follow(spark: SparkSession, database: str, tmp_path: Path) -> None:
    query(database, "CREATE TABLE totals (account VARCHAR(9) PRIMARY KEY, rows_seen BIGINT, amount INT)")
    (tmp_path / "in").mkdir()

    def totals() -> list[tuple[object, ...]]:
        return query(database, "SELECT * FROM totals ORDER BY account")

    with live_job(database, tmp_path) as job:
        drop_file(tmp_path / "in", "b.json", [created(account="ann", amount=5)])
        wait_for(totals, [("ann", 1, 5)])
        # A name that sorts before the files taken already.
        changed = updated({"account": "ann", "amount": 5}, amount=7)
        drop_file(tmp_path / "in", "a.json", [changed, created(account="bob", amount=1)])
        wait_for(totals, [("ann", 1, 7), ("bob", 1, 1)])
        wait_for(lambda: len(job.progress), 2)
    drop_file(tmp_path / "in", "c.json", [deleted(account="bob", amount=1)])
    assert totals() == [("ann", 1, 7), ("bob", 1, 1)]
    with live_job(database, tmp_path) as job:
        wait_for(totals, [("ann", 1, 7)])
        drop_file(tmp_path / "in", "d.json", [created(account="bob", amount=3)])
        wait_for(totals, [("ann", 1, 7), ("bob", 1, 3)])
        wait_for(lambda: len(job.progress), 2)


EPOCHS, ROWS, GROUPS = 12, 40, 8


@pytest.mark.thorough
def test_a_reader_sees_one_epoch_in_both_tables(
    spark: SparkSession, postgres: Server, tmp_path: Path
) -> None:
    """Every read transaction finds the total of one table to be the sum over the other."""
    postgres.clear()
    query(postgres.url, "CREATE TABLE per_group (g INT PRIMARY KEY, n BIGINT, s BIGINT)")
    query(postgres.url, "CREATE TABLE overall (id INT PRIMARY KEY, n BIGINT, s BIGINT)")
    (tmp_path / "in.csv").write_text("".join(f"{n % GROUPS},{n}\n" for n in range(EPOCHS * ROWS)))
    session = Session({"tidemill.epoch.max-rows": str(ROWS)})
    session.execute(
        "CREATE TABLE src (g INT, v BIGINT) "
        f"WITH ('connector'='filesystem', 'path'='{tmp_path}/in.csv', 'format'='csv')",
        jdbc_table("per_group", "g INT, n BIGINT, s BIGINT, PRIMARY KEY (g) NOT ENFORCED", postgres.url),
        jdbc_table("overall", "id INT, n BIGINT, s BIGINT, PRIMARY KEY (id) NOT ENFORCED", postgres.url),
    )
    done, seen, torn = threading.Event(), set[object](), list[object]()
    reader = threading.Thread(target=read_until, args=(done, postgres.url, seen, torn))
    reader.start()
    try:
        session.execute(
            "EXECUTE STATEMENT SET BEGIN "
            "INSERT INTO overall SELECT 1, COUNT(*), SUM(v) FROM src GROUP BY 1; "
            "INSERT INTO per_group SELECT g, COUNT(*), SUM(v) FROM src GROUP BY g; END"
        )
    finally:
        done.set()
        reader.join(60)
    assert torn == []
    assert len(seen) > 3
    rows = EPOCHS * ROWS
    assert query(postgres.url, "SELECT n, s FROM overall") == [(rows, rows * (rows - 1) // 2)]


def read_until(done: threading.Event, url: str, seen: set[object], torn: list[object]) -> None:
    """Two reads in each snapshot; what did not fit together goes to ``torn``."""
    engine = Database(url).engine.execution_options(isolation_level="REPEATABLE READ")
    while not done.wait(0.005):
        with engine.begin() as open:
            groups = ask(open, "SELECT COALESCE(SUM(n), 0), COALESCE(SUM(s), 0) FROM per_group")
            total = ask(open, "SELECT COALESCE(SUM(n), 0), COALESCE(SUM(s), 0) FROM overall")
        seen.add(total[0])
        if groups != total:
            torn.append((groups, total))
