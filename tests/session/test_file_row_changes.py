"""DELETE and UPDATE of tables in files: the files that have rows to change are written anew."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.connectors.sinks import visible
from tests.session.environments import ask, new_session
from tidemill.connectors.filesystem import replacing, sink
from tidemill.errors import ConnectorError, NotSupportedError, ValidationError
from tidemill.session.environment import TableEnvironment

COLUMNS = "id BIGINT, name STRING, p STRING"


def session(
    root: Path | str, file_format: str = "csv", *, columns: str = COLUMNS, **options: str
) -> TableEnvironment:
    made = new_session(execution__runtime_mode="batch")
    given = {"connector": "filesystem", "path": str(root), "format": file_format}
    given |= {key.replace("_", "."): value for key, value in options.items()}
    listed = ", ".join(f"'{key}' = '{value}'" for key, value in given.items())
    partitions = " PARTITIONED BY (p)" if "p STRING" in columns else ""
    ask(made, f"CREATE TABLE t ({columns}){partitions} WITH ({listed})")
    return made


def all_rows(made: TableEnvironment) -> list[tuple[Any, ...]]:
    return sorted(ask(made, "SELECT * FROM t"), key=repr)


def write(root: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)


FILES = {
    "p=a/1.csv": "1,x\n2,\n3,y\n",
    "p=a/2.csv": "4,z\n",
    "p=b/3.csv": '5,x\n6,"u,v"\n',
    "p=c/4.csv": "7,w\n",
}
PATTERN = {"source_path_regex-pattern": ".*"}
CONDITIONS = (
    "name = 'x'",
    "name <> 'x'",
    "NOT (name = 'x' AND id > 1)",
    "name IS NULL",
    "name IN ('x', CAST(NULL AS STRING))",
    "name NOT IN ('x', CAST(NULL AS STRING))",
    "id IN (SELECT MAX(id) FROM t GROUP BY p)",
    "t.id > (SELECT AVG(id) FROM t) AND p <> 'c'",
    "NULLIF(id, 5) > 4",
)


@pytest.mark.parametrize("condition", CONDITIONS)
def test_rows_change_for_which_the_condition_is_true(spark: object, tmp_path: Path, condition: str) -> None:
    """As SELECT finds them; files without such rows are not touched."""
    write(tmp_path, FILES)
    made = session(tmp_path)
    before = all_rows(made)
    found = set(ask(made, f"SELECT id, name, p FROM t WHERE {condition}"))
    rows_of = {
        name: {int(line.partition(",")[0]) for line in text.splitlines()} for name, text in FILES.items()
    }
    kept = {name for name, ids in rows_of.items() if not ids & {row[0] for row in found}}
    times = {name: (tmp_path / name).stat().st_mtime_ns for name in kept}
    made.execute_sql(f"UPDATE t SET name = name || '!', id = id + 10 WHERE {condition}").wait()
    changed = [
        (i + 10, n if n is None else f"{n}!", p) if (i, n, p) in found else (i, n, p) for i, n, p in before
    ]
    assert all_rows(made) == sorted(changed, key=repr)
    assert kept <= set(visible(tmp_path))
    assert {name: (tmp_path / name).stat().st_mtime_ns for name in kept} == times
    assert not {name for name in FILES if name not in kept} & set(visible(tmp_path))


@pytest.mark.parametrize("condition", CONDITIONS)
def test_rows_go_for_which_the_condition_is_true(spark: object, tmp_path: Path, condition: str) -> None:
    write(tmp_path, FILES)
    made = session(tmp_path)
    before = all_rows(made)
    found = ask(made, f"SELECT id, name, p FROM t WHERE {condition}")
    made.execute_sql(f"DELETE FROM t WHERE {condition}").wait()
    assert all_rows(made) == [row for row in before if row not in found]
    made.execute_sql(f"DELETE FROM t WHERE {condition} AND FALSE").wait()
    made.execute_sql("DELETE FROM t").wait()
    assert visible(tmp_path) == {}
    assert all_rows(made) == []


def test_a_row_moves_to_the_partition_that_it_is_given(spark: object, tmp_path: Path) -> None:
    write(tmp_path, FILES)
    made = session(tmp_path)
    made.execute_sql("UPDATE t SET p = 'n', name = p WHERE id IN (2, 7)").wait()
    changed = {(2, "a", "n"), (7, "c", "n")}
    assert changed <= set(all_rows(made))
    assert len(all_rows(made)) == 7
    assert {name.partition("/")[0] for name in visible(tmp_path)} == {"p=a", "p=b", "p=n"}


def test_statements_follow_one_another(spark: object, tmp_path: Path) -> None:
    """Parquet files, which Spark reads: no plan or listing of an earlier statement is used again."""
    expected = {n: f"n{n}" for n in range(20)}
    rows = [{"id": n, "name": name} for n, name in expected.items()]
    schema = pa.schema([("id", pa.int64()), ("name", pa.string())])
    for number in range(4):
        part = pa.Table.from_pylist(rows[number * 5 : number * 5 + 5], schema=schema)
        pq.write_table(part, tmp_path / f"{number}.parquet")
    made = session(tmp_path, "parquet", columns="id BIGINT, name STRING")
    for number in range(0, 20, 6):
        made.execute_sql(f"DELETE FROM t WHERE id = {number}").wait()
        made.execute_sql(f"UPDATE t SET name = UPPER(name) WHERE id = {number + 1}").wait()
        del expected[number]
        expected[number + 1] = expected[number + 1].upper()
        assert dict(all_rows(made)) == expected
    made.execute_sql("INSERT INTO t VALUES (99, 'new')").wait()
    made.execute_sql("DELETE FROM t WHERE id < 15").wait()
    assert sorted(i for i, _ in all_rows(made)) == [*(i for i in sorted(expected) if i >= 15), 99]


def test_a_file_is_refused_of_which_other_rows_would_change(spark: object, tmp_path: Path) -> None:
    for name, file_format, text, options, said in (
        ("field", "json", '{"id": 1, "name": "x", "more": 1}\n', {}, "line 1"),
        ("digits", "json", '{"id": 1}\n{"id": 1.7, "name": "y"}\n', {}, "line 2"),
        ("comment", "csv", "#top\n1,x\n", {"csv_allow-comments": "true"}, "line 1"),
        ("skipped", "csv", "1,x\nodd,y\n", {"csv_ignore-parse-errors": "true"}, "line 2"),
    ):
        root = tmp_path / name
        write(root, {"1.x": text})
        made = session(root, file_format, columns="id BIGINT, name STRING", **options)
        with pytest.raises(NotSupportedError, match=rf"DELETE of rows in file .*1\.x: .*\({said}\)"):
            made.execute_sql("DELETE FROM t WHERE id = 1").wait()
        assert visible(root) == {"1.x": text}
        made.execute_sql("DELETE FROM t WHERE id = 77").wait()
        assert visible(root) == {"1.x": text}
    pq.write_table(pa.table({"id": [1, 2], "more": ["x", "y"]}), tmp_path / "more.parquet")
    (tmp_path / "q").mkdir()
    (tmp_path / "more.parquet").rename(tmp_path / "q" / "1.parquet")
    made = session(tmp_path / "q", "parquet", columns="id BIGINT")
    with pytest.raises(NotSupportedError, match=r"1\.parquet: .*\(column 'more'\)"):
        made.execute_sql("UPDATE t SET id = 3 WHERE id = 1").wait()


def test_equal_values_of_json_are_enough(spark: object, tmp_path: Path) -> None:
    write(tmp_path, {"1.json": '{ "name": null, "id": 1 }\n{"id":2, "name":"\\u00e4"}\n'})
    made = session(tmp_path, "json", columns="id BIGINT, name STRING")
    made.execute_sql("UPDATE t SET name = 'new' WHERE id = 1").wait()
    assert all_rows(made) == [(1, "new"), (2, "ä")]
    (text,) = visible(tmp_path).values()
    assert [json.loads(line)["id"] for line in text.splitlines()] == [1, 2]


def test_what_cannot_be_written_anew_is_refused_by_name(tmp_path: Path) -> None:
    write(tmp_path / "t", {"1.x": "1,x\n"})

    def refused(
        match: str,
        statement: str,
        root: Path | str = tmp_path / "t",
        of: str = "csv",
        options: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        made = session(root, of, columns="id BIGINT, name STRING", **options)
        with pytest.raises(NotSupportedError, match=match) as found:
            made.execute_sql(statement)
        assert found.value.position is not None

    refused("DELETE of files of format 'orc'", "DELETE FROM t", of="orc")
    refused("UPDATE of files of format 'avro'", "UPDATE t SET id = 1", of="avro")
    refused("DELETE of files of format 'debezium-json'", "DELETE FROM t", of="debezium-json")
    refused("DELETE of a table whose 'path' is a file", "DELETE FROM t", tmp_path / "t" / "1.x")
    refused("'source.path.regex-pattern'", "DELETE FROM t", tmp_path / "t", "csv", PATTERN)
    refused(r"not on a local or mounted disk \(s3\)", "DELETE FROM t", "s3://bucket/t")
    refused("non-deterministic", "DELETE FROM t WHERE RAND() > 0.5")
    refused(
        "non-deterministic", "UPDATE t SET id = 1 WHERE CURRENT_TIMESTAMP > TIMESTAMP '2024-01-01 00:00:00'"
    )
    assert visible(tmp_path / "t") == {"1.x": "1,x\n"}


def test_a_condition_that_reads_what_may_change_is_refused(tmp_path: Path) -> None:
    sqlite3.connect(tmp_path / "x.db").close()
    made = session(tmp_path / "t")
    url = f"jdbc:sqlite:{tmp_path}/x.db"
    ask(made, f"CREATE TABLE d (id BIGINT) WITH ('connector'='jdbc', 'url'='{url}', 'table-name'='d')")
    (tmp_path / "t").mkdir()
    with pytest.raises(NotSupportedError, match="condition that reads a table of connector 'jdbc'"):
        made.execute_sql("DELETE FROM t WHERE id IN (SELECT id FROM d)")
    for statement in ("UPDATE t SET nme = 'x'", "UPDATE t SET id = 1, id = 2"):
        with pytest.raises(ValidationError):
            made.execute_sql(statement)


def test_a_file_that_changes_meanwhile_is_not_lost(
    spark: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, FILES)
    made, real = session(tmp_path), replacing.commit

    def late(*given: Any) -> None:
        write(tmp_path, {"p=b/3.csv": "5,x\n8,late\n"})
        real(*given)

    monkeypatch.setattr(sink, "commit", late)
    with pytest.raises(ConnectorError, match=r"stay as they are: file .*3\.csv has changed"):
        made.execute_sql("DELETE FROM t WHERE name = 'x'").wait()
    assert visible(tmp_path) == FILES | {"p=b/3.csv": "5,x\n8,late\n"}
    assert not list(tmp_path.glob(".staging/*"))
    monkeypatch.undo()
    made.execute_sql("DELETE FROM t WHERE name = 'x'").wait()
    assert [row[0] for row in all_rows(made)] == [2, 3, 4, 7, 8]
