"""CREATE, SHOW, DESCRIBE and DROP SAVEPOINT, as they are read."""

from __future__ import annotations

import pytest

from tidemill.errors import SqlSyntaxError
from tidemill.sql import statements as s
from tidemill.sql.parser import parse_statement


def test_savepoints_are_named_by_their_paths_and_jobs_by_their_ids() -> None:
    made = parse_statement("CREATE SAVEPOINT '/a''b' FOR JOB 'j'")
    assert isinstance(made, s.CreateSavepoint)
    assert (made.path, made.job_id) == ("/a'b", "j")
    own = parse_statement("create savepoint for job 'j'")
    assert isinstance(own, s.CreateSavepoint)
    assert (own.path, own.job_id) == ("", "j")
    dropped = parse_statement("DROP SAVEPOINT IF EXISTS '/a'")
    assert isinstance(dropped, s.DropSavepoint)
    assert (dropped.path, dropped.if_exists) == ("/a", True)
    listed = parse_statement("SHOW SAVEPOINTS IN 's3://b/c'")
    assert isinstance(listed, s.ShowSavepoints)
    assert listed.directory == "s3://b/c"
    assert isinstance(parse_statement("SHOW SAVEPOINTS"), s.ShowSavepoints)
    assert isinstance(parse_statement("DESC SAVEPOINT '/a'"), s.DescribeSavepoint)
    assert isinstance(parse_statement("DESCRIBE `savepoint`"), s.Describe), "a table of that name"


def test_state_is_built_from_queries() -> None:
    built = parse_statement(
        "CREATE SAVEPOINT '/a' FOR INSERT INTO t SELECT k, COUNT(*) FROM u GROUP BY k "
        "WITH STATE (op_1 AS (SELECT k, v FROM x, y), op_2 (k, `COUNT(*)`) AS SELECT k, n FROM z)"
    )
    assert isinstance(built, s.BuildSavepoint)
    assert isinstance(built.target, s.Insert)
    assert (built.path, built.target.target) == ("/a", ("t",))
    assert [(t.table, t.columns) for t in built.tables] == [("op_1", ()), ("op_2", ("k", "COUNT(*)"))]
    several = parse_statement(
        "CREATE SAVEPOINT '/a' FOR STATEMENT SET BEGIN INSERT INTO t SELECT 1; END WITH STATE (a AS SELECT 1)"
    )
    assert isinstance(several, s.BuildSavepoint)
    assert isinstance(several.target, s.StatementSet)


@pytest.mark.parametrize(
    "text",
    [
        "CREATE SAVEPOINT FOR INSERT INTO t SELECT 1 WITH STATE (a AS SELECT 1)",
        "CREATE SAVEPOINT '/a' FOR INSERT INTO t SELECT 1",
        "CREATE SAVEPOINT '/a' FOR INSERT INTO t SELECT 1 WITH STATE ()",
        "CREATE SAVEPOINT '/a' FOR INSERT INTO t SELECT 1 WITH STATE (a SELECT 1)",
        "CREATE SAVEPOINT '/a'",
        "CREATE OR REPLACE SAVEPOINT '/a' FOR JOB 'j'",
        "CREATE SAVEPOINT FOR JOB j",
        "DROP SAVEPOINT a",
        "SHOW SAVEPOINTS IN a",
    ],
)
def test_what_is_no_statement_about_savepoints(text: str) -> None:
    with pytest.raises(SqlSyntaxError):
        parse_statement(text)
