"""Jobs that follow a table of PostgreSQL: over crashes and kills, and in batch mode."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.connectors.cdc_job import crashes, running
from tests.connectors.postgres import Server
from tests.connectors.postgres_cdc import cdc_table, forget_slots
from tests.runtime.databases import jdbc_table, wait_for

REPOSITORY = Path(__file__).parents[2]
INSERTS = (
    "EXECUTE STATEMENT SET BEGIN INSERT INTO copy SELECT id, k, v FROM t;"
    " INSERT INTO totals SELECT k, COUNT(*), SUM(v) FROM t GROUP BY k; END"
)
COPY, TOTALS = "SELECT * FROM copy ORDER BY id", "SELECT * FROM totals ORDER BY k"
NOW = "SELECT id, k, v FROM t ORDER BY id"
SUMS = "SELECT k, COUNT(*), SUM(v) FROM t GROUP BY k ORDER BY k"


@pytest.fixture
def server(postgres: Server) -> Iterator[Server]:
    postgres.clear()
    ask(postgres, "CREATE TABLE t (id INT PRIMARY KEY, k TEXT, v INT)")
    ask(postgres, "ALTER TABLE t REPLICA IDENTITY FULL")
    ask(postgres, "INSERT INTO t SELECT g, 'k' || g % 3, g FROM generate_series(1, 100) g")
    ask(postgres, "CREATE TABLE copy (id INT PRIMARY KEY, k TEXT, v INT)")
    ask(postgres, "CREATE TABLE totals (k TEXT PRIMARY KEY, n BIGINT, s BIGINT)")
    yield postgres
    forget_slots(postgres)


def ask(server: Server, sql: str) -> list[tuple[object, ...]]:
    with server.connect() as open:
        done = open.execute(sql.encode())
        return done.fetchall() if done.description else []


def statements(server: Server) -> list[str]:
    return [
        cdc_table(server, "t", "id INT, k STRING, v INT, PRIMARY KEY (id) NOT ENFORCED"),
        jdbc_table("copy", "id INT, k STRING, v INT, PRIMARY KEY (id) NOT ENFORCED", server.url),
        jdbc_table("totals", "k STRING, n BIGINT, s BIGINT, PRIMARY KEY (k) NOT ENFORCED", server.url),
    ]


def check(server: Server) -> None:
    wait_for(lambda: ask(server, COPY), ask(server, NOW))
    wait_for(lambda: ask(server, TOTALS), ask(server, SUMS))


def test_a_table_is_followed_exactly_once(server: Server, spark: object, tmp_path: Path) -> None:
    """The driver dies with a snapshot planned, with it committed, and with changes planned; the table goes on
    changing. At last a batch query reads the table alone."""
    for number in crashes(statements(server), INSERTS, tmp_path):
        assert ask(server, "SELECT COUNT(*) FROM copy") == [((0, 0, 91)[number],)]
        ask(server, f"UPDATE t SET v = v + 1, k = 'k' || id % 4 WHERE id % 3 = {number}")
        ask(server, f"DELETE FROM t WHERE id % 10 = {number}")
        ask(server, f"INSERT INTO t VALUES ({1000 + number}, 'new', 1)")
    with running(statements(server), INSERTS, tmp_path) as session:
        check(server)
        ask(server, "DELETE FROM t WHERE k = 'k1'")
        check(server)
        session.execute("SET 'execution.runtime-mode' = 'batch'")
        assert sorted(row for _, row in session.changes("SELECT k, COUNT(*), SUM(v) FROM t GROUP BY k")) == [
            tuple(row) for row in ask(server, SUMS)
        ]


KILLS = [("ran", 1), ("committed", 2), ("published", 1), ("workers", 3)]


@pytest.mark.thorough
@pytest.mark.timeout(900)
def test_kills_while_the_table_changes_all_the_time(
    server: Server, processes: None, spark: object, tmp_path: Path
) -> None:
    done = threading.Event()
    writers = [threading.Thread(target=write, args=(server, number, done)) for number in (0, 1)]
    for writer in writers:
        writer.start()
    try:
        for step, time in KILLS:
            command = [sys.executable, "-m", "tests.connectors.postgres_cdc_victim"]
            command += [str(server.port), str(tmp_path), step, str(time)]
            ended = subprocess.run(command, cwd=REPOSITORY, check=False, capture_output=True, timeout=240)
            assert ended.returncode == -signal.SIGKILL, ended.stderr.decode()
    finally:
        done.set()
        for writer in writers:
            writer.join()
    with running(statements(server), INSERTS, tmp_path):
        check(server)


def write(server: Server, number: int, done: threading.Event) -> None:
    """Transactions of a few changes, some of them rolled back; two writers meet in no row."""
    turn = 0
    with server.connect() as open:
        while not done.wait(0.2):
            turn += 1
            open.execute("BEGIN")
            own = f"id % 2 = {number}"
            open.execute(f"UPDATE t SET v = v + 1, k = 'k' || {turn} % 5 WHERE {own} AND id % 7 = {turn % 7}")
            open.execute(f"INSERT INTO t VALUES ({1000 + 2 * turn + number}, 'new', {turn})")
            open.execute(f"DELETE FROM t WHERE {own} AND id > 1000 AND id % 5 = {turn % 5}")
            open.execute("ROLLBACK" if turn % 5 == 0 else "COMMIT")
