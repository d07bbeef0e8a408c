"""COMPILE PLAN keeps an INSERT with what it names; EXECUTE PLAN runs that."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from tests import visible
from tests.session.environments import ask, new_session
from tidemill.errors import NotSupportedError, SqlSyntaxError, StateError, ValidationError
from tidemill.session.environment import TableEnvironment


def session(folder: Path) -> TableEnvironment:
    made = new_session(execution__runtime_mode="batch")
    options = "'connector'='filesystem', 'format'='csv'"
    for statement in (
        f"CREATE TABLE s (k INT, v STRING) WITH ({options}, 'path'='{folder}/first')",
        f"CREATE TABLE r (k INT) WITH ({options}, 'path'='{folder}/second')",
        "CREATE TABLE hidden (k INT) WITH ('connector'='jdbc', 'url'='jdbc:x', 'password'='xyzzy')",
        "CREATE TEMPORARY VIEW few AS SELECT * FROM (VALUES (1, 'a'), (2, 'b')) AS t(k, v)",
        "CREATE VIEW more AS SELECT k + 1 AS k, v FROM few",
    ):
        made.execute_sql(statement)
    return made


def test_a_plan_runs_as_it_was_whatever_has_become_of_its_tables(tmp_path: Path) -> None:
    made, plan = session(tmp_path), tmp_path / "plans" / "p.json"
    assert ask(made, f"COMPILE PLAN '{plan}' FOR INSERT INTO s SELECT * FROM more WHERE k > 2") == [("OK",)]
    assert "xyzzy" not in plan.read_text()
    assert stat.S_IMODE(plan.stat().st_mode) == 0o600
    for statement in ("DROP VIEW more", "DROP TEMPORARY VIEW few", "DROP TABLE s"):
        made.execute_sql(statement)
    made.execute_sql("CREATE TABLE s (x INT) WITH ('connector'='blackhole')")
    made.execute_sql(f"EXECUTE PLAN 'file://{plan}'")
    assert visible.lines(tmp_path / "first") == ["3,b"]
    assert ask(made, "SHOW TABLES") == [("hidden",), ("r",), ("s",)]
    new_session(execution__runtime_mode="batch").execute_sql(f"EXECUTE PLAN '{plan}'")
    assert visible.lines(tmp_path / "first") == ["3,b", "3,b"]


def test_a_file_that_is_there_stays(tmp_path: Path) -> None:
    made, plan = session(tmp_path), tmp_path / "p.json"
    into = "FOR INSERT INTO s SELECT * FROM"
    made.execute_sql(f"COMPILE AND EXECUTE PLAN '{plan}' {into} few WHERE k = 1")
    made.execute_sql(f"COMPILE AND EXECUTE PLAN '{plan}' {into} more")
    assert visible.lines(tmp_path / "first") == ["1,a", "1,a"]
    before = plan.read_text()
    with pytest.raises(ValidationError, match=f"Cannot overwrite the plan file '{plan}'"):
        ask(made, f"COMPILE PLAN '{plan}' {into} more")
    ask(made, f"COMPILE PLAN '{plan}' IF NOT EXISTS {into} more")
    assert plan.read_text() == before
    ask(made, "SET 'table.plan.force-recompile'='true'", f"COMPILE PLAN '{plan}' {into} more")
    assert plan.read_text() != before


def test_a_statement_set_is_one_plan(tmp_path: Path) -> None:
    made, plan = session(tmp_path), tmp_path / "p.json"
    inserts = "INSERT INTO s SELECT * FROM few; INSERT INTO r SELECT k FROM more;"
    ask(made, f"COMPILE PLAN '{plan}' FOR STATEMENT SET BEGIN {inserts} END")
    made.execute_sql(f"EXECUTE PLAN '{plan}'")
    assert visible.lines(tmp_path / "first") == ["1,a", "2,b"]
    assert visible.lines(tmp_path / "second") == ["2", "3"]


def test_what_is_no_plan_is_refused(tmp_path: Path) -> None:
    made = session(tmp_path)
    with pytest.raises(ValidationError, match=r"file resource \[/nowhere/p\] not found"):
        made.execute_sql("EXECUTE PLAN '/nowhere/p'")
    for text in ('{"flinkVersion": "2.3"}', "{", "[1]"):
        (tmp_path / "other").write_text(text)
        with pytest.raises(StateError, match="is not a plan that COMPILE PLAN of Tidemill wrote"):
            made.execute_sql(f"EXECUTE PLAN '{tmp_path}/other'")
    with pytest.raises(SqlSyntaxError) as refused:
        made.execute_sql("COMPILE PLAN 'x' FOR SELECT 1")
    assert refused.value.expected == ("INSERT", "STATEMENT", "UPSERT")
    with pytest.raises(ValidationError, match="Cannot find table"):
        made.execute_sql(f"COMPILE PLAN '{tmp_path}/new' FOR INSERT INTO nope SELECT 1")
    assert not (tmp_path / "new").exists()


def test_what_lives_in_the_program_is_no_part_of_a_plan(tmp_path: Path) -> None:
    made = session(tmp_path)
    made.create_temporary_system_function("plus", _plus)
    with pytest.raises(NotSupportedError, match="is a function of this program"):
        made.execute_sql(f"COMPILE PLAN '{tmp_path}/p' FOR INSERT INTO r SELECT plus(k) FROM few")


def _plus(k: int) -> int:
    return k + 1
