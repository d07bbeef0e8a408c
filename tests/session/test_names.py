"""Catalogs, databases, views, functions, options: what statements answer, as Flink prints it."""

from __future__ import annotations

import re

import pytest

from tests.session.environments import ask, new_session
from tidemill.errors import NotSupportedError, SqlSyntaxError, TidemillError, ValidationError
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


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("nope", "Object 'nope' not found"),
        ("T", "Object 'T' not found within 'default_catalog.default_database'"),
        ("bare.nope", "Object 'nope' not found within 'default_catalog.bare'"),
        ("nodb.t", "Object 'nodb' not found"),
        ("BARE.t", "Object 'BARE' not found within 'default_catalog'"),
        ("t.a", "Object 'a' not found within 'default_catalog.default_database.t'"),
        ("c.nodb.t", "Object 'nodb' not found within 'c'"),
        ("c.`default`.t", "Object 't' not found within 'c.default'"),
        ("nocat.nodb.t", "Object 'nocat' not found"),
        ("default_catalog", "Object 'default_catalog' not found"),
    ],
)
def test_the_first_part_of_a_name_that_is_missing(session: TableEnvironment, name: str, message: str) -> None:
    session.execute_sql("CREATE TABLE t (a INT) WITH ('connector'='blackhole')")
    session.execute_sql("CREATE DATABASE bare")
    session.execute_sql("CREATE CATALOG c WITH ('type'='generic_in_memory')")
    with pytest.raises(ValidationError) as raised:
        session.execute_sql(f"SELECT * FROM {name}")
    assert raised.value.message == message


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


def test_another_dialect_is_named_by_the_statement_that_needs_it(session: TableEnvironment) -> None:
    session.execute_sql("SET 'table.sql-dialect' = 'hive'")
    with pytest.raises(
        NotSupportedError,
        match=r"'hive' is not supported\nStatements are Flink SQL.*\nExpected one of: default",
    ):
        session.execute_sql("SELECT 1")
    session.execute_sql("RESET 'table.sql-dialect'")
    session.explain_sql("SELECT 1")


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


@pytest.mark.parametrize("statement", ["ANALYZE TABLE t", "REMOVE JAR '/x.jar'", "CALL p()"])
def test_what_is_not_there_is_named(session: TableEnvironment, statement: str) -> None:
    words = statement.split()
    with pytest.raises(NotSupportedError, match=words[0]):
        session.execute_sql(statement)


def test_time_zones_are_checked_when_used(session: TableEnvironment) -> None:
    session.get_config().set_local_timezone("GMT+03:00")
    assert str(session.context.zone) == "UTC+03:00"
    for wrong in ("Nowhere/City", "GMT+25:00", "GMT-18:01", "GMT+01:60", "+19"):
        session.get_config().set_local_timezone(wrong)
        with pytest.raises(ValidationError, match=f"Invalid time zone '{re.escape(wrong)}'"):
            _ = session.context.zone


def test_catalogs_are_described_and_altered(session: TableEnvironment) -> None:
    ask(session, "CREATE CATALOG c COMMENT 'one' WITH ('type'='generic_in_memory', 'default-database'='d')")
    facts = [("name", "c"), ("type", "generic_in_memory"), ("comment", "one")]
    assert ask(session, "DESCRIBE CATALOG c") == facts
    assert ask(session, "DESC CATALOG EXTENDED c") == [*facts, ("option:default-database", "d")]
    assert ask(session, "DESC CATALOG default_catalog")[2] == ("comment", None)
    ask(session, "ALTER CATALOG c COMMENT 'two'", "ALTER CATALOG c RESET ('default-database')")
    assert ask(session, "DESC CATALOG EXTENDED c") == [*facts[:2], ("comment", "two")]
    ask(session, "ALTER CATALOG c COMMENT ''")
    assert ask(session, "DESC CATALOG c")[2] == ("comment", "")
    ask(session, "ALTER CATALOG c SET ('default-database'='e')")
    assert ask(session, "SHOW DATABASES IN c") == [("d",)]
    for statement, said in (
        ("ALTER CATALOG c SET ('x'='y')", "Unsupported options found"),
        ("ALTER CATALOG c RESET ('type')", "does not support changing 'type'"),
        ("ALTER CATALOG c RESET ()", "does not support empty key"),
        ("ALTER CATALOG x COMMENT 'y'", "Catalog x does not exist in the catalog store"),
        ("DESCRIBE CATALOG x", "Cannot obtain metadata information from Catalog x"),
    ):
        with pytest.raises(ValidationError, match=said):
            ask(session, statement)
    assert ask(session, "DESC CATALOG EXTENDED c")[3:] == [("option:default-database", "e")]


def test_modules_are_unloaded_and_loaded(session: TableEnvironment) -> None:
    ask(session, "UNLOAD MODULE core")
    assert ask(session, "SHOW MODULES") == ask(session, "SHOW FULL MODULES") == []
    assert ask(session, "SHOW FUNCTIONS") == []
    ask(session, "LOAD MODULE core")
    assert ask(session, "SHOW FULL MODULES") == [("core", True)]
    for statement, said in (
        ("LOAD MODULE core", "A module with name 'core' already exists"),
        ("LOAD MODULE hive", "Could not find any factory for identifier 'hive'"),
        ("UNLOAD MODULE hive", "No module with name 'hive' exists"),
        ("USE MODULES core, core", "Module 'core' appears more than once"),
        (
            "SELECT * FROM savepoint_metadata('/a')",
            "No match found for function signature savepoint_metadata",
        ),
    ):
        with pytest.raises(ValidationError, match=said):
            ask(session, statement)
    ask(session, "LOAD MODULE state")
    assert ask(session, "SHOW MODULES") == [("core",), ("state",)]
    assert ("savepoint_metadata",) in ask(session, "SHOW FUNCTIONS")
    for arguments in ("", "1", "'/a', '/b'", "LOWER('/a')"):
        with pytest.raises(ValidationError, match="savepoint_metadata takes one constant"):
            ask(session, f"SELECT * FROM savepoint_metadata({arguments})")


def test_functions_are_altered(session: TableEnvironment) -> None:
    ask(session, "CREATE FUNCTION f AS 'a.B'", "ALTER FUNCTION F AS 'm.g' LANGUAGE PYTHON")
    assert ask(session, "DESCRIBE FUNCTION f")[2:] == [("class name", "m.g"), ("function language", "PYTHON")]
    ask(session, "ALTER FUNCTION IF EXISTS nosuch AS 'x'")
    for statement, said in (
        ("ALTER FUNCTION nosuch AS 'x'", "Function default_database.nosuch does not exist in Catalog"),
        ("ALTER TEMPORARY FUNCTION f AS 'x'", "Alter temporary catalog function is not supported"),
        ("ALTER TEMPORARY SYSTEM FUNCTION f AS 'x'", "Alter temporary system function is not supported"),
        ("DESCRIBE FUNCTION nosuch", "Function with the identifier '`nosuch`' doesn't exist"),
        ("ADD JAR '/no/such.jar'", r"resource \[/no/such.jar\] not found"),
    ):
        with pytest.raises(ValidationError, match=said):
            ask(session, statement)


def test_create_table_as_is_explained_and_creates_nothing(session: TableEnvironment) -> None:
    ((text,),) = ask(session, "EXPLAIN CREATE TABLE x WITH ('connector'='blackhole') AS SELECT 1 AS a")
    assert "LogicalSink(table=[default_catalog.default_database.x], fields=[a])" in text
    assert ask(session, "SHOW TABLES") == []
    for statement, said in (
        ("EXPLAIN CREATE TABLE x (a INT)", "must define a query using the AS clause"),
        ("EXPLAIN CHANGELOG_MODE, CHANGELOG_MODE SELECT 1", "Duplicate EXPLAIN DETAIL is not allowed"),
    ):
        with pytest.raises(SqlSyntaxError, match=said):
            ask(session, statement)
