"""TO_CHANGELOG and FROM_CHANGELOG: what comes out, by Flink's answers, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.session.environments import ask, new_session
from tidemill.errors import ExecutionError, NotSupportedError, TidemillError, ValidationError
from tidemill.session.environment import TableEnvironment

CHANGES = [
    {"op": "c", "after": {"k": "a", "n": 1}},
    {"op": "u", "before": {"k": "a", "n": 1}, "after": {"k": "a", "n": 2}},
    {"op": "c", "after": {"k": "b", "n": 7}},
    {"op": "d", "before": {"k": "a", "n": 2}},
]
AS_ROWS = [
    ("INSERT", "a", 1),
    ("UPDATE_BEFORE", "a", 1),
    ("UPDATE_AFTER", "a", 2),
    ("INSERT", "b", 7),
    ("DELETE", "a", 2),
]


def _written(
    session: TableEnvironment, path: Path, name: str, columns: str, form: str, rows: list[Any]
) -> None:
    """A table of one file per row, so that an epoch can end after each."""
    path.mkdir()
    for number, row in enumerate(rows):
        (path / f"{number}.json").write_text(json.dumps(row) + "\n")
    session.execute_sql(
        f"CREATE TABLE {name} ({columns}) WITH ('connector'='filesystem', 'path'='{path}', 'format'='{form}')"
    )


@pytest.fixture(params=["one epoch", "an epoch per row"])
def session(request: pytest.FixtureRequest, spark: SparkSession, tmp_path: Path) -> TableEnvironment:
    session = new_session()
    if request.param != "one epoch":
        session.get_config().set("tidemill.epoch.max-rows", "1")
    _written(session, tmp_path / "s", "s", "k STRING, n INT", "debezium-json", CHANGES)
    codes = [dict(zip(("op", "k", "n"), row, strict=True)) for row in AS_ROWS]
    _written(session, tmp_path / "r", "r", "op STRING, k STRING, n INT", "json", codes)
    return session


def _changes(session: TableEnvironment, query: str) -> list[tuple[str, tuple[Any, ...]]]:
    return [(row.get_row_kind().short, tuple(row)) for row in session.execute_sql(query).collect()]


def test_changes_become_rows(session: TableEnvironment) -> None:
    found = _changes(session, "SELECT * FROM TO_CHANGELOG(input => TABLE s)")
    assert sorted(found) == sorted(("+I", row) for row in AS_ROWS)
    query = "SELECT x, COUNT(*) FROM TABLE(TO_CHANGELOG(TABLE s, DESCRIPTOR(o))) AS t(x, y, z) GROUP BY x"
    assert dict(ask(session, query)) == {"INSERT": 2, "UPDATE_BEFORE": 1, "UPDATE_AFTER": 1, "DELETE": 1}


@pytest.mark.parametrize(
    ("mapping", "expected"),
    [
        ("MAP['INSERT, UPDATE_AFTER', 'UP', 'DELETE', 'D']", [("UP", 1), ("UP", 2), ("UP", 7), ("D", 2)]),
        ("MAP['INSERT', 'I', 'UPDATE_AFTER', 'U']", [("I", 1), ("U", 2), ("I", 7)]),
        ("MAP['INSERT', 'x', 'INSERT', 'y']", [("y", 1), ("y", 7)]),
        ("CAST(NULL AS MAP<STRING, STRING>)", [(op, n) for op, _, n in AS_ROWS]),
    ],
)
def test_changes_that_are_not_mapped_are_left_out(
    session: TableEnvironment, mapping: str, expected: list[tuple[str, int]]
) -> None:
    query = f"SELECT c, n FROM TO_CHANGELOG(input => TABLE s, op => DESCRIPTOR(c), op_mapping => {mapping})"
    assert sorted(ask(session, query)) == sorted(expected)


def test_a_query_is_an_input_too(session: TableEnvironment) -> None:
    query = (
        "SELECT op, k, c FROM TO_CHANGELOG(input => (SELECT k, SUM(n) AS c FROM s GROUP BY k)) WHERE k = 'b'"
    )
    assert ask(session, query) == [("INSERT", "b", 7)]
    assert ask(session, "SELECT * FROM TO_CHANGELOG(input => (SELECT 1 AS x))") == [("INSERT", 1)]
    mapped = "SELECT * FROM TO_CHANGELOG(input => (SELECT 1 AS x), op_mapping => MAP['DELETE', 'D'])"
    assert ask(session, mapped) == []


def test_rows_become_changes(session: TableEnvironment) -> None:
    found = _changes(session, "SELECT * FROM FROM_CHANGELOG(input => TABLE r)")
    expected = [("+I", ("a", 1)), ("-U", ("a", 1)), ("+U", ("a", 2)), ("+I", ("b", 7)), ("-D", ("a", 2))]
    assert sorted(found) == sorted(expected)


@pytest.mark.one_case
def test_what_reads_the_changes_takes_them_back(session: TableEnvironment) -> None:
    session.execute_sql("CREATE TEMPORARY VIEW v AS SELECT * FROM TO_CHANGELOG(input => TABLE s)")
    for source in ("r", "v"):
        query = f"SELECT COUNT(*), SUM(n), MAX(n) FROM FROM_CHANGELOG(input => TABLE {source})"
        assert ask(session, query)[-1] == (1, 7, 7)


def test_codes_are_mapped(session: TableEnvironment) -> None:
    mapping = "MAP['INSERT , UPDATE_AFTER', 'INSERT', 'UPDATE_BEFORE,DELETE', 'DELETE']"
    query = f"SELECT * FROM FROM_CHANGELOG(input => TABLE r, op_mapping => {mapping})"
    expected = [("+I", ("a", 1)), ("-D", ("a", 1)), ("+I", ("a", 2)), ("+I", ("b", 7)), ("-D", ("a", 2))]
    assert sorted(_changes(session, query)) == sorted(expected)


def test_an_upsert_source_is_normalized(spark: SparkSession, tmp_path: Path) -> None:
    session = new_session()
    session.execute_sql("SET 'table.exec.source.cdc-events-duplicate' = 'true'")
    events = [CHANGES[0], CHANGES[0], *CHANGES[1:]]
    _written(
        session, tmp_path / "u", "u", "k STRING PRIMARY KEY NOT ENFORCED, n INT", "debezium-json", events
    )
    plan = "\n".join(ask(session, "EXPLAIN CHANGELOG_MODE SELECT * FROM TO_CHANGELOG(input => TABLE u)")[0])
    assert "ChangelogNormalize(key=[k], changelogMode=[I,UB,UA,D])" in plan
    session.get_config().set("tidemill.epoch.max-rows", "1")
    assert sorted(ask(session, "SELECT * FROM TO_CHANGELOG(input => TABLE u)")) == sorted(AS_ROWS)


def test_plans_are_flinks(session: TableEnvironment) -> None:
    (plan,) = ask(
        session, "EXPLAIN CHANGELOG_MODE SELECT op, k FROM TO_CHANGELOG(input => TABLE s) WHERE n > 1"
    )
    assert (
        "Calc(select=[op, k], where=[>(n, 1)], changelogMode=[I])\n"
        "+- ProcessTableFunction(invocation=[TO_CHANGELOG(TABLE(#0), DEFAULT(), DEFAULT(), DEFAULT(), "
        "DEFAULT())], uid=[null], select=[op,k,n], rowType=[RecordType(VARCHAR(2147483647) op, "
        "VARCHAR(2147483647) k, INTEGER n)], changelogMode=[I])\n"
        "   +- TableSourceScan(table=[[default_catalog, default_database, s]], fields=[k, n], "
        "changelogMode=[I,UB,UA,D])"
    ) in plan[0]
    (plan,) = ask(session, "EXPLAIN CHANGELOG_MODE SELECT * FROM FROM_CHANGELOG(input => TABLE r)")
    assert (
        "select=[k,n], rowType=[RecordType(VARCHAR(2147483647) k, INTEGER n)], changelogMode=[I,UB,UA,D])"
        in (plan[0])
    )


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (
            "(SELECT 'x' AS op, 1 AS n)",
            "Received invalid op code 'x'. Defined op codes are: "
            "[INSERT, UPDATE_BEFORE, UPDATE_AFTER, DELETE].",
        ),
        (
            "(SELECT CAST(NULL AS STRING) AS op, 1 AS n)",
            "Received NULL op code. Every changelog row must carry an operation code.",
        ),
    ],
)
def test_unknown_codes_fail(spark: SparkSession, source: str, message: str) -> None:
    with pytest.raises(ExecutionError) as caught:
        ask(new_session(), f"SELECT * FROM FROM_CHANGELOG(input => {source})")
    assert caught.value.message == message


VALUES = "(SELECT 'INSERT' AS op, 1 AS n)"


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (f"TO_CHANGELOG(input => {VALUES})", ValidationError, "Found duplicates: [op]"),
        (f"TO_CHANGELOG(input => {VALUES}, op => DESCRIPTOR(n))", ValidationError, "Found duplicates: [n]"),
        (
            f"TO_CHANGELOG(input => {VALUES}, op => DESCRIPTOR(a, b))",
            ValidationError,
            "exactly one column name",
        ),
        (f"TO_CHANGELOG(input => {VALUES}, op => 'x')", ValidationError, "must be a DESCRIPTOR"),
        (
            f"TO_CHANGELOG(input => {VALUES}, foo => 1)",
            ValidationError,
            "Supported form(s): TO_CHANGELOG(input",
        ),
        ("FROM_CHANGELOG(op => DESCRIPTOR(op))", ValidationError, "Supported form(s): FROM_CHANGELOG(input"),
        (f"TO_CHANGELOG(input => {VALUES}, on_time => DESCRIPTOR(n))", NotSupportedError, "'on_time'"),
        (
            f"TO_CHANGELOG(input => {VALUES}, op => DESCRIPTOR(o), op_mapping => MAP['insert', 'I'])",
            ValidationError,
            "Unknown change operation: 'insert'. "
            "Valid values are: [DELETE, INSERT, UPDATE_AFTER, UPDATE_BEFORE].",
        ),
        (
            f"TO_CHANGELOG(input => {VALUES}, op => DESCRIPTOR(o), op_mapping => MAP['INSERT, INSERT', 'I'])",
            ValidationError,
            "Duplicate change operation: 'INSERT'.",
        ),
        (
            f"FROM_CHANGELOG(input => {VALUES}, op => DESCRIPTOR(z))",
            ValidationError,
            "'z' does not exist in the",
        ),
        (
            f"FROM_CHANGELOG(input => {VALUES}, op => DESCRIPTOR(n))",
            ValidationError,
            "must be of STRING type",
        ),
        (
            f"FROM_CHANGELOG(input => {VALUES}, op_mapping => MAP['a', 'UPDATE_AFTER'])",
            ValidationError,
            "must include UPDATE_BEFORE for retract mode",
        ),
        (
            f"FROM_CHANGELOG(input => {VALUES}, op_mapping => MAP['x', 'INSERT', 'y', 'INSERT'])",
            ValidationError,
            "Use comma-separated keys to map multiple codes to the same operation",
        ),
        (
            f"FROM_CHANGELOG(input => {VALUES}, op_mapping => MAP['x,y', 'INSERT', 'x', 'DELETE'])",
            ValidationError,
            "Duplicate code: 'x'",
        ),
        (
            f"FROM_CHANGELOG(input => {VALUES}, op_mapping => MAP['x', UPPER('insert')])",
            ValidationError,
            "must be a constant MAP literal",
        ),
        (
            "FROM_CHANGELOG(input => (SELECT op, COUNT(*) AS c FROM (VALUES 'a') AS t(op) GROUP BY op))",
            ValidationError,
            "doesn't support consuming update changes which is produced by node GroupAggregate",
        ),
    ],
)
def test_wrong_calls_are_refused(call: str, error: type[TidemillError], message: str) -> None:
    with pytest.raises(error) as caught:
        ask(new_session(), f"SELECT * FROM {call}")
    assert message in caught.value.message


def test_rows_are_not_partitioned() -> None:
    session = new_session()
    session.execute_sql("CREATE TABLE t (op STRING, k INT) WITH ('connector'='datagen')")
    with pytest.raises(ValidationError, match="Only tables with set semantics may be partitioned"):
        ask(session, "SELECT * FROM FROM_CHANGELOG(input => TABLE t PARTITION BY k)")


@pytest.mark.parametrize(
    ("name", "source"),
    [("TO_CHANGELOG", "(SELECT 1 AS n)"), ("FROM_CHANGELOG", VALUES)],
)
def test_a_batch_has_no_changes(name: str, source: str) -> None:
    session = new_session(execution__runtime_mode="batch")
    with pytest.raises(NotSupportedError, match=f"{name} runs in streaming mode only"):
        ask(session, f"SELECT * FROM {name}(input => {source})")
