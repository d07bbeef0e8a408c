"""SQL through the service: what statements give, and what they change of a session."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.gateway.asking import BATCH, NUMBERS, Client, served
from tests.session.environments import new_session
from tidemill.errors import NotSupportedError, SqlSyntaxError, ValidationError
from tidemill.gateway.service.service import Gateway
from tidemill.gateway.service.statements import CONFIGURING
from tidemill.session import binding
from tidemill.session.dispatch import HANDLERS
from tidemill.session.statements import create_table_as
from tidemill.sql import statements as s
from tidemill.sql.parser import parse_statement


@pytest.fixture(scope="module")
def made(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    with served(tmp_path_factory.mktemp("gateway")) as gateway:
        yield gateway


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


ASKING = {
    s.Query, s.Insert, s.StatementSet, s.CompilePlan, s.ExecutePlan, s.Explain, s.Show, s.Describe,
    s.DescribeCatalog, s.DescribeFunction,
    s.DescribeModel, s.DescribeJob, s.AlterJob, s.StopJob, s.VerifyJob, s.Unsupported,
    s.Delete, s.Update, s.Merge, s.TruncateTable,
    s.CreateSavepoint, s.BuildSavepoint, s.ShowSavepoints, s.DescribeSavepoint, s.DiffSavepoint,
    s.DropSavepoint,
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
    assert binding.bind_insert(context, insert) == create_table_as.planned(statement, context)[1]


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
