"""Catalogs, databases, views, functions, options: what statements answer, as Flink prints it."""

from __future__ import annotations

import pytest

from tests.session.environments import ask, new_session
from tidemill.errors import NotSupportedError, TidemillError, ValidationError
from tidemill.session.dispatch import HANDLERS
from tidemill.session.environment import TableEnvironment
from tidemill.session.result import StatementKind
from tidemill.sql import statements as s


@pytest.fixture
def session() -> TableEnvironment:
    return new_session()


def test_every_statement_has_a_handler() -> None:
    kinds = {c for c in vars(s).values() if isinstance(c, type) and issubclass(c, s.Statement)}
    assert kinds - {s.Statement, s.Drop} == set(HANDLERS)


def test_show_lists_by_column_name_sorted(session: TableEnvironment) -> None:
    session.execute_sql("CREATE TABLE t (id INT) WITH ('connector'='blackhole')")
    session.execute_sql("CREATE TEMPORARY VIEW a AS SELECT id FROM t")
    result = session.execute_sql("SHOW TABLES")
    assert [(f.name, str(f.type)) for f in result.fields] == [("table name", "STRING")]
    assert [r[0] for r in result.collect()] == ["a", "t"]
    assert ask(session, "SHOW VIEWS") == [("a",)]
    assert ask(session, "SHOW TABLES LIKE 't%'") == [("t",)]
    assert ask(session, "SHOW TABLES NOT LIKE 't%'") == [("a",)]
    assert ask(session, "SHOW FUNCTIONS LIKE 'conc%'") == [("concat",), ("concat_ws",)]
    assert ("json_value",) in ask(session, "SHOW FUNCTIONS LIKE 'JSON%'")
    assert ask(session, "SHOW FUNCTIONS NOT LIKE '%'") == []
    assert ask(session, "SHOW FULL MODULES") == [("core", True)]
    with pytest.raises(ValidationError, match=r"Database .*nodb' doesn't exist"):
        session.execute_sql("SHOW TABLES FROM nodb")


def test_catalogs_and_databases(session: TableEnvironment) -> None:
    for statement in (
        "CREATE CATALOG c WITH ('type'='generic_in_memory','default-database'='mydb')",
        "USE CATALOG c",
        "CREATE DATABASE IF NOT EXISTS other COMMENT 'x'",
        "USE other",
    ):
        assert ask(session, statement) == [("OK",)]
    assert ask(session, "SHOW CURRENT CATALOG") == [("c",)]
    assert ask(session, "SHOW CURRENT DATABASE") == [("other",)]
    assert ask(session, "SHOW DATABASES") == [("mydb",), ("other",)]
    assert ask(session, "SHOW CREATE CATALOG c") == [
        ("CREATE CATALOG `c`\nWITH (\n  'default-database' = 'mydb',\n  'type' = 'generic_in_memory'\n)\n",)
    ]
    with pytest.raises(ValidationError, match=r"name \[x\] does not exist in the catalog: \[c\]"):
        session.execute_sql("USE x")


def test_a_view_resolves_where_it_was_written(session: TableEnvironment) -> None:
    session.execute_sql("CREATE TABLE t (id INT NOT NULL, g STRING) WITH ('connector'='blackhole')")
    session.execute_sql("CREATE VIEW v (a, b) AS SELECT id, UPPER(g) FROM t")
    session.execute_sql("CREATE DATABASE d")
    session.execute_sql("USE d")
    assert ask(session, "DESCRIBE default_database.v") == [
        ("a", "INT", False, None, None, None),
        ("b", "STRING", True, None, None, None),
    ]


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("CREATE VIEW v (a, b) AS SELECT 1", r"Def fields: \[a, b\].\n\tInput fields: \[EXPR\$0\]"),
        ("CREATE VIEW v AS SELECT 1 AS a, 2 AS a", "A column with the same name `a` has been defined"),
        ("CREATE VIEW v AS SELECT * FROM nope", "Object 'nope' not found"),
        ("ALTER VIEW nope RENAME TO q", "`nope` doesn't exist or is a temporary view"),
        ("SHOW CREATE TABLE nope", "Could not execute SHOW CREATE TABLE"),
        ("DESCRIBE nope", "Tables or views with the identifier"),
        ("DROP FUNCTION nope", "Function default_database.nope does not exist"),
        ("USE MODULES hive", "No module with name 'hive'"),
    ],
)
def test_refusals(session: TableEnvironment, statement: str, message: str) -> None:
    with pytest.raises(TidemillError, match=message):
        session.execute_sql(statement)


def test_altered_views_give_the_new_query(session: TableEnvironment) -> None:
    session.execute_sql("CREATE VIEW v AS SELECT 1 AS a")
    session.execute_sql("ALTER VIEW v AS SELECT 'x' AS b")
    session.execute_sql("ALTER VIEW v RENAME TO w")
    assert ask(session, "DESCRIBE w") == [("b", "CHAR(1)", False, None, None, None)]
    with pytest.raises(ValidationError, match="Please use SHOW CREATE VIEW instead"):
        session.execute_sql("SHOW CREATE TABLE w")


def test_set_and_reset(session: TableEnvironment) -> None:
    assert session.execute_sql("SET 'any.key' = 'v'").kind is StatementKind.SET
    session.execute_sql("SET 'table.exec.state.ttl' = 'soon'")
    assert ask(session, "SET") == [("any.key", "v"), ("table.exec.state.ttl", "soon")]
    with pytest.raises(ValidationError, match=r"'soon' for key 'table.exec.state.ttl'"):
        session.execute_sql("SELECT 1")
    session.execute_sql("RESET 'table.exec.state.ttl'")
    assert ask(session, "SET") == [("any.key", "v")]
    session.execute_sql("RESET")
    assert ask(session, "SET") == []
    with pytest.raises(ValidationError, match="sideways"):
        session.execute_sql("SET 'execution.runtime-mode' = 'sideways'")


def test_reset_goes_back_to_what_the_session_began_with() -> None:
    session = TableEnvironment.create({"pipeline.name": "mine"})
    session.execute_sql("SET 'pipeline.name' = 'other'")
    session.execute_sql("RESET 'pipeline.name'")
    assert session.get_config().get("pipeline.name", "") == "mine"


def test_functions_are_registered_as_python(session: TableEnvironment) -> None:
    session.execute_sql("CREATE TEMPORARY SYSTEM FUNCTION f AS 'm.f' LANGUAGE PYTHON")
    assert ask(session, "SHOW USER FUNCTIONS") == [("f",)]
    ask(session, "CREATE FUNCTION g AS 'a.b.C'")
    with pytest.raises(NotSupportedError, match="functions in JAVA"):
        session.execute_sql("SELECT g(1)")


@pytest.mark.parametrize("statement", ["DELETE FROM t", "ADD JAR '/x.jar'", "CALL p()"])
def test_what_is_not_there_is_named(session: TableEnvironment, statement: str) -> None:
    words = statement.split()
    with pytest.raises(NotSupportedError, match=words[0]):
        session.execute_sql(statement)


def test_time_zones_are_checked_when_used(session: TableEnvironment) -> None:
    session.get_config().set_local_timezone("GMT+03:00")
    assert str(session.context.zone) == "UTC+03:00"
    session.get_config().set_local_timezone("Nowhere/City")
    with pytest.raises(ValidationError, match="Invalid time zone 'Nowhere/City'"):
        _ = session.context.zone
