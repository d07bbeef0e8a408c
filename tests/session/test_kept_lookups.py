"""The state of a lookup join whose input takes rows back: it moves with a savepoint, and nobody edits it."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.session.environments import ask, new_session
from tidemill.client.main import main
from tidemill.errors import NotSupportedError, StateError
from tidemill.session.environment import TableEnvironment

SUMS = (
    "INSERT INTO o SELECT k, SUM(a * x) AS s FROM t LEFT JOIN dim FOR SYSTEM_TIME AS OF t.p AS dim "
    "ON t.k = dim.id GROUP BY k"
)


def session(root: Path, **options: str) -> TableEnvironment:
    made = new_session(table__dml_sync="true", **options)
    jdbc = f"'connector'='jdbc', 'url'='jdbc:sqlite:{root}/db'"
    ask(
        made,
        "CREATE TABLE t (k INT, a BIGINT, p AS PROCTIME()) WITH ('connector'='filesystem', "
        f"'path'='{root}/in', 'format'='debezium-json')",
        f"CREATE TABLE dim (id INT, x BIGINT, y BIGINT) WITH ({jdbc}, 'table-name'='dim')",
        f"CREATE TABLE o (k INT, s BIGINT, PRIMARY KEY (k) NOT ENFORCED) WITH ({jdbc}, 'table-name'='o')",
    )
    return made


def put(root: Path, name: str, *changes: tuple[str, int, int]) -> None:
    rows = [(kind, {"k": k, "a": a}) for kind, k, a in changes]
    lines = [
        json.dumps(
            {"before": None, "after": row, "op": "c"}
            if kind == "+I"
            else {"before": row, "after": None, "op": "d"}
        )
        for kind, row in rows
    ]
    (root / "in" / name).write_text("\n".join(lines) + "\n")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "in").mkdir()
    with sqlite3.connect(tmp_path / "db") as db:
        db.execute("CREATE TABLE dim (id INTEGER PRIMARY KEY, x BIGINT, y BIGINT)")
        db.execute("CREATE TABLE o (k INTEGER PRIMARY KEY, s BIGINT)")
        db.executemany("INSERT INTO dim VALUES (?, ?, ?)", [(1, 10, 100), (2, 20, 200)])
    return tmp_path


def test_a_row_takes_back_what_was_found_in_an_earlier_job(spark: SparkSession, root: Path) -> None:
    put(root, "1", ("+I", 1, 1), ("+I", 1, 2), ("+I", 2, 5), ("+I", 3, 7))
    ask(session(root, parallelism__default="2", execution__checkpointing__dir=f"{root}/first"), SUMS)
    for arguments in (("export", "first", "exported"), ("import", "exported", "back")):
        assert main(["savepoint", arguments[0], *(str(root / a) for a in arguments[1:])]) == 0
    with sqlite3.connect(root / "db") as db:
        db.execute("UPDATE dim SET x = 1000")
    put(root, "2", ("-D", 1, 2), ("-D", 2, 5), ("+I", 2, 6))
    origin = {"execution__state_recovery__path": f"{root}/back"}
    made = session(root, parallelism__default="3", execution__checkpointing__dir=f"{root}/second", **origin)
    with pytest.raises(StateError, match=r"\(LookupJoin\(.* has other columns or calls than what is stored"):
        made.execute_sql(SUMS.replace("a * x", "a * y"))
    ask(made, SUMS)
    with sqlite3.connect(root / "db") as db:
        assert db.execute("SELECT * FROM o ORDER BY k").fetchall() == [(1, 10), (2, 6000), (3, None)]
    editing = new_session(execution__runtime_mode="batch", tidemill__savepoint__target=f"{root}/edited")
    ask(editing, f"CREATE CATALOG s WITH ('type'='savepoint', 'path'='{root}/second')", "USE CATALOG s")
    assert ask(editing, "SELECT k, a, x FROM found_rows_1 ORDER BY k") == [
        (1, 1, 10),
        (2, 6, 1000),
        (3, 7, None),
    ]
    for change in ("DELETE FROM found_rows_1", "UPDATE found_rows_1 SET weight = 2"):
        with pytest.raises(NotSupportedError, match=r"Rows of 'found_rows_1', .* cannot be written"):
            editing.execute_sql(change)
    with pytest.raises(NotSupportedError, match=r"State of computed_once_1, .* cannot be built"):
        made.execute_sql(f"CREATE SAVEPOINT '{root}/built' FOR {SUMS} WITH STATE (a AS SELECT 1)")
    assert not (root / "built").exists()
    assert not (root / "edited").exists()
