"""The filesystem source: exact offsets, one order, errors that name the place."""

from __future__ import annotations

import gzip
import json
import os
import random
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from tests.connectors.sources import Columns, rows, rows_in_epochs, source, table
from tidemill.catalog.table import CatalogTable
from tidemill.changelog.rowkind import ALL_KINDS, INSERT_ONLY
from tidemill.connectors.api import Offset, ReadLimit
from tidemill.connectors.filesystem import reading
from tidemill.connectors.filesystem import source as source_module
from tidemill.connectors.filesystem.source import FileSource
from tidemill.connectors.registry import connector
from tidemill.connectors.worker_errors import WorkerError, find_error
from tidemill.errors import ConnectorError, StateError
from tidemill.types import logical as t

PAIR = {"a": t.INT, "b": t.STRING}


def files(path: Path, columns: Columns = PAIR, kind: str = "csv", **options: Any) -> CatalogTable:
    given = {"connector": "filesystem", "path": str(path), "format": kind}
    partitioned = options.pop("partitioned_by", ())
    metadata = options.pop("metadata", None)
    extra = {k.replace("__", "-").replace("_", "."): v for k, v in options.items()}
    return table(columns, given | extra, partitioned_by=partitioned, metadata=metadata)


def failure(spark: SparkSession, declared: CatalogTable) -> str:
    with pytest.raises(Exception, match="tidemill") as caught:
        rows(spark, source(declared))
    error = find_error(str(caught.value))
    assert isinstance(error, ConnectorError)
    return str(error)


def test_random_cuts_give_the_same_rows_as_one_read(spark: SparkSession, tmp_path: Path) -> None:
    draw, texts = random.Random(5), ["x", '"q\nr"']
    for name in ("b.csv", "a.csv", "sub/c.csv"):
        lines = [f"{draw.randrange(99)},{draw.choice(texts)}" for _ in range(9)]
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("\n".join(lines) + draw.choice(["", "\n"]))
    declared = files(tmp_path)
    whole = rows(spark, source(declared, sequence=True))
    assert len(whole) == 27
    assert [r[-1] for r in whole] == sorted({r[-1] for r in whole})
    for limit in (ReadLimit(rows=4), ReadLimit(bytes=17), ReadLimit(rows=5, bytes=30)):
        epochs = rows_in_epochs(spark, source(declared, sequence=True), limit)
        found = [r for epoch in epochs for r in epoch]
        assert [r[:-1] for r in found] == [r[:-1] for r in whole]
        assert [r[-1] for r in found] == sorted({r[-1] for r in found})
        assert len(epochs) > 3
    assert [len(e) for e in rows_in_epochs(spark, source(declared), ReadLimit(rows=10))] == [10, 10, 7]


def test_offsets_are_plain_json_and_ranges_repeat(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("1,x\n2,y\n3,z\n")
    read = source(files(tmp_path))
    first = read.next_offset(None, ReadLimit(rows=1))
    stored: Offset = json.loads(json.dumps(first))
    second = read.next_offset(stored, ReadLimit(rows=1))
    for _ in range(2):
        assert [tuple(r) for r in read.read(spark, stored, second).collect()] == [(2, "y")]
    assert not read.is_finished(second)
    third = read.next_offset(second, ReadLimit())
    assert read.is_finished(third)
    assert read.is_empty(third, read.next_offset(third, ReadLimit()))


def test_large_files_are_split_between_tasks(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(source_module, "_TASK_BYTES", 64)
    (tmp_path / "x.csv").write_text("".join(f'{i},"a\n{i}"\n' for i in range(100)))
    read = source(files(tmp_path), sequence=True, parallelism=4)
    frame = read.read_all(spark)
    assert frame.rdd.getNumPartitions() == 4
    found = [tuple(r) for r in frame.collect()]
    assert [r[:2] for r in found] == [(i, f"a\n{i}") for i in range(100)]
    assert [r[2] for r in found] == sorted({r[2] for r in found})


@pytest.mark.parametrize("quoted", [True, False])
def test_the_first_rows_come_before_the_rest_is_decoded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, quoted: bool
) -> None:
    monkeypatch.setattr(reading, "_FIRST_BLOCK", 64)
    text = '"a\nb"' if quoted else "ab"
    (tmp_path / "x.csv").write_text("".join(f"{i},{text}\n" for i in range(200)) + "bad,x\n")
    read = source(files(tmp_path), sequence=True)
    assert isinstance(read, FileSource)
    (task,) = read.tasks(None, read.next_offset(None, ReadLimit()))
    found: list[pa.RecordBatch] = []
    with pytest.raises(WorkerError) as caught:
        found.extend(read.reader.read(task.splits))
    assert f"{tmp_path}/x.csv:{401 if quoted else 201}" in str(caught.value)
    assert found[0].num_rows < 20
    rows = [row for batch in found for row in zip(*(c.to_pylist() for c in batch.columns), strict=True)]
    assert [row[:2] for row in rows] == [(i, text.strip('"')) for i in range(len(rows))]
    assert len({row[2] for row in rows}) == len(rows) > found[0].num_rows
    assert [row[2] for row in rows] == sorted(row[2] for row in rows)
    monkeypatch.setattr(source_module, "_TASK_BYTES", 64)
    few = source(files(tmp_path), limit=found[0].num_rows + 5)
    assert isinstance(few, FileSource)
    (task,) = few.tasks(None, few.next_offset(None, ReadLimit()))
    sizes = [batch.num_rows for batch in few.reader.read(task.splits)]
    assert sizes == [found[0].num_rows, 5]


def test_errors_name_file_and_line(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(source_module, "_TASK_BYTES", 16)
    (tmp_path / "x.csv").write_text("1,x\n" * 50 + 'two,"a\nb"\n')
    assert f"{tmp_path}/x.csv:51" in failure(spark, files(tmp_path))
    (tmp_path / "x.csv").write_text('{"a":1}\n\n{"a":"ten"}\n')
    message = failure(spark, files(tmp_path, kind="json"))
    assert f"{tmp_path}/x.csv:3" in message
    assert "ten" in message


def test_missing_path(tmp_path: Path) -> None:
    with pytest.raises(ConnectorError, match=r"nope\.csv does not exist"):
        source(files(tmp_path / "nope.csv")).next_offset(None, ReadLimit())


def test_files_that_change_or_vanish_are_errors(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text("1,x\n2,y\n")
    read = source(files(tmp_path))
    first = read.next_offset(None, ReadLimit(rows=1))
    path.write_text("1,x\n2,y\n3,z\n")
    with pytest.raises(ConnectorError, match="has changed"):
        read.next_offset(first, ReadLimit(rows=1))
    with pytest.raises(Exception, match="has changed since it was read"):
        read.read(spark, None, first).collect()
    path.unlink()
    with pytest.raises(Exception, match="no longer exists"):
        read.read(spark, None, first).collect()


@pytest.mark.parametrize("watched", [True, False])
def test_a_link_that_leads_nowhere_is_an_error(tmp_path: Path, watched: bool) -> None:
    (tmp_path / "dt=1").mkdir()
    (tmp_path / "x.csv").write_text("1,x\n")
    (tmp_path / ".#x.csv").symlink_to(tmp_path / "nobody@host")  # as editors lock files
    (tmp_path / "far").write_text("2,y\n")
    (tmp_path / "dt=1" / "y.csv").symlink_to(tmp_path / "far")
    options: dict[str, Any] = {"source_monitor__interval": "1 s"} if watched else {}

    def read() -> Offset:
        return source(files(tmp_path, **options), streaming=True).next_offset(None, ReadLimit())

    assert len(read()["files"]) == 3
    (tmp_path / "far").unlink()
    with pytest.raises(ConnectorError, match=rf"A link leads nowhere: '{tmp_path}/dt=1/y\.csv'"):
        read()


def test_offsets_of_another_source_are_refused(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("1,x\n")
    with pytest.raises(StateError):
        source(files(tmp_path)).is_empty({"row": 3}, {"row": 4})


def test_watched_directory_takes_new_files_once(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "b.csv").write_text("1,x\n")
    (tmp_path / ".hidden.csv").write_text("9,x\n")
    (tmp_path / "_part").mkdir()
    (tmp_path / "_part" / "y.csv").write_text("8,x\n")
    read = source(files(tmp_path, source_monitor__interval="1 s"), streaming=True, sequence=True)
    assert not read.is_bounded
    first = read.next_offset(None, ReadLimit())
    assert read.is_empty(first, read.next_offset(first, ReadLimit()))
    (tmp_path / "a.csv").write_text("2,y\n3,z\n")
    second = read.next_offset(first, ReadLimit())
    assert [tuple(r)[:2] for r in read.read(spark, first, second).collect()] == [(2, "y"), (3, "z")]
    everything = [tuple(r) for r in read.read(spark, None, second).collect()]
    assert [r[0] for r in everything] == [1, 2, 3]
    assert [r[2] for r in everything] == sorted({r[2] for r in everything})
    assert not read.is_finished(second)


def test_unwatched_directory_is_bounded_also_while_streaming(tmp_path: Path) -> None:
    assert source(files(tmp_path), streaming=True).is_bounded


def test_gzip(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "a.csv.gz").write_bytes(gzip.compress(b"1,x\n" * 3000))
    (tmp_path / "b.csv").write_text("2,y\n")
    epochs = rows_in_epochs(spark, source(files(tmp_path), sequence=True), ReadLimit(rows=1))
    assert [len(e) for e in epochs] == [3000, 1]
    assert epochs[1][0][2] > epochs[0][-1][2]
    (tmp_path / "a.csv.gz").write_bytes(gzip.compress(b"1,x\n" * 3000)[:-9])
    assert "damaged gzip" in failure(spark, files(tmp_path))


def test_gzip_named_by_the_path_itself(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "a.csv.gz"
    path.write_bytes(gzip.compress(b"1,x\n2,y\n"))
    assert rows(spark, source(files(path))) == [(1, "x"), (2, "y")]
    path.write_bytes(path.read_bytes()[:-9])
    assert "damaged gzip" in failure(spark, files(path))


def test_partition_columns_come_from_the_path(spark: SparkSession, tmp_path: Path) -> None:
    for directory, text in (("dt=2020-01-02/k=a%3Ab", "1\n"), ("dt=__DEFAULT_PARTITION__/k=", "2\n")):
        (tmp_path / directory).mkdir(parents=True)
        (tmp_path / directory / "f.csv").write_text(text)
    declared = files(tmp_path, {"k": t.STRING, "a": t.INT, "dt": t.DATE}, partitioned_by=("dt", "k"))
    found = rows(spark, source(declared))
    assert found == [("a:b", 1, datetime(2020, 1, 2).date()), ("", 2, None)]
    assert rows(spark, source(declared, fields=("dt",)))[0] == (datetime(2020, 1, 2).date(),)
    (tmp_path / "loose.csv").write_text("3\n")
    assert "directory 'k=...'" in failure(spark, declared)


def test_file_metadata(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("1,x\n")
    os.utime(tmp_path / "x.csv", (1_600_000_000, 1_600_000_000))
    keys = {"p": "file.path", "n": "file.name", "s": "file.size", "m": "file.modification-time"}
    declared = files(tmp_path)
    types = connector(declared.options).metadata(declared.options)
    declared = files(tmp_path, metadata={c: types[k] for c, k in keys.items()})
    [found] = source(declared, metadata=keys).read_all(spark).toArrow().to_pylist()
    assert found == {
        "a": 1,
        "b": "x",
        "p": f"{tmp_path}/x.csv",
        "n": "x.csv",
        "s": 4,
        "m": datetime(2020, 9, 13, 12, 26, 40, tzinfo=UTC),
    }


def test_path_pattern(spark: SparkSession, tmp_path: Path) -> None:
    for name in ("a1.csv", "a2.txt"):
        (tmp_path / name).write_text(f"{name[1]},x\n")
    declared = files(tmp_path)
    declared.options["source.path.regex-pattern"] = r".*/a\d\.txt"
    assert rows(spark, source(declared)) == [(2, "x")]


def test_parquet_by_rows_columns_by_name(spark: SparkSession, tmp_path: Path) -> None:
    stored = pa.table(
        {"b": [f"s{i}" for i in range(20)], "a": pa.array(range(20), pa.int64()), "z": [0] * 20}
    )
    pq.write_table(stored, tmp_path / "x.parquet", row_group_size=6)
    declared = files(tmp_path, {**PAIR, "missing": t.DATE}, "parquet")
    expected = [(i, f"s{i}", None) for i in range(20)]
    epochs = rows_in_epochs(spark, source(declared), ReadLimit(rows=7))
    assert [len(e) for e in epochs] == [7, 7, 6]
    assert [r for e in epochs for r in e] == expected
    assert "does not fit INT" in failure(spark, files(tmp_path, {"b": t.INT}, "parquet"))
    (tmp_path / "y.parquet").write_text("no parquet")
    with pytest.raises(ConnectorError, match=r"Cannot read file .*y\.parquet"):
        source(declared).next_offset(None, ReadLimit())


def test_raw_lines(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b'hello, "x"\n\nb')
    assert rows(spark, source(files(tmp_path, {"a": t.STRING}, "raw"))) == [('hello, "x"',), ("",), ("b",)]
    (tmp_path / "x").write_bytes(b"\x00\x00\x01\x00\n")
    assert rows(spark, source(files(tmp_path, {"a": t.INT}, "raw"))) == [(256,)]


def test_changelog_formats_give_kinds(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text(
        '{"op":"c","after":{"a":1,"b":"x"}}\n{"op":"u","before":{"a":1,"b":"x"},"after":{"a":1,"b":"y"}}\n'
    )
    declared = files(tmp_path, kind="debezium-json")
    found = connector(declared.options)
    assert found.source_kinds(declared, declared.options) == ALL_KINDS
    assert connector(files(tmp_path).options).source_kinds(declared, files(tmp_path).options) == INSERT_ONLY
    epochs = rows_in_epochs(spark, source(declared, sequence=True), ReadLimit(rows=1))
    assert [[r[:3] for r in e] for e in epochs] == [[(1, "x", 0)], [(1, "x", 1), (1, "y", 2)]]
    assert epochs[0][0][3] < epochs[1][0][3] < epochs[1][1][3]


def test_an_empty_number_in_csv_asks_for_the_null_literal(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("1,x\n,y\n")
    declared = files(tmp_path)
    message = failure(spark, declared)
    assert 'Fail to deserialize at field: a. "" is not INT.' in message
    assert "The record:  | y\nWith 'csv.null-literal' = ''" in message
    declared.options["csv.null-literal"] = ""
    assert rows(spark, source(declared)) == [(1, "x"), (None, "y")]
    (tmp_path / "x.csv").write_text("z,y\n")
    assert "null-literal" not in failure(spark, declared)


@pytest.mark.parametrize(
    ("kind", "line"),
    [
        ("debezium-json", '{"op":"c","after":{"a":"no"}}'),
        ("debezium-json", '{"op":"zz","after":{"a":1}}'),
        ("json", '{"a":"no"}'),
        ("json", '{"a":'),
    ],
)
def test_a_bad_record_is_shown_once(spark: SparkSession, tmp_path: Path, kind: str, line: str) -> None:
    (tmp_path / "x.json").write_text(line + "\n")
    message = failure(spark, files(tmp_path, kind=kind))
    assert message.count(line) == 1
    assert f"{tmp_path}/x.json:1" in message
