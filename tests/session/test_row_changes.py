"""DELETE, UPDATE and TRUNCATE TABLE on every kind of table that can."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from tests.connectors.lake import batch, delta_rows, staged
from tests.connectors.sinks import sink
from tests.session.environments import ask, new_session
from tidemill.catalog.table import CatalogTable
from tidemill.connectors.iceberg.catalogs import catalog_of
from tidemill.errors import ConnectorError, ExecutionError, NotSupportedError, ValidationError
from tidemill.session.environment import TableEnvironment

COLUMNS = "(id BIGINT, name STRING)"


def session(*statements: str) -> TableEnvironment:
    made = new_session(execution__runtime_mode="batch")
    ask(made, *statements)
    return made


def filled(made: TableEnvironment, *rows: dict[str, Any]) -> None:
    """Appends to the table ``t`` without Spark."""
    found = made.context.catalogs.find(made.context.catalogs.qualify(("t",)))
    assert isinstance(found, CatalogTable)
    target = sink(found)
    target.publish(1, staged(target, batch(found, rows)))


def test_a_delta_table_gets_a_version_without_rows(tmp_path: Path) -> None:
    options = f"'connector'='delta', 'table-path'='{tmp_path}'"
    made = session(f"CREATE TABLE t {COLUMNS} PARTITIONED BY (name) WITH ({options})")
    filled(made, {"id": 1, "name": "a"}, {"id": 2, "name": None})
    ask(made, "TRUNCATE TABLE t")
    assert delta_rows(tmp_path) == []
    assert len(DeltaTable(tmp_path, version=1).file_uris()) == 2


def test_an_iceberg_table_gets_a_snapshot_without_rows(tmp_path: Path) -> None:
    made = session(f"CREATE TABLE t {COLUMNS} WITH ('connector'='iceberg', 'warehouse'='{tmp_path}')")
    filled(made, {"id": 1, "name": "a"})
    ask(made, "TRUNCATE TABLE t", "TRUNCATE TABLE t")
    table = catalog_of("iceberg", {"warehouse": str(tmp_path)}).load_table("default.t")
    assert table.scan().to_arrow().num_rows == 0
    assert table.snapshots()


def test_files_of_a_table_go_but_hidden_ones_stay(tmp_path: Path) -> None:
    (tmp_path / "p=1").mkdir()
    for name in ("a.csv", "p=1/b.csv", ".hidden"):
        (tmp_path / name).write_text("1,a\n")
    ask(
        session(
            f"CREATE TABLE t {COLUMNS} WITH ('connector'='filesystem', 'path'='{tmp_path}', 'format'='csv')"
        ),
        "TRUNCATE TABLE t",
    )
    left = sorted(str(p.relative_to(tmp_path)) for p in tmp_path.rglob("*") if p.is_file())
    assert left == [".changes/00000001.json", ".hidden"]


def test_rows_of_a_database_go(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "x.db") as open:
        open.execute('CREATE TABLE "odd name" (id INT, name TEXT)')
        open.execute("INSERT INTO \"odd name\" VALUES (1, 'a')")
    options = f"'connector'='jdbc', 'url'='jdbc:sqlite:{tmp_path}/x.db'"
    made = session(f"CREATE TABLE t {COLUMNS} WITH ({options}, 'table-name'='odd name')")
    ask(made, "TRUNCATE TABLE t")
    with sqlite3.connect(tmp_path / "x.db") as open:
        assert open.execute('SELECT COUNT(*) FROM "odd name"').fetchone() == (0,)
    with pytest.raises(ConnectorError, match="no such table: gone"):
        ask(made, f"CREATE TABLE g {COLUMNS} WITH ({options}, 'table-name'='gone')", "TRUNCATE TABLE g")


def test_rows_are_deleted_and_updated_by_key(spark: object, tmp_path: Path) -> None:
    """A Delta table, whose rows choose what changes in a table of a database."""
    with sqlite3.connect(tmp_path / "x.db") as open:
        open.execute("CREATE TABLE d (id INT PRIMARY KEY, name TEXT)")
        open.executemany("INSERT INTO d VALUES (?, ?)", [(1, "a"), (2, "b"), (3, None)])
    columns = "(id BIGINT, name STRING, PRIMARY KEY (id) NOT ENFORCED)"
    made = session(
        f"CREATE TABLE t {columns} WITH ('connector'='delta', 'table-path'='{tmp_path}/t')",
        f"CREATE TABLE d {columns} WITH ('connector'='jdbc', 'url'='jdbc:sqlite:{tmp_path}/x.db',"
        " 'table-name'='d')",
    )
    filled(made, *({"id": n, "name": f"n{n}"} for n in range(1, 5)))
    made.execute_sql("DELETE FROM t WHERE id > 3 OR name = 'n1'").wait()
    made.execute_sql("UPDATE t SET name = name || '!' WHERE id = 2").wait()
    assert sorted(tuple(row.values()) for row in delta_rows(tmp_path / "t")) == [(2, "n2!"), (3, "n3")]
    made.execute_sql("DELETE FROM d WHERE name IS NULL OR id NOT IN (SELECT id FROM t)").wait()
    made.execute_sql("UPDATE d SET name = UPPER(name)").wait()
    with sqlite3.connect(tmp_path / "x.db") as open:
        assert open.execute("SELECT id, name FROM d").fetchall() == [(2, "B")]


MERGE = """
MERGE INTO t AS o USING (VALUES (1, 'x', TRUE), (2, 'y', FALSE), (9, 'z', FALSE), (8, 'gone', TRUE))
  AS n (id, name, gone)
ON o.id = n.id
WHEN MATCHED AND n.gone THEN DELETE
WHEN MATCHED AND o.name <> 'n3' THEN UPDATE SET name = o.name || n.name
WHEN NOT MATCHED AND NOT gone THEN INSERT (id, name) VALUES (n.id, n.name)
"""


def test_rows_are_merged(spark: object, tmp_path: Path) -> None:
    """A Delta table gets changes; a table of a database follows it."""
    with sqlite3.connect(tmp_path / "x.db") as open:
        open.execute("CREATE TABLE d (id INT PRIMARY KEY, name TEXT)")
        open.executemany("INSERT INTO d VALUES (?, ?)", [(1, "a"), (2, None), (3, "c")])
    columns = "(id BIGINT, name STRING, PRIMARY KEY (id) NOT ENFORCED)"
    made = session(
        f"CREATE TABLE t {columns} WITH ('connector'='delta', 'table-path'='{tmp_path}/t')",
        f"CREATE TABLE d {columns} WITH ('connector'='jdbc', 'url'='jdbc:sqlite:{tmp_path}/x.db',"
        " 'table-name'='d')",
    )
    filled(made, *({"id": n, "name": f"n{n}"} for n in range(1, 5)))
    made.execute_sql(MERGE).wait()
    merged = [(2, "n2y"), (3, "n3"), (4, "n4"), (9, "z")]
    assert sorted(tuple(row.values()) for row in delta_rows(tmp_path / "t")) == merged
    follow = "MERGE INTO d USING t ON d.id = t.id WHEN MATCHED THEN UPDATE SET d.name = t.name"
    made.execute_sql(f"{follow} WHEN NOT MATCHED THEN INSERT VALUES (t.id, t.name)").wait()
    with sqlite3.connect(tmp_path / "x.db") as open:
        assert open.execute("SELECT id, name FROM d ORDER BY id").fetchall() == [(1, "a"), *merged]


def test_two_source_rows_for_one_target_row_change_nothing(spark: object, tmp_path: Path) -> None:
    columns = "(id BIGINT, name STRING, PRIMARY KEY (id) NOT ENFORCED)"
    made = session(f"CREATE TABLE t {columns} WITH ('connector'='delta', 'table-path'='{tmp_path}')")
    filled(made, {"id": 1, "name": "a"})
    twice = "(VALUES (1, 'x'), (1, 'y'), (5, 'z')) AS s (id, name) ON t.id = s.id"
    message = r"two source rows match or insert the same target row: id = 1"
    for clause in ("MATCHED THEN DELETE", "MATCHED THEN UPDATE SET name = s.name"):
        with pytest.raises(ExecutionError, match=message):
            made.execute_sql(f"MERGE INTO t USING {twice} WHEN {clause}").wait()
    twice = twice.replace("1", "7")
    with pytest.raises(ExecutionError, match=message.replace("1", "7")):
        made.execute_sql(f"MERGE INTO t USING {twice} WHEN NOT MATCHED THEN INSERT VALUES (s.id, s.name)")
    assert [tuple(row.values()) for row in delta_rows(tmp_path)] == [(1, "a")]


def test_tables_without_a_key_are_refused(tmp_path: Path) -> None:
    made = session(
        f"CREATE TABLE t {COLUMNS} WITH ('connector'='delta', 'table-path'='{tmp_path}')",
        f"CREATE TABLE f {COLUMNS} WITH ('connector'='print')",
    )
    with pytest.raises(NotSupportedError, match="MERGE of a table without a primary key"):
        ask(made, "MERGE INTO t USING t AS s ON t.id = s.id WHEN MATCHED THEN DELETE")
    with pytest.raises(NotSupportedError, match="UPDATE of a table of connector 'print'"):
        ask(made, "UPDATE f SET id = 1")
    with pytest.raises(ValidationError, match="DELETE statement is not supported for streaming mode now"):
        ask(made, "SET 'execution.runtime-mode' = 'streaming'", "DELETE FROM t")


def test_what_cannot_be_emptied_is_refused() -> None:
    made = session(f"CREATE TABLE p {COLUMNS} WITH ('connector'='print')", "CREATE VIEW v AS SELECT 1")
    with pytest.raises(NotSupportedError, match="TRUNCATE TABLE of a table of connector 'print'") as found:
        ask(made, "TRUNCATE TABLE p")
    assert found.value.position is not None
    with pytest.raises(ValidationError, match="`v` is a view"):
        ask(made, "TRUNCATE TABLE v")
    with pytest.raises(ValidationError, match="`pp` doesn't exist"):
        ask(made, "TRUNCATE TABLE pp")
    with pytest.raises(ValidationError, match="is not supported in streaming mode"):
        ask(made, "SET 'execution.runtime-mode' = 'streaming'", "TRUNCATE TABLE p")
