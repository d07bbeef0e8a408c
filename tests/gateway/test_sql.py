"""SQL through the service: what runs, what stops, what one session sees of another."""

from __future__ import annotations

import datetime as dt
import io
import stat
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import redirect_stderr
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests import visible
from tests.session.environments import new_session
from tidemill import dbapi
from tidemill.changelog.rowkind import KIND_COLUMN, RowKind
from tidemill.client.gateway_client import GatewayClient
from tidemill.client.main import main
from tidemill.client.remote_shell import RemoteShell
from tidemill.config.option import Configuration
from tidemill.errors import (
    ConnectorError,
    NotSupportedError,
    SetupError,
    SqlSyntaxError,
    TidemillError,
    ValidationError,
)
from tidemill.gateway.api import OperationStatus, ResultType
from tidemill.gateway.endpoints.rest.endpoint import RestEndpoint
from tidemill.gateway.service.service import Gateway
from tidemill.gateway.service.statements import CONFIGURING
from tidemill.gateway.start import House
from tidemill.session import planning
from tidemill.session.dispatch import HANDLERS
from tidemill.session.statements import create_table_as
from tidemill.sql import statements as s
from tidemill.sql.parser import parse_statement

LONG = 60.0
BATCH = {"execution.runtime-mode": "batch"}
NUMBERS = """CREATE TABLE g (id INT) WITH ('connector'='datagen', 'rows-per-second'='50',
 'fields.id.kind'='sequence', 'fields.id.start'='1', 'fields.id.end'='1000000')"""

SLOW = "SELECT COUNT(*) FROM g AS x, g AS y WHERE x.id * y.id = 7"


@pytest.fixture(scope="module")
def made(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    house = House(options(tmp_path_factory.mktemp("gateway")))
    house.start()
    yield house.gateway
    house.close()


def options(folder: Path) -> Configuration:
    return Configuration({"tidemill.gateway.directory": str(folder), "parallelism.default": "1"})


class Client:
    """One session; asks and waits."""

    def __init__(self, made: Gateway, **properties: str) -> None:
        self.gateway = made
        self.session = made.open_session({k.replace("__", "."): v for k, v in properties.items()})

    def submit(self, sql: str, options: Mapping[str, str] | None = None) -> str:
        return self.gateway.execute(self.session, sql, options)

    def rows(self, operation: str, least: int = 1 << 30) -> list[Any]:
        """All rows, or at least so many, with their kinds where there are any."""
        got: list[Any] = []
        token = 0
        while len(got) < least:
            self.gateway.wait_rows(self.session, operation, token, 1.0)
            page = self.gateway.fetch(self.session, operation, token)
            if page.type is ResultType.EOS:
                break
            if page.type is ResultType.PAYLOAD and page.rows is not None and page.next_token is not None:
                token = page.next_token
                for row in page.rows.to_pylist():
                    kind = row.pop(KIND_COLUMN, None)
                    got.append((*(() if kind is None else (RowKind(kind).short,)), *row.values()))
        return got

    def ask(self, sql: str, options: Mapping[str, str] | None = None) -> list[Any]:
        return self.rows(self.submit(sql, options))

    def fails(self, sql: str) -> TidemillError:
        operation = self.submit(sql)
        info = self.gateway.wait(self.session, operation, LONG)
        assert info.status is OperationStatus.ERROR
        assert info.error is not None
        return info.error


def spark_is_idle(spark: SparkSession) -> bool:
    return not spark.sparkContext.statusTracker().getActiveJobsIds()


def has_tasks(spark: SparkSession) -> bool:
    """Whether any runs; those of a job that was given up may go on for a while."""
    java: Any = spark.sparkContext._jsc
    return any(e.numRunningTasks() for e in java.sc().statusTracker().getExecutorInfos())


def until(what: Any) -> None:
    end = time.monotonic() + LONG
    while not what():
        assert time.monotonic() < end
        time.sleep(0.02)


def test_statements_and_their_results(made: Gateway, tmp_path: Path) -> None:
    client = Client(made)
    assert client.ask("SELECT k, SUM(v) AS t FROM (VALUES ('a', 1), ('a', 3)) AS x(k, v) GROUP BY k") == [
        ("+I", "a", 1),
        ("-U", "a", 1),
        ("+U", "a", 4),
    ]
    table = f"WITH ('connector'='filesystem', 'path'='{tmp_path}/f', 'format'='csv')"
    assert client.ask(f"CREATE TABLE f (id INT, name STRING) {table}") == [("OK",)]
    sync = {"table.dml-sync": "true"}
    (job,) = client.ask("INSERT INTO f VALUES (1, 'one'), (2, 'two')", sync)
    assert len(job[0]) == 32
    (batch_job,) = client.ask("INSERT INTO f VALUES (3, 'three')", {**sync, **BATCH})
    assert batch_job != job
    assert client.ask("SELECT SUM(id) AS s FROM f", BATCH) == [(6,)]
    assert client.ask("SET 'my.key' = 'v'", {"table.dml-sync": "true"}) == [("OK",)]
    config = made.session_config(client.session)
    assert (config["my.key"], "table.dml-sync" in config) == ("v", False)
    operation = client.submit("SHOW TABLES; -- the end")
    assert client.rows(operation) == [("f",)]
    info = made.result_info(client.session, operation)
    assert info is not None
    assert (info.is_query, info.result_kind, info.job_id) == (False, "SUCCESS_WITH_CONTENT", "")
    assert isinstance(client.fails("SHOW TABLES; SHOW VIEWS"), NotSupportedError)
    assert '"<EOF>"' in str(client.fails("SELECT 1 +"))
    assert isinstance(client.fails(""), SqlSyntaxError)
    assert "Object 'nosuch' not found" in str(client.fails("SELECT * FROM nosuch"))


def test_a_statement_set_in_pieces(made: Gateway, tmp_path: Path) -> None:
    client = Client(made)
    for name in "ab":
        options = f"'connector'='filesystem', 'path'='{tmp_path}/{name}', 'format'='csv'"
        client.ask(f"CREATE TABLE {name} (v INT) WITH ({options})")
    assert client.ask("begin statement set;") == [("OK",)]
    assert client.ask("INSERT INTO a VALUES (1)") == [("OK",)]
    assert client.ask("INSERT INTO b VALUES (2)") == [("OK",)]
    assert "statement set" in str(client.fails("SELECT 1")).lower()
    assert "statement set" in str(client.fails("BEGIN STATEMENT SET")).lower()
    assert "nosuch" in str(client.fails("INSERT INTO nosuch VALUES (1)"))
    assert len(client.ask("END", {"table.dml-sync": "true"})[0][0]) == 32
    assert client.ask("SELECT a.v + b.v FROM a, b", BATCH) == [(3,)]
    assert isinstance(client.fails("END"), ValidationError)
    assert client.ask("BEGIN STATEMENT SET;") == client.ask("END;") == [("OK",)]
    block = "BEGIN STATEMENT SET; INSERT INTO nowhere SELECT 1; END;"
    assert "only single statement supported" in str(client.fails(block))


def test_what_runs_is_stopped(made: Gateway, spark: SparkSession) -> None:
    client, other = Client(made), Client(made)
    client.ask(NUMBERS)
    client.ask("CREATE TABLE b (id INT) WITH ('connector'='blackhole')")
    running = client.submit(SLOW, BATCH)
    until(lambda: not spark_is_idle(spark))
    assert other.ask("SELECT 1 AS n", BATCH) == [(1,)]
    assert made.cancel(client.session, running) is OperationStatus.CANCELED
    until(lambda: spark_is_idle(spark))
    waited = client.submit("INSERT INTO b SELECT id FROM g", {"table.dml-sync": "true"})
    until(lambda: made.operation_info(client.session, waited).status is OperationStatus.RUNNING)
    until(lambda: [job[2] for job in other.ask("SHOW JOBS")][-1:] == ["RUNNING"])
    assert made.cancel(client.session, waited) is OperationStatus.CANCELED
    until(lambda: other.ask("SHOW JOBS")[-1][2] == "CANCELED")
    endless = client.submit("SELECT id FROM g")
    assert [row[1] for row in client.rows(endless, 60)][:60] == list(range(1, 61))
    assert made.operation_info(client.session, endless).status is OperationStatus.FINISHED
    job = made.operation_info(client.session, endless).job_id
    assert [(row[0], row[2]) for row in other.ask("SHOW JOBS")][-1] == (job, "RUNNING")
    made.close_session(client.session)
    until(lambda: other.ask("SHOW JOBS")[-1][2] == "CANCELED")
    other.ask("SELECT 1 AS n")
    assert [row[2] for row in other.ask("SHOW JOBS")][-2:] == ["CANCELED", "FINISHED"]
    until(lambda: spark_is_idle(spark))


@pytest.mark.parametrize(
    "query",
    [
        "SELECT COUNT(*) FROM t a, t b, t c WHERE a.id * b.id + c.id < 0",
        "SELECT COUNT(*) FROM t a LEFT JOIN t b ON a.id <> b.id LEFT JOIN t c ON b.id <> c.id",
        "SELECT COUNT(*) FROM t a, t b WHERE NOT EXISTS (SELECT 1 FROM t c WHERE a.id * b.id + c.id < 0)",
        "SELECT COUNT(*) FROM s CROSS JOIN UNNEST(a) AS x (v) CROSS JOIN UNNEST(a) AS y (w) "
        "CROSS JOIN UNNEST(a) AS z (u) WHERE v + w + u < 0",
    ],
)
def test_what_makes_billions_of_rows_is_stopped(
    made: Gateway, spark: SparkSession, tmp_path: Path, query: str
) -> None:
    """Its tasks end, which make billions of rows of what they read at a time."""
    spark.range(0, 100_000, 1, 1).write.parquet(f"{tmp_path}/t")
    spark.range(0, 4_000, 1, 1).selectExpr("sequence(1, 1000) AS a").write.parquet(f"{tmp_path}/s")
    client = Client(made)
    for table in ("t (id BIGINT)", "s (a ARRAY<INT>)"):
        client.ask(
            f"CREATE TABLE {table} WITH "
            f"('connector'='filesystem', 'format'='parquet', 'path'='{tmp_path}/{table[0]}')"
        )
    running = client.submit(query, BATCH)
    until(lambda: has_tasks(spark))
    threading.Event().wait(3)  # what is sent to all tasks is there
    until(lambda: has_tasks(spark))
    assert made.cancel(client.session, running) is OperationStatus.CANCELED
    until(lambda: not has_tasks(spark))


def test_what_came_to_its_end_is_listed_as_finished(made: Gateway, tmp_path: Path) -> None:
    """Also after its operation was closed, which stops a query that still runs."""
    client = Client(made)
    client.ask(
        "CREATE TABLE f (id INT) WITH ('connector'='filesystem', 'format'='csv', "
        f"'path'='{tmp_path.as_posix()}/f')"
    )
    (job,) = client.ask("INSERT INTO f VALUES (1), (2)", BATCH)[0]
    listed = {row[0]: row[1:3] for row in client.ask("SHOW JOBS")}
    assert listed[job] == ("insert-into_default_catalog.default_database.f", "FINISHED")
    operation = client.submit("SELECT id FROM f")
    assert len(client.rows(operation)) == 2
    job = made.operation_info(client.session, operation).job_id
    made.close_operation(client.session, operation)
    assert [row[2] for row in client.ask("SHOW JOBS") if row[0] == job] == ["FINISHED"]


def test_jobs_outlive_their_session_and_stop_from_any(made: Gateway) -> None:
    client, other = Client(made), Client(made)
    client.ask(NUMBERS)
    client.ask("CREATE TABLE b (id INT) WITH ('connector'='blackhole')")
    client.ask("SET 'pipeline.name' = 'mine'")
    ((job,),) = client.ask("INSERT INTO b SELECT id FROM g")
    made.close_session(client.session)
    ((found, name, status, _),) = other.ask(f"DESCRIBE JOB '{job}'")
    assert (found, name, status) == (job, "mine", "RUNNING")
    assert other.ask(f"STOP JOB '{job}'") == [("OK",)]
    assert other.ask(f"DESCRIBE JOB '{job}'")[0][2] == "CANCELED"
    assert "0" * 32 in str(other.fails(f"STOP JOB '{'0' * 32}'"))


ASKING = {
    s.Query, s.Insert, s.StatementSet, s.CompilePlan, s.ExecutePlan, s.Explain, s.Show, s.Describe,
    s.DescribeCatalog, s.DescribeFunction,
    s.DescribeModel, s.DescribeJob, s.StopJob, s.Unsupported,
}  # fmt: skip


def test_every_statement_changes_the_session_or_does_not() -> None:
    changing = {kind for kind in HANDLERS if issubclass(kind, CONFIGURING)}
    assert changing.isdisjoint(ASKING)
    assert changing | ASKING == set(HANDLERS)


def test_a_table_made_by_a_query_is_filled_again_where_it_is() -> None:
    context = new_session().context
    made = "CREATE OR REPLACE TABLE t (z STRING, b INT) WITH ('connector'='blackhole')"
    statement = parse_statement(f"{made} AS SELECT 1 AS `a``x`, 2 AS b")
    assert isinstance(statement, s.CreateTable)
    context.catalogs.create(create_table_as.planned(statement, context)[0])
    again = create_table_as.insert_text(statement, context)
    assert again.endswith("`t` (`a``x`, `b`) SELECT 1 AS `a``x`, 2 AS b")
    insert = parse_statement(again)
    assert isinstance(insert, s.Insert)
    assert planning.bind_insert(context, insert) == create_table_as.planned(statement, context)[1]


def test_configuring_takes_what_changes_the_session(made: Gateway) -> None:
    client = Client(made)
    for sql in ("SET 'a.b' = '1'", NUMBERS, "USE default_database;"):
        made.configure_session(client.session, sql)
    for sql in ("SELECT 1", "CREATE TABLE x WITH ('connector'='blackhole') AS SELECT 1 AS a"):
        with pytest.raises(NotSupportedError, match="Unsupported statement for configuring session"):
            made.configure_session(client.session, sql)
    assert client.ask("SHOW TABLES") == [("g",)]
    catalog = made.catalog(client.session)
    ((table),) = catalog.tables("default_catalog", "default_database")
    assert [c.name for c in catalog.columns(table.path)] == ["id"]
    assert made.complete(client.session, "SELECT * FROM ", 14)[4] == "default_catalog.default_database.g"
    assert made.complete(client.session, "SELECT i FROM g", 8)[0] == "id"


def test_jobs_from_the_command_line(
    made: Gateway, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    endpoint = RestEndpoint(made, Configuration({"sql-gateway.endpoint.rest.port": "0"}))
    endpoint.start()
    at = ["--gateway", endpoint.address]
    try:
        with GatewayClient(endpoint.address).open({"execution.runtime-mode": "batch"}) as client:
            answer = client.execute("SELECT * FROM (VALUES (1, 'a'), (2, CAST(NULL AS STRING))) AS x(n, s)")
            assert [c["name"] for c in answer.columns] == ["n", "s"]
            assert sorted(answer.rows) == [("INSERT", [1, "a"]), ("INSERT", [2, None])]
            with pytest.raises(ConnectorError, match=r"^Object 'nosuch' not found"):
                client.execute("SELECT * FROM nosuch")
            for sql in (NUMBERS, "CREATE TABLE b (id INT) WITH ('connector'='blackhole')"):
                list(client.execute(sql).rows)
            list(client.execute("SET 'execution.runtime-mode' = 'streaming'").rows)
            jobs = [next(client.execute("INSERT INTO b SELECT id FROM g").rows)[1][0] for _ in range(2)]
        assert main(["jobs", *at]) == 0
        shown = capsys.readouterr().out
        assert [job for job in jobs if f"{job}  RUNNING " in shown] == jobs
        assert main(["stop", jobs[0], "--savepoint-dir", str(tmp_path), *at]) == 0
        assert (Path(capsys.readouterr().out.strip()) / "savepoint.json").is_file()
        look = made.watch("").look(jobs[0])
        assert look is not None
        assert [(n.role.value, n.name) for n in look.plan] == [("source", "g"), ("sink", "b")]
        assert sum(n.rows_in for n in look.nodes.values()) == look.rows_out
        assert main(["cancel", jobs[1], *at]) == 0
        assert main(["jobs", *at]) == 0
        shown = capsys.readouterr().out
        assert [job for job in jobs if f"{job}  CANCELED " in shown] == jobs
        assert main(["cancel", "nosuch", *at]) == 1
        assert "There is no job 'nosuch'" in capsys.readouterr().err
        script = tmp_path / "script.sql"
        script.write_text(
            "SELECT k, SUM(v) AS t FROM (VALUES ('a', 1), ('a', 3)) AS x(k, v) GROUP BY k;\n"
            "SET 'execution.runtime-mode' = 'batch'; SELECT 1.50 AS n; SHOW TABLES;\n"
            "SELECT * FROM nosuch; SELECT 2;"
        )
        capsys.readouterr()
        assert main(["sql", "--gateway", endpoint.address, "-f", str(script)]) == 1
        said = capsys.readouterr().out.splitlines()
        lines = [" ".join(line.split()) for line in said if line and not line.startswith(("+", "("))]
        assert lines == [
            "| op | k | t |",
            "| +I | a | 1 |",
            "| -U | a | 1 |",
            "| +U | a | 4 |",
            "3 rows in set",
            "OK",
            "| n |",
            "| 1.50 |",
            "1 row in set",
            "Empty set",
            "[VALIDATION] Object 'nosuch' not found",
            "at line 3, column 15:",
            "3 | SELECT * FROM nosuch; SELECT 2;",
            "| ^",
        ]
        _on_a_screen(endpoint.address)
        with dbapi.connect(endpoint.address) as connection, connection.cursor() as cursor:
            _through_the_db_api(cursor)
    finally:
        endpoint.stop()
    assert main(["jobs", *at]) == 1
    assert "does not answer" in capsys.readouterr().err


def _on_a_screen(address: str) -> None:
    """What the shell draws of a query over a gateway."""
    query = "SELECT k, SUM(v) AS t FROM (VALUES ('a', 1), ('a', 3), ('b', 2)) AS x(k, v) GROUP BY k;"
    out, warned = io.StringIO(), io.StringIO()
    typed = [query, f"\\plot {query}", "\\plot SELECT 'a' AS k;"]
    turned = ["SET 'sql-client.verbos' = 'x';", "\\x", "SELECT 'a' AS k, 1 AS n;", "SELECT nosuch;", "\\x"]
    options = {"sql-client.execution.result-mode": "table"}
    with GatewayClient(address).open(options) as client, redirect_stderr(warned):
        shell = RemoteShell(client, out)
        shell.loop(iter(typed))
        shown = len(out.getvalue())
        assert not shell.loop(iter(turned))
    said = out.getvalue()[shown:].splitlines()
    assert [line for line in said if line[:2] in ("k ", "n ")] == ["k | a", "n | 1"]
    assert said[-1] == "Rows are shown in a line."
    assert "Did you mean 'sql-client.verbose'?" in warned.getvalue()
    lines = out.getvalue()[:shown].splitlines()
    assert sorted(" ".join(line.split()) for line in lines[3:5]) == ["| a | 4 |", "| b | 2 |"]
    drawn = lines[lines.index("t by k") + 1 :]
    assert sorted((line[0], line[-1]) for line in drawn[:2]) == [("a", "4"), ("b", "2")]
    assert "There is nothing to plot" in drawn[-2]


def _through_the_db_api(cursor: dbapi.Cursor) -> None:
    day, at = dt.date(2020, 2, 3), dt.datetime(2020, 1, 2, 3, 4, 5, 678000)
    values = (7, "it's ?", None, True, 1.5, Decimal("-1.250"), b"\x0a", day, dt.time(1, 2, 3), at)
    cursor.execute(
        "SELECT ? AS i, ? AS s, CAST(? AS INT) AS n, ? AS b, ? AS d, ? AS de, ? AS y, ? AS dt, ? AS t,"
        " ? AS ts",
        values,
    )
    assert cursor.description is not None
    assert [d[0] for d in cursor.description] == ["i", "s", "n", "b", "d", "de", "y", "dt", "t", "ts"]
    assert cursor.description[5][1] == dbapi.NUMBER
    assert cursor.description[5][4:] == (4, 3, False)
    assert cursor.fetchall() == [values]
    cursor.execute("SELECT * FROM (VALUES (1), (2), (3)) AS x(n)")
    assert (cursor.fetchone(), cursor.fetchmany(1), cursor.fetchall(), cursor.fetchone()) == (
        (1,),
        [(2,)],
        [(3,)],
        None,
    )
    with pytest.raises(dbapi.ProgrammingError, match="Object 'nosuch' not found"):
        cursor.execute("SELECT * FROM nosuch")
    with pytest.raises(dbapi.ProgrammingError, match="1 question marks, not 2"):
        cursor.execute("SELECT ?", (1, 2))
    cursor.execute("SET 'execution.runtime-mode' = 'streaming'")
    cursor.execute("SELECT k, SUM(v) AS t FROM (VALUES ('a', 1), ('a', 3)) AS x(k, v) GROUP BY k")
    assert cursor.fetchone() == ("a", 1)
    with pytest.raises(dbapi.NotSupportedError, match="UPDATE_BEFORE"):
        cursor.fetchone()
    assert list(cursor.changes()) == [("UPDATE_AFTER", ("a", 4))]


def test_the_next_process_knows_what_this_one_was_told(spark: SparkSession, tmp_path: Path) -> None:
    first = House(options(tmp_path / "gateway"))
    first.start()
    client = Client(first.gateway, my__key="v")
    client.ask(NUMBERS)
    file = f"'connector'='filesystem', 'path'='{tmp_path}/out', 'format'='csv'"
    client.ask(f"CREATE TABLE target (id INT, twice AS id * 2) WITH ({file})")
    client.ask("CREATE TEMPORARY VIEW small AS SELECT id FROM g WHERE id < 3")
    client.ask("SET 'pipeline.name' = 'mine'")
    done = client.submit("SELECT k, SUM(v) AS t FROM (VALUES ('a', 1), ('a', 3)) AS x(k, v) GROUP BY k")
    rows = client.rows(done)
    ended = client.submit("SELECT * FROM (VALUES (DATE '2020-01-01', ARRAY[1])) AS x(a, b)", BATCH)
    bad = client.submit("SELECT * FROM nosuch")
    client.ask("BEGIN STATEMENT SET")
    client.ask("INSERT INTO target SELECT id FROM g")
    ((job,),) = client.ask("END")
    until(lambda: visible.lines(tmp_path / "out"))
    running = client.submit(SLOW, BATCH)
    until(lambda: first.gateway.operation_info(client.session, running).status is OperationStatus.RUNNING)
    first.gateway.wait(client.session, ended, LONG)
    first.vanish()

    second = House(options(tmp_path / "gateway"))
    second.start()
    with pytest.raises(SetupError, match="Another gateway has the directory"):
        House(options(tmp_path / "gateway"))
    assert stat.S_IMODE((tmp_path / "gateway" / "store").stat().st_mode) == 0o700
    try:
        client.gateway = second.gateway
        assert client.rows(done) == rows
        assert client.rows(ended)[0][1] == [1]
        info = second.gateway.result_info(client.session, done)
        assert info is not None
        assert [str(f.type) for f in info.fields] == ["CHAR(1) NOT NULL", "INT NOT NULL"]
        assert "Object 'nosuch' not found" in str(second.gateway.operation_info(client.session, bad).error)
        assert "restarted" in str(second.gateway.operation_info(client.session, running).error)
        assert client.ask("SHOW TABLES") == [("g",), ("small",), ("target",)]
        assert second.gateway.session_config(client.session)["my.key"] == "v"
        assert client.ask(f"DESCRIBE JOB '{job}'")[0][1:3] == ("mine", "RUNNING")
        written = len(read_ids(tmp_path / "out"))
        until(lambda: len(read_ids(tmp_path / "out")) > written)
        client.ask(f"STOP JOB '{job}'")
        ids = read_ids(tmp_path / "out")
        assert sorted(ids) == list(range(1, len(ids) + 1))
        second.gateway.close_session(client.session)
    finally:
        second.vanish()
    third = House(options(tmp_path / "gateway"))
    third.start()
    assert third.gateway.list_sessions(user=None) == []
    assert [(s.job.job_id, s.job.status) for s in third.jobs("").all()] == [(job, "CANCELED")]
    # What was seen of the job is there still: in both processes that it ran in.
    look = third.gateway.watch("").look(job)
    assert look is not None
    assert [node.name for node in look.plan] == ["g", "target"]
    assert look.resumed is not None
    assert sum(epoch.rows_out for epoch in look.epochs) > 0
    third.close()


def test_the_job_of_a_materialized_table_outlives_its_gateway(spark: SparkSession, tmp_path: Path) -> None:
    first = House(options(tmp_path / "gateway"))
    first.start()
    client = Client(first.gateway)
    client.ask(NUMBERS)
    file = f"'connector'='filesystem', 'path'='{tmp_path}/out', 'format'='csv'"
    client.ask(f"CREATE MATERIALIZED TABLE kept WITH ({file}) AS SELECT id FROM g")
    until(lambda: visible.lines(tmp_path / "out"))
    first.vanish()

    second = House(options(tmp_path / "gateway"))
    second.start()
    try:
        client.gateway = second.gateway
        assert client.ask("SHOW MATERIALIZED TABLES") == [("kept",)]
        written = len(read_ids(tmp_path / "out"))
        until(lambda: len(read_ids(tmp_path / "out")) > written)
        client.ask("DROP MATERIALIZED TABLE kept")
        (job,) = second.jobs("").all()
        assert job.job.status == "CANCELED"
        ids = read_ids(tmp_path / "out")
        assert sorted(ids) == list(range(1, len(ids) + 1))
        assert client.ask("SHOW TABLES") == [("g",)]
    finally:
        second.vanish()


def read_ids(folder: Path) -> list[int]:
    return [int(line) for line in visible.lines(folder)]
