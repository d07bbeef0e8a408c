"""What runs through the service is stopped, is listed when it has ended, and outlives its session."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.gateway.asking import (
    BATCH,
    NUMBERS,
    SLOW,
    Client,
    has_tasks,
    served,
    spark_is_idle,
    until,
)
from tidemill.gateway.api import OperationStatus
from tidemill.gateway.service.service import Gateway


@pytest.fixture(scope="module")
def made(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    with served(tmp_path_factory.mktemp("gateway")) as gateway:
        yield gateway


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


@pytest.mark.thorough
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
