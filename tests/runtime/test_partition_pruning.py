"""Partitions that a query cannot need are not looked at; what a join rules out is not read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from tests.session.environments import ask, new_session
from tidemill.runtime.batch import recording
from tidemill.runtime.events import JobEvent, PartitionsRead, unheard
from tidemill.session import binding, execution
from tidemill.session.environment import TableEnvironment
from tidemill.sql import statements as s
from tidemill.sql.parser import parse_statement

DAYS = [f"2024-01-{day:02}" for day in range(1, 11)]


@pytest.fixture(scope="module")
def environment(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> TableEnvironment:
    """A row for each of ten days and two regions; the files of the tenth day are none."""
    folder = tmp_path_factory.mktemp("facts")
    made = new_session(parallelism__default="2", execution__runtime_mode="batch", table__dml_sync="true")
    values = ", ".join(f"({i}, '{r}', DATE '{d}')" for i, d in enumerate(DAYS) for r in ("north", "south"))
    ask(
        made,
        "CREATE TABLE facts (n INT, region STRING, dt DATE) PARTITIONED BY (dt, region) WITH "
        f"('connector' = 'filesystem', 'path' = '{folder}/facts', 'format' = 'parquet')",
        f"INSERT INTO facts VALUES {values}",
        "CREATE TABLE days (d DATE, holiday STRING) WITH "
        f"('connector' = 'filesystem', 'path' = '{folder}/days', 'format' = 'parquet')",
        "INSERT INTO days VALUES " + ", ".join(f"(DATE '{d}', '{int(d[-1]) % 3}')" for d in DAYS),
    )
    for file in Path(folder, "facts", "dt=2024-01-10").rglob("part-*"):
        file.write_bytes(b"no parquet")
    return made


@pytest.mark.parametrize("mode", ["batch", "streaming"])
@pytest.mark.parametrize(
    ("condition", "rows"),
    [
        ("dt = DATE '2024-01-03'", [2, 2]),
        ("dt < DATE '2024-01-03' AND region = 'south' AND n >= 0", [0, 1]),
        ("DATE '2024-01-08' <= dt AND dt <> DATE '2024-01-10'", [7, 7, 8, 8]),
        ("dt IN (DATE '2024-01-01', DATE '2024-01-04') AND region > 'nzzz'", [0, 3]),
        (
            "dt BETWEEN DATE '2024-01-02' AND DATE '2024-01-02' OR (dt = DATE '2024-01-05' AND n = 4)",
            [1, 1, 4, 4],
        ),
        ("dt IS NULL", []),
    ],
)
def test_what_conditions_rule_out_is_not_looked_at(
    environment: TableEnvironment, mode: str, condition: str, rows: list[int]
) -> None:
    """Else the damaged files of the last day would be an error."""
    environment.execute_sql(f"SET 'execution.runtime-mode' = '{mode}'")
    assert sorted(ask(environment, f"SELECT n FROM facts WHERE {condition}")) == [(n,) for n in rows]


def test_a_scan_that_two_queries_share_reads_what_either_needs(environment: TableEnvironment) -> None:
    environment.execute_sql("SET 'execution.runtime-mode' = 'streaming'")
    query = " UNION ALL ".join(
        f"SELECT n FROM facts WHERE dt = DATE '{d}'" for d in ("2024-01-02", "2024-01-07")
    )
    assert sorted(ask(environment, query)) == [(1,), (1,), (6,), (6,)]


def partitions_read(environment: TableEnvironment, query: str) -> int:
    """Runs ``query``; of the largest table."""
    statement = parse_statement(query)
    assert isinstance(statement, s.Query)
    frame = execution.frame(environment.context, binding.bind(environment.context, statement))
    frame.collect()
    plan = frame._jdf.queryExecution().executedPlan()
    return max(_scans(plan))


def _scans(plan: Any) -> list[int]:
    name = plan.getClass().getSimpleName()
    if name == "AdaptiveSparkPlanExec":
        return _scans(plan.executedPlan())
    if name.endswith("QueryStageExec"):
        return _scans(plan.plan())
    if name == "FileSourceScanExec":
        return [
            plan.metrics().apply("numPartitions").value() if plan.metrics().contains("numPartitions") else 0
        ]
    children = plan.children()
    return [n for i in range(children.size()) for n in _scans(children.apply(i))]


@pytest.mark.one_case
@pytest.mark.parametrize(
    "query",
    [
        "SELECT n FROM facts JOIN days ON dt = d WHERE {0} holiday = '1'",
        "SELECT n FROM facts WHERE {0} dt IN (SELECT d FROM days WHERE holiday = '1')",
    ],
)
def test_what_a_join_rules_out_is_not_read(environment: TableEnvironment, query: str) -> None:
    asked = query.format("dt < DATE '2024-01-10' AND")
    environment.execute_sql("SET 'execution.runtime-mode' = 'batch'")
    events: list[JobEvent] = []
    environment.context.on_event = events.append
    assert sorted(ask(environment, asked)) == [(n,) for n in (0, 0, 3, 3, 6, 6)]
    table = "default_catalog.default_database.facts"
    assert events == [PartitionsRead(job_id="select", table=table, read=6, of=20)]
    assert partitions_read(environment, asked) == 6
    environment.execute_sql("SET 'table.optimizer.dynamic-filtering.enabled' = 'false'")
    assert partitions_read(environment, asked) == 18
    environment.execute_sql("RESET 'table.optimizer.dynamic-filtering.enabled'")


def test_what_was_read_is_told_to_who_listens(
    environment: TableEnvironment, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    def noted(frame: DataFrame, job: str) -> list[PartitionsRead]:
        asked.append(job)
        return []

    monkeypatch.setattr(recording, "partitions_read", noted)
    environment.execute_sql("SET 'execution.runtime-mode' = 'batch'")
    query = "SELECT COUNT(*) FROM facts WHERE dt < DATE '2024-01-10'"
    monkeypatch.setattr(environment.context, "on_event", unheard)
    ask(environment, query)
    assert asked == []
    monkeypatch.setattr(environment.context, "on_event", print)
    ask(environment, query)
    assert asked == ["select"]


def test_the_value_of_a_sub_query_rules_out_partitions(environment: TableEnvironment) -> None:
    """The events are of the table itself and of the sub-query's."""
    environment.execute_sql("SET 'execution.runtime-mode' = 'batch'")
    events: list[JobEvent] = []
    environment.context.on_event = events.append
    latest = "SELECT MAX(dt) FROM facts WHERE dt < DATE '2024-01-10'"
    asked = "SELECT n FROM facts WHERE dt < DATE '2024-01-10' AND dt ="
    assert sorted(ask(environment, f"{asked} ({latest})")) == [(8,), (8,)]
    assert sorted(e.read for e in events if isinstance(e, PartitionsRead)) == [2, 18]
    none = "SELECT MAX(d) FROM days WHERE holiday = 'never'"
    assert ask(environment, f"{asked} ({none})") == []
