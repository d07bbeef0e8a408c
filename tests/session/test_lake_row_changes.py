"""DELETE and UPDATE of Delta and Iceberg tables without a key: what is kept, refused, and found out."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from tests.connectors.delta_vectors import marked
from tests.session.environments import ask
from tests.session.lake_tables import (
    KINDS,
    PLACES,
    append,
    append_by_library,
    files,
    iceberg,
    session,
    stored,
    version,
)
from tidemill.connectors.delta import commit_file
from tidemill.connectors.lakehouse import files as data_files
from tidemill.connectors.lakehouse.commits import Commits
from tidemill.errors import ConnectorError, NotSupportedError
from tidemill.session.environment import TableEnvironment

REPOSITORY = Path(__file__).parents[2]
COLUMNS = "id BIGINT, name STRING"


@pytest.fixture(autouse=True)
def marks_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tables with deletion vectors mark changed rows, however many of a few there are."""
    monkeypatch.setattr(data_files, "_WORN", 1.0)


def row(number: int, name: str | None = "n") -> dict[str, Any]:
    return {"id": number, "name": name}


def ids(kind: str, root: Path) -> list[int]:
    return sorted(r["id"] for r in stored(kind, root))


def filled(kind: str, root: Path) -> TableEnvironment:
    """With two files."""
    made = session(kind, root, COLUMNS)
    append(made, [row(1), row(2), row(3)], [row(4), row(5)])
    return made


@pytest.mark.every_case
@pytest.mark.parametrize("kind", KINDS)
def test_all_rows_of_a_file_or_of_the_table_go(spark: object, tmp_path: Path, kind: str) -> None:
    made = filled(kind, tmp_path)
    before = set(files(kind, tmp_path))
    ask(made, "DELETE FROM t WHERE id >= 4")
    assert (ids(kind, tmp_path), len(set(files(kind, tmp_path)) & before)) == ([1, 2, 3], 1)
    ask(made, "DELETE FROM t")
    assert stored(kind, tmp_path) == []
    ask(made, "DELETE FROM t", "INSERT INTO t VALUES (7, 'g')", "UPDATE t SET id = id + 1")
    assert ids(kind, tmp_path) == [8]


@pytest.mark.every_case
@pytest.mark.parametrize("kind", KINDS)
def test_both_steps_of_a_statement_see_one_version(
    spark: object, tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another writer appends before the commit: its rows stay as they are, also those that the condition
    holds for, and the subquery does not see them."""
    made, plain, beside = filled(kind, tmp_path), Commits.commit, [[row(6), row(7)]]

    def late(self: Commits, *given: Any) -> None:
        if beside:
            append_by_library(kind, tmp_path, made, beside.pop())
        plain(self, *given)

    monkeypatch.setattr(Commits, "commit", late)
    ask(made, "DELETE FROM t WHERE id > 2 AND id <= (SELECT MAX(id) FROM t)")
    assert ids(kind, tmp_path) == [1, 2, 6, 7]


@pytest.mark.every_case
@pytest.mark.parametrize("kind", KINDS)
def test_a_file_that_another_writer_replaces_meanwhile_is_an_error(
    spark: object, tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, other = filled(kind, tmp_path), session(kind, tmp_path, COLUMNS)
    plain, beside = Commits.commit, ["UPDATE t SET name = 'late' WHERE id = 1"]

    def late(self: Commits, *given: Any) -> None:
        if beside:
            ask(other, beside.pop())
        plain(self, *given)

    monkeypatch.setattr(Commits, "commit", late)
    with pytest.raises(ConnectorError, match=r"DELETE changes nothing in table .*another writer has changed"):
        ask(made, "DELETE FROM t WHERE id IN (2, 5)")
    assert sorted((r["id"], r["name"]) for r in stored(kind, tmp_path)) == [
        (1, "late"),
        *((n, "n") for n in (2, 3, 4, 5)),
    ]
    ask(made, "DELETE FROM t WHERE id IN (2, 5)")
    assert ids(kind, tmp_path) == [1, 3, 4]


_VICTIM = """
import os, pathlib, signal
from tests.session.lake_tables import session
from tidemill.connectors.lakehouse import files
from tidemill.connectors.lakehouse.commits import Commits
files._WORN = 1.0
Commits.commit = lambda *given: os.kill(os.getpid(), signal.SIGKILL)
made = session({kind!r}, pathlib.Path({root!r}), {columns!r})
made.execute_sql("UPDATE t SET name = 'x' WHERE id = 1").wait()
"""


@pytest.mark.thorough
@pytest.mark.parametrize("kind", KINDS)
def test_a_statement_that_is_killed_before_the_commit_changes_nothing(
    spark: object, tmp_path: Path, kind: str
) -> None:
    made = filled(kind, tmp_path)
    before, at = files(kind, tmp_path), version(kind, tmp_path)
    written = len(list(tmp_path.rglob("*.parquet")))
    script = _VICTIM.format(kind=kind, root=str(tmp_path), columns=COLUMNS)
    died = subprocess.run([sys.executable, "-c", script], cwd=REPOSITORY, check=False, capture_output=True)
    assert died.returncode == -signal.SIGKILL, died.stderr[-2000:]
    assert len(list(tmp_path.rglob("*.parquet"))) > written
    assert (files(kind, tmp_path), version(kind, tmp_path)) == (before, at)
    ask(made, "UPDATE t SET name = 'x' WHERE id = 1")
    assert len(stored(kind, tmp_path)) == 5


@pytest.mark.every_case
@pytest.mark.parametrize("kind", KINDS)
def test_statements_at_the_same_time_lose_no_row(spark: object, tmp_path: Path, kind: str) -> None:
    """Each adds 10 to its row; those that fail are run again."""
    made = session(kind, tmp_path, COLUMNS)
    append(made, [row(1), row(2)], [row(3), row(4)])

    def add(number: int) -> int:
        own = session(kind, tmp_path, COLUMNS)
        for failed in range(20):
            try:
                ask(own, f"UPDATE t SET id = id + 10 WHERE id = {number}")
            except ConnectorError as e:
                assert "another writer has changed rows" in e.message  # noqa: PT017 - some fail, some do not
                continue
            return failed
        raise AssertionError("it never comes through")

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(add, (1, 2, 3, 4)))
    assert ids(kind, tmp_path) == [11, 12, 13, 14]


@pytest.mark.every_case
@pytest.mark.parametrize("kind", KINDS)
def test_the_version_before_can_still_be_read(spark: object, tmp_path: Path, kind: str) -> None:
    made = filled(kind, tmp_path)
    at, option = version(kind, tmp_path), "snapshot-id" if kind == "iceberg" else "versionAsOf"
    ask(made, "DELETE FROM t WHERE id = 1")
    assert ask(made, f"SELECT COUNT(*) FROM t /*+ OPTIONS('{option}'='{at}') */") == [(5,)]
    other = session(kind, tmp_path, COLUMNS, **{option: str(at)})
    where = PLACES[kind].format(root=tmp_path / "keyed")
    columns = f"{COLUMNS}, PRIMARY KEY (id) NOT ENFORCED"
    ask(other, f"CREATE TABLE k ({columns}) WITH ({where}, '{option}'='{at}')")
    merge = "MERGE INTO k USING k AS s ON k.id = s.id WHEN MATCHED THEN DELETE"
    for statement in ("DELETE FROM t", "UPDATE k SET name = 'x'", "DELETE FROM k", merge):
        with pytest.raises(NotSupportedError, match=f"MERGE INTO of a table with '{option}'") as found:
            ask(other, statement)
        assert found.value.position is not None


@pytest.mark.every_case
@pytest.mark.parametrize("kind", KINDS)
def test_the_file_of_a_row_can_be_asked_for(spark: object, tmp_path: Path, kind: str) -> None:
    made = filled(kind, tmp_path)
    place = PLACES[kind].format(root=tmp_path) + (", 'catalog-table'='t'" if kind == "iceberg" else "")
    metadata = "place STRING METADATA FROM 'file.path' VIRTUAL, number BIGINT METADATA FROM 'file.row-index'"
    columns = f"id BIGINT, {metadata} VIRTUAL"
    ask(made, f"CREATE TABLE p ({columns}) WITH ({place})")
    found = ask(made, "SELECT place, MIN(id), COUNT(*), MAX(number) FROM p GROUP BY place")
    assert sorted(r[1:] for r in found) == [(1, 3, 2), (4, 2, 1)]
    assert all(Path(r[0]).is_file() for r in found)


@pytest.mark.parametrize("by", ["", "name"])
def test_a_change_feed_says_which_rows_have_changed(spark: object, tmp_path: Path, by: str) -> None:
    """As deltalake's own reader and a stream of changes read it."""
    made = session("delta", tmp_path, COLUMNS, by=by)
    append(made, [row(1, "a"), row(2, None), row(3, "c")], [row(4, "a"), row(5, "c")])
    DeltaTable(tmp_path).alter.set_table_properties({"delta.enableChangeDataFeed": "true"})
    at = version("delta", tmp_path)
    ask(made, "UPDATE t SET name = 'new', id = id + 10 WHERE id IN (1, 2)", "DELETE FROM t WHERE id = 5")
    assert ids("delta", tmp_path) == [3, 4, 11, 12]
    feed = pa.RecordBatchReader.from_stream(DeltaTable(tmp_path).load_cdf(starting_version=at + 1))
    found = [(r["_change_type"], r["id"], r["name"]) for r in feed.read_all().to_pylist()]
    changes = [
        ("delete", 5, "c"),
        ("update_postimage", 11, "new"),
        ("update_postimage", 12, "new"),
        ("update_preimage", 1, "a"),
        ("update_preimage", 2, None),
    ]
    assert sorted(found) == changes
    kinds = {"insert": 0, "update_preimage": 1, "update_postimage": 2, "delete": 3}
    streamed = f"/*+ OPTIONS('mode'='streaming', 'readChangeFeed'='true', 'startingVersion'='{at + 1}') */"
    ask(made, "SET 'execution.runtime-mode' = 'streaming'")
    result = made.execute_sql(f"SELECT * FROM t {streamed}")
    stream = result.collect()
    read = [next(stream) for _ in changes]
    assert result.job is not None
    result.job.cancel()
    assert sorted((int(r.get_row_kind().value), *r) for r in read) == sorted(
        (kinds[kind], number, name) for kind, number, name in changes
    )


def test_a_changed_value_by_chance_is_refused_beside_a_feed(spark: object, tmp_path: Path) -> None:
    made = session("delta", tmp_path, "id BIGINT, x DOUBLE")
    append(made, [{"id": 1, "x": 0.0}])
    ask(made, "UPDATE t SET x = RAND() WHERE id = 1")
    DeltaTable(tmp_path).alter.set_table_properties({"delta.enableChangeDataFeed": "true"})
    with pytest.raises(NotSupportedError, match="UPDATE of a table with a change feed that calls"):
        ask(made, "UPDATE t SET x = RAND() WHERE id = 1")


def test_a_version_of_the_log_that_another_writer_makes_first_is_tried_again(
    spark: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, plain = filled("delta", tmp_path), commit_file.put_version
    properties = {"delta.enableChangeDataFeed": "true", "delta.checkpointInterval": "1"}
    DeltaTable(tmp_path).alter.set_table_properties(properties)
    beside = [[row(6)]]

    def late(*given: Any) -> None:
        if beside:
            append_by_library("delta", tmp_path, made, beside.pop())
        plain(*given)

    monkeypatch.setattr("tidemill.connectors.delta.target.put_version", late)
    ask(made, "DELETE FROM t WHERE id = 2")
    assert ids("delta", tmp_path) == [1, 3, 4, 5, 6]
    assert (tmp_path / f"_delta_log/{version('delta', tmp_path):020d}.checkpoint.parquet").exists()


def test_what_cannot_be_written_is_refused_by_name(tmp_path: Path) -> None:
    schema = pa.schema([("id", pa.int64()), ("name", pa.string())])

    def refused(message: str, root: Path, kind: str = "delta") -> None:
        with pytest.raises(NotSupportedError, match=message) as found:
            ask(session(kind, root, COLUMNS), "UPDATE t SET id = 1 WHERE id = 2")
        assert found.value.position is not None

    DeltaTable.create(tmp_path / "a", schema, configuration={"delta.appendOnly": "true"})
    refused("delta.appendOnly", tmp_path / "a")
    DeltaTable.create(tmp_path / "c", schema).alter.add_constraint({"positive": "id > 0"})
    refused(r"rules for its rows: delta\.constraints\.positive", tmp_path / "c")
    made = session("iceberg", tmp_path / "i", COLUMNS)
    append(made, [row(1)])
    path = Path(iceberg(tmp_path / "i").metadata_location.removeprefix("file://"))
    found = json.loads(path.read_text())
    path.write_text(json.dumps({**found, "format-version": 3, "next-row-id": 0}))
    refused("format version 3", tmp_path / "i", "iceberg")


@pytest.mark.parametrize(
    ("option", "value"), [("not-null-enforcer", "DROP"), ("type-length-enforcer", "TRIM_PAD")]
)
def test_constraints_that_would_change_rows_that_stay_are_refused(
    tmp_path: Path, option: str, value: str
) -> None:
    made = session("delta", tmp_path, "id BIGINT, name VARCHAR(2) NOT NULL")
    write_deltalake(tmp_path, pa.Table.from_pylist([row(1, "abc"), row(2, None), row(3, "abc")]))
    ask(made, f"SET 'table.exec.sink.{option}' = '{value}'")
    for statement in ("DELETE FROM t WHERE id = 1", "UPDATE t SET id = 4 WHERE id = 1"):
        with pytest.raises(NotSupportedError, match=f"{option}' = '{value}', which may change other rows"):
            ask(made, statement)


def test_deleted_rows_beside_data_files_are_refused(spark: object, tmp_path: Path) -> None:
    """An Iceberg table of another writer that deletes by merge on read."""
    made = filled("iceberg", tmp_path)
    snapshot, io = iceberg(tmp_path).current_snapshot(), iceberg(tmp_path).io
    assert snapshot is not None
    (manifest,) = snapshot.manifests(io)
    path = Path(manifest.manifest_path.removeprefix("file://"))
    with path.open("rb") as file:
        reader = fastavro.reader(file)
        schema: Any = reader.writer_schema
        entries: list[Any] = list(reader)
        metadata = {k: v for k, v in reader.metadata.items() if not k.startswith("avro.")}
    entries[0]["data_file"]["content"] = 1
    with path.open("wb") as file:
        fastavro.writer(file, schema, entries, metadata=metadata)
    with pytest.raises(NotSupportedError, match="Row-level deletes, which Iceberg table"):
        ask(made, "DELETE FROM t WHERE id = 1")


def test_files_with_many_deleted_rows_and_tables_with_a_feed_are_written_anew(
    spark: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Then their former vectors go."""
    monkeypatch.setattr(data_files, "_WORN", 0.25)
    made = session("vectors", tmp_path, COLUMNS)
    append(made, [row(n) for n in range(12)], [row(n) for n in range(12, 24)])
    ask(made, "DELETE FROM t WHERE id IN (1, 2, 13)", "UPDATE t SET name = 'x' WHERE id = 14")
    assert sorted(marked(tmp_path).values()) == [2, 2]
    ask(made, "DELETE FROM t WHERE id IN (3, 4, 5, 15)")
    assert not marked(tmp_path)
    assert ids("vectors", tmp_path) == [0, *range(6, 13), 14, *range(16, 24)]
    append(made, [row(n) for n in range(30, 40)], job="other")
    ask(made, "DELETE FROM t WHERE id = 30")
    DeltaTable(tmp_path).alter.set_table_properties({"delta.enableChangeDataFeed": "true"})
    at = version("vectors", tmp_path)
    ask(made, "UPDATE t SET name = 'new' WHERE id = 31", "DELETE FROM t WHERE id = 32")
    assert not marked(tmp_path)
    assert ids("vectors", tmp_path)[-8:] == [31, *range(33, 40)]
    feed = pa.RecordBatchReader.from_stream(DeltaTable(tmp_path).load_cdf(starting_version=at + 1))
    assert sorted((r["_change_type"], r["id"]) for r in feed.read_all().to_pylist()) == [
        ("delete", 32),
        ("update_postimage", 31),
        ("update_preimage", 31),
    ]
