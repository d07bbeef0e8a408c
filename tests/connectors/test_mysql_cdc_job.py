"""Jobs that follow a table of MariaDB: over crashes, and in batch mode."""

from __future__ import annotations

import re
import sqlite3
from pathlib import Path

import pytest

from tests.connectors.cdc_job import crashes, running
from tests.connectors.mariadb import PASSWORD, USER, Server, cdc_options
from tests.runtime.databases import jdbc_table, wait_for
from tests.runtime.running import Session

DOCS = Path(__file__).parents[2] / "docs" / "cdc.md"
INSERTS = (
    "EXECUTE STATEMENT SET BEGIN"
    " INSERT INTO copy SELECT t.id, k, v, label FROM t JOIN labels l ON t.k = l.name;"
    " INSERT INTO totals SELECT k, COUNT(*), SUM(v) FROM t GROUP BY k; END"
)
NOW = "SELECT t.id, k, v, label FROM t JOIN labels l ON t.k = l.name ORDER BY id"
SUMS = "SELECT k, COUNT(*), CAST(SUM(v) AS SIGNED) FROM t GROUP BY k ORDER BY k"


@pytest.fixture
def server(mariadb: Server) -> Server:
    mariadb.clear()
    mariadb.ask(
        "CREATE TABLE t (id INT PRIMARY KEY, k VARCHAR(9), v INT)",
        "INSERT INTO t SELECT seq, CONCAT('k', seq % 3), seq FROM seq_1_to_100",
        "CREATE TABLE labels (name VARCHAR(9) PRIMARY KEY, label VARCHAR(9))",
        "INSERT INTO labels VALUES ('k0', 'zero'), ('k1', 'one'), ('k2', 'two'), ('new', 'more')",
    )
    return mariadb


def statements(server: Server, url: str) -> list[str]:
    def cdc(name: str, columns: str) -> str:
        options = cdc_options(server, table__name=name)
        listed = ", ".join(f"'{key}' = '{value}'" for key, value in options.items())
        return f"CREATE TABLE {name} ({columns}) WITH ({listed})"

    return [
        cdc("t", "id INT, k STRING, v INT, PRIMARY KEY (id) NOT ENFORCED"),
        cdc("labels", "name STRING, label STRING, PRIMARY KEY (name) NOT ENFORCED"),
        jdbc_table("copy", "id INT, k STRING, v INT, label STRING, PRIMARY KEY (id) NOT ENFORCED", url),
        jdbc_table("totals", "k STRING, n BIGINT, s BIGINT, PRIMARY KEY (k) NOT ENFORCED", url),
    ]


def test_tables_are_followed_exactly_once(server: Server, spark: object, tmp_path: Path) -> None:
    """The driver dies with a snapshot planned, with it committed, and with changes planned; the tables go on
    changing. At last a batch query reads a table alone."""
    path = tmp_path / "sink.db"
    made = [
        "CREATE TABLE copy (id INT PRIMARY KEY, k TEXT, v INT, label TEXT)",
        "CREATE TABLE totals (k TEXT PRIMARY KEY, n BIGINT, s BIGINT)",
    ]
    for statement in made:
        sqlite(path, statement)
    url = f"jdbc:sqlite:{path}"

    def check() -> None:
        wait_for(lambda: sqlite(path, "SELECT * FROM copy ORDER BY id"), server.ask(NOW))
        wait_for(lambda: sqlite(path, "SELECT * FROM totals ORDER BY k"), server.ask(SUMS))

    for number in crashes(statements(server, url), INSERTS, tmp_path):
        server.ask(
            "BEGIN",
            f"UPDATE t SET v = v + 1, k = CONCAT('k', id % 4) WHERE id % 3 = {number}",
            f"DELETE FROM t WHERE id % 10 = {number}",
            f"INSERT INTO t VALUES ({1000 + number}, 'new', 1)",
            "COMMIT",
        )
    with running(statements(server, url), INSERTS, tmp_path) as session:
        check()
        server.ask("DELETE FROM t WHERE k = 'k1'", "UPDATE labels SET label = 'ZERO' WHERE name = 'k0'")
        check()
        session.execute("SET 'execution.runtime-mode' = 'batch'")
        sums = session.changes("SELECT k, COUNT(*), SUM(v) FROM t GROUP BY k")
        assert sorted(row for _, row in sums) == server.ask(SUMS)


def test_the_example_of_the_docs(server: Server, spark: object) -> None:
    (ddl,) = re.findall(r"CREATE TABLE orders \([^;]*'mysql-cdc'[^;]*;", DOCS.read_text())
    ddl = ddl.replace("'reader'", f"'{USER}'").replace("'...'", f"'{PASSWORD}', 'port' = '{server.port}'")
    server.ask(
        "CREATE TABLE orders (id INT PRIMARY KEY, account VARCHAR(20), amount DECIMAL(10, 2))",
        "INSERT INTO orders VALUES (1, 'ann', 2.50), (2, 'bob', 1), (3, 'ann', 1.25)",
    )
    session = Session({"execution.runtime-mode": "batch"})
    session.execute(ddl.replace("'shop'", "'d'").rstrip(";"))
    sums = session.changes("SELECT account, CAST(SUM(amount) AS STRING) FROM orders GROUP BY account")
    assert sorted(row for _, row in sums) == [("ann", "3.75"), ("bob", "1.00")]


@pytest.mark.parametrize("mode", ["snapshot", "latest-offset"])
def test_a_job_that_has_ended_has_no_connection(server: Server, spark: object, mode: str) -> None:
    """A connection with a snapshot would keep everybody from altering the table."""
    listed = ", ".join(
        f"'{key}' = '{value}'" for key, value in cdc_options(server, scan_startup_mode=mode).items()
    )
    session = Session({})
    session.execute(
        f"CREATE TABLE t (id INT, k STRING, v INT, PRIMARY KEY (id) NOT ENFORCED) WITH ({listed})"
    )
    result = session.environment.execute_sql("SELECT COUNT(*) FROM t")
    if mode == "snapshot":
        with result.collect() as rows:
            assert [row[0] for row in rows][-1] == 100
    else:
        job = result.get_job_client()
        assert job is not None
        wait_for(lambda: bool(readers(server)), True)
        job.stop()
        job.wait(60)
    assert readers(server) == []
    server.ask("DROP TABLE t")


def readers(server: Server) -> list[object]:
    """The connections of jobs."""
    return [row for row in server.ask("SHOW PROCESSLIST") if row[1] == USER]


def sqlite(path: Path, sql: str) -> list[tuple[object, ...]]:
    with sqlite3.connect(path) as open:
        return open.execute(sql).fetchall()
