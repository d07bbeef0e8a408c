"""The filesystem sink: nothing shows before publish, everything shows once after it."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from tests.connectors.sinks import sink, stage, visible, write
from tests.connectors.sources import rows, source, table
from tidemill.catalog.table import CatalogTable
from tidemill.changelog.rowkind import ALL_KINDS, UPSERT
from tidemill.connectors.filesystem.sink import FileSink
from tidemill.connectors.filesystem.writing import StagedWriter
from tidemill.connectors.registry import connector
from tidemill.connectors.worker_errors import WorkerError
from tidemill.errors import ConnectorError, NotSupportedError, ValidationError
from tidemill.files.storage import Storage
from tidemill.types import logical as t

PAIRS = {"a": t.INT, "b": t.STRING}


def files(path: Path, **options: str) -> CatalogTable:
    given = {"connector": "filesystem", "path": str(path), "format": "csv"}
    return table(PAIRS, given | {k.replace("_", "."): v for k, v in options.items()})


def pairs(spark: SparkSession, *values: tuple[int, str | None], parts: int = 1) -> DataFrame:
    return spark.createDataFrame(list(values), "a INT, b STRING").coalesce(parts)


def test_rows_show_only_after_publish(spark: SparkSession, tmp_path: Path) -> None:
    target = sink(files(tmp_path))
    tokens = stage(target, pairs(spark, (1, "x"), (2, "y z")), 1)
    assert visible(tmp_path) == {}
    target.publish(1, tokens)
    assert visible(tmp_path) == {"part-job-00000001-0-0.csv": '1,x\n2,"y z"\n'}


def test_publish_again_after_a_crash_changes_nothing(spark: SparkSession, tmp_path: Path) -> None:
    target = sink(files(tmp_path))
    tokens = stage(target, pairs(spark, (1, "x")), 1)
    target.publish(1, tokens)
    target.publish(1, tokens)
    assert list(visible(tmp_path).values()) == ["1,x\n"]


def test_publish_continues_where_a_crash_cut_it(spark: SparkSession, tmp_path: Path) -> None:
    declared = table(
        PAIRS, {"connector": "filesystem", "path": str(tmp_path), "format": "csv"}, partitioned_by=("b",)
    )
    target = sink(declared)
    tokens = stage(target, pairs(spark, (1, "x"), (2, "y")), 7)
    staged = tmp_path / ".staging" / "job" / "7"
    (tmp_path / "b=x").mkdir()
    moved = next(staged.glob("*/b=x/*"))
    moved.rename(tmp_path / "b=x" / moved.name)
    sink(declared).publish(7, tokens)
    assert sorted(visible(tmp_path).values()) == ["1\n", "2\n"]


def test_a_task_that_outlives_its_attempt_changes_nothing(spark: SparkSession, tmp_path: Path) -> None:
    target = sink(files(tmp_path))
    lost = stage(target, pairs(spark, (9, "lost")), 3)
    won = stage(target, pairs(spark, (1, "x")), 3)
    late = stage(target, pairs(spark, (8, "late")), 3)
    target.publish(3, won)
    expected = {"part-job-00000003-0-0.csv": "1,x\n"}
    assert visible(tmp_path) == expected
    stage(target, pairs(spark, (7, "later")), 3)
    target.publish(3, won)
    assert visible(tmp_path) == expected
    assert len({*lost, *won, *late}) == 3
    target.discard(5)
    assert not list(tmp_path.glob(".staging/job/*"))


def test_what_is_named_is_on_the_disk_first(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    forced: list[str] = []
    real = os.fsync

    def fsync(descriptor: int) -> None:
        forced.append(os.readlink(f"/proc/self/fd/{descriptor}"))
        real(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)
    target = sink(files(tmp_path))
    assert isinstance(target, FileSink)
    writer = target.stager(1)
    assert writer is not None
    batch = pa.record_batch({"a": pa.array([1], pa.int32()), "b": ["x"]})
    [token] = [row for made in writer([batch]) for row in made.column("token").to_pylist()]
    staged = next((tmp_path / ".staging").rglob("*.csv"))
    parents = [p for p in staged.parents if p.is_relative_to(tmp_path)]
    assert {str(staged), *map(str, parents)} <= set(forced)
    forced.clear()
    target.publish(1, [token])
    assert str(tmp_path) in forced


def test_discard_removes_the_epoch_and_later_ones(spark: SparkSession, tmp_path: Path) -> None:
    target = sink(files(tmp_path))
    kept = stage(target, pairs(spark, (1, "x")), 1)
    lost = stage(target, pairs(spark, (2, "y")), 2)
    target.discard(2)
    target.publish(1, kept)
    with pytest.raises(ConnectorError, match="neither staged nor published"):
        target.publish(2, lost)
    assert list(visible(tmp_path).values()) == ["1,x\n"]


def test_a_task_that_outlives_a_batch_job_leaves_nothing(tmp_path: Path) -> None:
    """Its rows were sent before the job failed, and written after that."""
    target, writer = _begun(tmp_path)
    batch = pa.record_batch({"a": pa.array([1], pa.int32()), "b": ["x"]})

    def rows_then_the_end() -> Iterator[pa.RecordBatch]:
        target.discard(1)
        assert not list(tmp_path.iterdir())
        yield batch

    with pytest.raises(WorkerError, match="was canceled"):
        list(writer(rows_then_the_end()))
    assert not list(tmp_path.iterdir())


def test_what_is_given_up_after_its_token_goes_with_the_job(tmp_path: Path) -> None:
    target, writer = _begun(tmp_path)
    rows = iter(writer([pa.record_batch({"a": pa.array([1], pa.int32()), "b": ["x"]})]))
    next(rows)
    del rows
    assert len(list(tmp_path.rglob("*.csv"))) == 1
    target.discard(1)
    assert not list(tmp_path.iterdir())


def test_a_task_that_fails_leaves_nothing_of_its_own(tmp_path: Path) -> None:
    """What others have staged stays: the task may be tried again."""
    _, writer = _begun(tmp_path)
    batch = pa.record_batch({"a": pa.array([1], pa.int32()), "b": ["x"]})
    [staged] = [row for made in writer([batch]) for row in made.column("token").to_pylist()]

    def rows_of_a_lost_connection() -> Iterator[pa.RecordBatch]:
        yield batch
        raise EOFError

    with pytest.raises(EOFError):
        list(writer(rows_of_a_lost_connection()))
    attempts = [file.parent.name for file in tmp_path.rglob("*.csv")]
    assert attempts == [json.loads(staged)["attempt"]]


def _begun(folder: Path) -> tuple[FileSink, StagedWriter]:
    """A job in batch mode that is under way, and one of its tasks."""
    target = sink(files(folder), streaming=False)
    assert isinstance(target, FileSink)
    return target, target.writer(1, target.begin())


def test_finish_leaves_no_staging_directory(spark: SparkSession, tmp_path: Path) -> None:
    target = sink(files(tmp_path))
    write(target, pairs(spark, (1, "x")))
    target.finish()
    assert [p.name for p in tmp_path.iterdir()] == ["part-job-00000001-0-0.csv"]


def test_partition_columns_are_directories_and_come_back(spark: SparkSession, tmp_path: Path) -> None:
    declared = table(
        {"a": t.INT, "b": t.STRING, "c": t.DATE},
        {"connector": "filesystem", "path": str(tmp_path), "format": "csv"}
        | {"sink.partition-commit.policy.kind": "success-file"},
        partitioned_by=("b", "c"),
    )
    frame = spark.sql(
        "SELECT * FROM VALUES (1, 'a b/c:%', DATE '2020-01-02'), "
        " (2, CAST(NULL AS STRING), DATE '2020-01-02'), (3, 'é', CAST(NULL AS DATE)) AS t(a, b, c)"
    ).coalesce(1)
    write(sink(declared), frame)
    assert visible(tmp_path) == {
        "b=__DEFAULT_PARTITION__/c=2020-01-02/_SUCCESS": "",
        "b=__DEFAULT_PARTITION__/c=2020-01-02/part-job-00000001-0-1.csv": "2\n",
        "b=a b%2Fc%3A%25/c=2020-01-02/_SUCCESS": "",
        "b=a b%2Fc%3A%25/c=2020-01-02/part-job-00000001-0-0.csv": "1\n",
        "b=é/c=__DEFAULT_PARTITION__/_SUCCESS": "",
        "b=é/c=__DEFAULT_PARTITION__/part-job-00000001-0-2.csv": "3\n",
    }
    assert set(rows(spark, source(declared))) == set(map(tuple, frame.collect()))


def test_overwrite_replaces_the_table_or_the_touched_partitions(spark: SparkSession, tmp_path: Path) -> None:
    write(sink(files(tmp_path / "t"), job="j1", streaming=False), pairs(spark, (1, "x")))
    write(sink(files(tmp_path / "t"), job="j2", overwrite=True, streaming=False), pairs(spark, (2, "y")))
    assert list(visible(tmp_path / "t").values()) == ["2,y\n"]
    declared = table(
        PAIRS,
        {"connector": "filesystem", "path": str(tmp_path / "p"), "format": "csv"},
        partitioned_by=("b",),
    )
    write(sink(declared, job="j1"), pairs(spark, (1, "x"), (2, "y")))
    write(sink(declared, job="j2", overwrite=True, streaming=False), pairs(spark, (3, "x")))
    assert sorted(visible(tmp_path / "p").values()) == ["2\n", "3\n"]


def test_an_overwrite_published_again_keeps_what_it_wrote(spark: SparkSession, tmp_path: Path) -> None:
    write(sink(files(tmp_path), job="j1"), pairs(spark, (1, "x")))
    target = sink(files(tmp_path), job="j2", overwrite=True, streaming=False)
    tokens = stage(target, pairs(spark, (2, "y")), 1)
    target.publish(1, tokens)
    write(sink(files(tmp_path), job="j3"), pairs(spark, (3, "z")))
    target.publish(1, tokens)
    assert sorted(visible(tmp_path).values()) == ["2,y\n", "3,z\n"]


def test_an_overwrite_that_dies_leaves_the_old_or_the_new_files(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(sink(files(tmp_path), job="j1"), pairs(spark, (1, "x")))
    target = sink(files(tmp_path), job="j2", overwrite=True, streaming=False)
    tokens = stage(target, pairs(spark, (2, "y"), (3, "z"), parts=2), 1)
    with monkeypatch.context() as patch:
        patch.setattr(Storage, "remove", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            target.publish(1, tokens)
    assert rows(spark, source(files(tmp_path))) == [(2, "y"), (3, "z")]


def test_a_job_does_not_miss_files_that_a_statement_removed(spark: SparkSession, tmp_path: Path) -> None:
    """It dies after it has published an epoch; when it starts again the rows are gone."""
    target = sink(files(tmp_path))
    tokens = stage(target, pairs(spark, (1, "x")), 1)
    target.publish(1, tokens)
    connector(files(tmp_path).options).truncate(files(tmp_path), files(tmp_path).options)  # type: ignore[attr-defined]
    sink(files(tmp_path)).publish(1, tokens)
    assert visible(tmp_path) == {}


def test_streaming_overwrite_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValidationError, match="overwrite"):
        sink(files(tmp_path), overwrite=True)


def test_rolling_by_size(spark: SparkSession, tmp_path: Path) -> None:
    declared = files(tmp_path)
    declared.options["sink.rolling-policy.file-size"] = "1b"
    frame = pairs(spark, (1, "x"), (2, "y"))
    spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", "1")
    try:
        write(sink(declared), frame)
    finally:
        spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", "1000000")
    assert visible(tmp_path) == {"part-job-00000001-0-0.csv": "1,x\n", "part-job-00000001-0-1.csv": "2,y\n"}


def test_a_path_that_cannot_be_written_is_a_connector_error(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    target = sink(files(tmp_path / "file" / "below"))
    with pytest.raises(Exception, match="Cannot write to"):
        stage(target, pairs(spark, (1, "x")), 1)


def test_changelog_is_written_as_debezium_and_read_back(spark: SparkSession, tmp_path: Path) -> None:
    declared = files(tmp_path, format="debezium-json")
    frame = spark.sql(
        "SELECT * FROM VALUES (1, 'x', 0Y), (1, 'x', 1Y), (1, 'y', 2Y), (2, 'q\"', 3Y) AS t(a, b, `$kind`)"
    ).coalesce(1)
    write(sink(declared, kinds=ALL_KINDS), frame)
    assert visible(tmp_path) == {
        "part-job-00000001-0-0.json": '{"before":null,"after":{"a":1,"b":"x"},"op":"c"}\n'
        '{"before":{"a":1,"b":"x"},"after":null,"op":"d"}\n'
        '{"before":null,"after":{"a":1,"b":"y"},"op":"c"}\n'
        '{"before":{"a":2,"b":"q\\""},"after":null,"op":"d"}\n'
    }
    assert rows(spark, source(declared)) == [(1, "x", 0), (1, "x", 3), (1, "y", 0), (2, 'q"', 3)]


def test_kinds_by_format(tmp_path: Path) -> None:
    plain, changes = files(tmp_path), files(tmp_path, format="debezium-json")
    found = connector(plain.options)
    assert found.sink_kinds(plain, plain.options, ALL_KINDS) == {0}
    assert found.sink_kinds(changes, changes.options, ALL_KINDS) == ALL_KINDS
    assert found.sink_kinds(changes, changes.options, UPSERT) == ALL_KINDS


def test_unknown_commit_policy_is_named(tmp_path: Path) -> None:
    declared = files(tmp_path)
    declared.options["sink.partition-commit.policy.kind"] = "metastore"
    with pytest.raises(NotSupportedError, match="metastore"):
        sink(declared)


@pytest.mark.parametrize("kind", ["json", "parquet", "orc"])
def test_nested_types_survive_writing_and_reading(spark: SparkSession, tmp_path: Path, kind: str) -> None:
    columns = {
        "i": t.BIGINT,
        "d": t.DecimalType(precision=10, scale=2),
        "tm": t.TimeType(precision=3),
        "ts": t.TimestampType(precision=3),
        "tz": t.LocalZonedTimestampType(precision=3),
        "by": t.BYTES,
        "ar": t.ArrayType(element=t.INT),
        "m": t.MapType(key=t.STRING, value=t.INT),
        "r": t.RowType(fields=(t.Field("x", t.INT), t.Field("y", t.ArrayType(element=t.STRING)))),
    }
    frame = spark.sql(
        "SELECT * FROM VALUES (1L, CAST(1.5 AS DECIMAL(10,2)), 3723004,"
        " TIMESTAMP_NTZ '2020-01-02 03:04:05.678', TIMESTAMP '2020-01-02 03:04:05.678', X'0aff',"
        " ARRAY(1, NULL), ARRAY(STRUCT('k' AS key, 1 AS value)), STRUCT(1 AS x, ARRAY('p') AS y)),"
        " (NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL) AS t(i, d, tm, ts, tz, by, ar, m, r)"
    ).coalesce(1)
    declared = table(columns, {"connector": "filesystem", "path": str(tmp_path), "format": kind})
    write(sink(declared), frame)
    assert rows(spark, source(declared)) == [tuple(r) for r in frame.collect()]


WALL, INSTANT = t.TimestampType(precision=3), t.LocalZonedTimestampType(precision=3)


@pytest.mark.parametrize(
    ("kind", "value", "odd", "name"),
    [
        (WALL, "TIMESTAMP_NTZ '{}'", "9999-12-31", "c"),
        (INSTANT, "TIMESTAMP '{}'", "0001-01-01", "c"),
        (t.ArrayType(element=WALL), "ARRAY(TIMESTAMP_NTZ '{}')", "2262-04-12", "c"),
        (t.RowType(fields=(t.Field("x", WALL),)), "STRUCT(TIMESTAMP_NTZ '{}' AS x)", "1677-09-21", "c.x"),
    ],
)
def test_times_that_orc_does_not_give_back(
    spark: SparkSession, tmp_path: Path, kind: t.LogicalType, value: str, odd: str, name: str
) -> None:
    declared = table({"c": kind}, {"connector": "filesystem", "path": str(tmp_path), "format": "orc"})

    def frame(day: str) -> DataFrame:
        return spark.sql(f"SELECT {value.format(day)} AS c UNION ALL SELECT NULL").coalesce(1)

    with pytest.raises(Exception, match=rf"Column '{name}': .* cannot be written to ORC"):
        write(sink(declared), frame(odd))
    for day in ("1677-09-22", "2262-04-11"):
        write(sink(declared), frame(day))
        assert rows(spark, source(declared)) == [tuple(row) for row in frame(day).collect()]


def test_a_path_that_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("1,x\n")
    with pytest.raises(ConnectorError, match=r"x\.csv' of table 'c\.d\.t' is a file") as caught:
        sink(files(tmp_path / "x.csv"))
    assert "directory" in caught.value.hint
