"""NULLs that a source delivers in a column declared NOT NULL: no result and no sink takes them."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.session.environments import ask, new_session
from tidemill.errors import ExecutionError
from tidemill.plan.optimizer import optimize
from tidemill.runtime.compile.not_null import required_columns
from tidemill.session import binding, planning
from tidemill.session.environment import TableEnvironment
from tidemill.sql import statements as s
from tidemill.sql.parser import parse_statement

ENFORCER = "table.exec.sink.not-null-enforcer"
MESSAGE = (
    "Column 'id' is NOT NULL, however, a null value is being written into it. You can set job configuration "
    f"'{ENFORCER}'='DROP' to suppress this exception and drop such records silently."
)


def _session(path: Path, mode: str, **options: str) -> TableEnvironment:
    (path / "in").mkdir()
    (path / "in" / "x.json").write_text('{"id":1,"v":1}\n{"id":"no","v":2}\n{"v":3}\n')
    session = new_session(execution__runtime_mode=mode, table__dml_sync="true")
    files = "'connector'='filesystem', 'format'='json', 'json.ignore-parse-errors'='true'"
    for name, key in (("src", "PRIMARY KEY (id) NOT ENFORCED"), ("dst", "PRIMARY KEY (v) NOT ENFORCED")):
        place = path / ("in" if name == "src" else "out")
        session.execute_sql(
            f"CREATE TABLE {name} (id INT NOT NULL, v INT, {key}) WITH ({files}, 'path'='{place}')"
        )
    return session


@pytest.fixture(params=["streaming", "batch"])
def session(request: pytest.FixtureRequest, spark: SparkSession, tmp_path: Path) -> TableEnvironment:
    return _session(tmp_path, request.param)


def test_a_result_has_no_null_in_a_not_null_column(session: TableEnvironment) -> None:
    with pytest.raises(ExecutionError) as caught:
        ask(session, "SELECT v, id FROM src")
    assert caught.value.message == MESSAGE
    with pytest.raises(ExecutionError, match="Column 'key' is NOT NULL"):
        ask(session, "SELECT id AS key, COUNT(*) FROM src GROUP BY id")


def test_only_what_arrives_is_checked(session: TableEnvironment) -> None:
    assert ask(session, "SELECT v, id FROM src WHERE v = 1") == [(1, 1)]
    assert sorted(ask(session, "SELECT v FROM src")) == [(1,), (2,), (3,)]
    assert ask(session, "SELECT COUNT(v) FROM src")[-1] == (3,)


def test_rows_can_be_dropped(session: TableEnvironment) -> None:
    session.execute_sql(f"SET '{ENFORCER}' = 'DROP'")
    assert ask(session, "SELECT v, id FROM src") == [(1, 1)]
    session.execute_sql("INSERT INTO dst SELECT id, v FROM src")
    session.execute_sql("RESET")
    assert ask(session, "SELECT v, id FROM dst") == [(1, 1)]


def test_no_sink_takes_it(session: TableEnvironment) -> None:
    with pytest.raises(ExecutionError) as caught:
        session.execute_sql("INSERT INTO dst SELECT id, v FROM src")
    assert caught.value.message == MESSAGE
    with pytest.raises(ExecutionError, match="Column 'v' is NOT NULL"):
        session.execute_sql("INSERT INTO dst SELECT 1, CAST(NULLIF(v, 1) AS INT) FROM src")


@pytest.mark.parametrize("enforcer", ["ERROR", "DROP"])
def test_streams_are_checked_over_arrow(tmp_path: Path, enforcer: str) -> None:
    session = _session(tmp_path, "streaming")
    session.execute_sql(f"SET '{ENFORCER}' = '{enforcer}'")
    ((text,),) = ask(session, "EXPLAIN EXECUTION_PLAN INSERT INTO dst SELECT id, v FROM src")
    _, _, execution = text.partition("== Execution ==")
    assert "over Arrow of" in execution
    assert "JVM" not in execution


def test_changes_are_checked_too(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text(
        '{"op":"c","after":{"id":1}}\n{"op":"u","before":{"id":1},"after":{"id":"x"}}\n'
    )
    session = new_session()
    session.execute_sql(
        "CREATE TABLE t (id INT, PRIMARY KEY (id) NOT ENFORCED) WITH ('connector'='filesystem',"
        f" 'path'='{tmp_path}', 'format'='debezium-json', 'debezium-json.ignore-parse-errors'='true')"
    )
    with pytest.raises(ExecutionError) as caught:
        ask(session, "SELECT * FROM t")
    assert caught.value.message == MESSAGE


@pytest.mark.parametrize(
    ("query", "checked"),
    [
        ("SELECT id FROM src", {"id": "id"}),
        ("SELECT CAST(id AS STRING) AS s, id + 1, v FROM src", {"s": "s"}),
        ("SELECT DISTINCT v, id FROM src", {"id": "id"}),
        ("SELECT v, COUNT(*) AS n, id AS k FROM src GROUP BY v, id", {"k": "k"}),
        ("SELECT a.id, b.id AS other FROM src a LEFT JOIN src b ON a.v = b.v", {"id": "id"}),
        ("SELECT a.v, b.id FROM src a JOIN src b ON a.v = b.v", {"id": "id"}),
        ("SELECT 1 AS id UNION ALL SELECT id FROM src", {"id": "id"}),
        ("SELECT id, VAR_SAMP(id) FROM src GROUP BY id", {"id": "id"}),
        ("SELECT v FROM src", {}),
        ("SELECT v, COUNT(*) FROM src GROUP BY v", {}),
        ("SELECT a FROM (VALUES (1)) AS t(a)", {}),
    ],
)
def test_columns_as_they_were_read_are_checked(tmp_path: Path, query: str, checked: dict[str, str]) -> None:
    context = _session(tmp_path, "streaming").context
    statement = parse_statement(query)
    assert isinstance(statement, s.Query)
    logical = optimize(binding.bind(context, statement))
    names = tuple(f.name for f in logical.fields)
    for root in (planning.batch(context, logical), planning.physical(context.configuration, logical)):
        assert required_columns(root, names, logical.fields) == checked


@pytest.mark.parametrize(
    ("query", "checked"),
    [
        ("SELECT * FROM TO_CHANGELOG(input => (SELECT v, id FROM src))", {"id": "id"}),
        (
            "SELECT * FROM FROM_CHANGELOG(input => (SELECT v, CAST(v AS STRING) AS op, id FROM src))",
            {"id": "id"},
        ),
        (
            "SELECT * FROM FROM_CHANGELOG(input => (SELECT id, CAST(v AS STRING) AS op FROM src))",
            {"id": "id"},
        ),
    ],
)
def test_columns_keep_their_names_where_changes_become_rows(
    tmp_path: Path, query: str, checked: dict[str, str]
) -> None:
    context = _session(tmp_path, "streaming").context
    statement = parse_statement(query)
    assert isinstance(statement, s.Query)
    logical = optimize(binding.bind(context, statement))
    root = planning.physical(context.configuration, logical)
    assert required_columns(root, tuple(f.name for f in logical.fields), logical.fields) == checked
