"""A gateway's jobs from the command line; its shell, and the DB-API."""

from __future__ import annotations

import datetime as dt
import io
from collections.abc import Iterator
from contextlib import redirect_stderr
from decimal import Decimal
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.gateway.asking import NUMBERS, served
from tidemill import dbapi
from tidemill.client.gateway_client import GatewayClient
from tidemill.client.main import main
from tidemill.client.remote_shell import RemoteShell
from tidemill.config.option import Configuration
from tidemill.errors import ConnectorError
from tidemill.gateway.endpoints.rest.endpoint import RestEndpoint
from tidemill.gateway.service.service import Gateway

pytestmark = pytest.mark.usefixtures("processes")


@pytest.fixture(scope="module")
def made(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    with served(tmp_path_factory.mktemp("gateway")) as gateway:
        yield gateway


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
        assert [look.nodes[n.id].rows_in for n in look.plan] == [look.rows_out] * 2
        assert main(["cancel", jobs[1], *at]) == 0
        assert main(["jobs", *at]) == 0
        shown = capsys.readouterr().out
        ends = zip(jobs, ("FINISHED", "CANCELED"), strict=True)
        assert [job for job, status in ends if f"{job}  {status} " in shown] == jobs
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
