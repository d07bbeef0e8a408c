"""What a batch query has made of a table serves the next one, while the table's files are the same."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet
from pyspark.sql import SparkSession

from tests.session.environments import ask, new_session
from tidemill.connectors.filesystem import native
from tidemill.errors import TidemillError
from tidemill.spark_internals.file_index import file_index
from tidemill.spark_internals.file_relations import file_relation

NOON = dt.datetime(2024, 1, 1, 12, tzinfo=dt.UTC)


def test_relations_are_kept(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[str] = []

    def counted(spark: SparkSession, kind: str, index: Any, schema: str, *rest: Any) -> Any:
        made.append(schema)
        return file_relation(spark, kind, index, schema, *rest)

    monkeypatch.setattr(native, "file_relation", counted)
    rows = pa.table({"k": [1, 2], "v": ["a", "b"], "t": pa.array([NOON] * 2, pa.timestamp("ns", "UTC"))})
    parquet.write_table(rows, tmp_path / "1.parquet")
    session = new_session(parallelism__default="2", execution__runtime_mode="batch")
    ask(
        session,
        "CREATE TABLE pq (t TIMESTAMP_LTZ(3), k BIGINT, v STRING) WITH "
        f"('connector' = 'filesystem', 'path' = '{tmp_path}', 'format' = 'parquet')",
    )
    assert sorted(ask(session, "SELECT k FROM pq")) == [(1,), (2,)]
    assert ask(session, "SELECT COUNT(*), MAX(v) FROM pq") == [(2, "b")]
    assert ask(session, "SELECT COUNT(*) FROM pq a JOIN pq b ON a.k = b.k WHERE a.v = 'a'") == [(1,)]
    assert ask(session, "SELECT COUNT(*) FROM pq") == [(2,)]
    assert ask(session, "SELECT DISTINCT CAST(t AS STRING) FROM pq") == [("2024-01-01 12:00:00.000",)]
    assert made == ["`t` BIGINT, `k` BIGINT, `v` STRING"], "one relation, whatever is read of it"

    ask(session, "SET 'table.local-time-zone' = 'Asia/Tokyo'")
    assert ask(session, "SELECT DISTINCT CAST(t AS STRING) FROM pq") == [("2024-01-01 21:00:00.000",)]
    parquet.write_table(rows.slice(0, 1), tmp_path / "2.parquet")
    assert ask(session, "SELECT COUNT(*) FROM pq") == [(3,)]
    (tmp_path / "1.parquet").unlink()
    assert ask(session, "SELECT k, v FROM pq") == [(1, "a")]
    assert len(made) == 4, "others for another zone, and for other files"


def test_of_a_table_that_grows_only_new_partitions_are_made(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[str] = []
    paths = native.NativeScan._partition_paths

    def counted(scan: native.NativeScan, spark: SparkSession, directories: dict[str, str]) -> Any:
        made.extend(directories)
        return paths(scan, spark, directories)

    monkeypatch.setattr(native.NativeScan, "_partition_paths", counted)

    def write(day: str, value: int) -> None:
        (tmp_path / f"dt={day}").mkdir()
        parquet.write_table(pa.table({"n": [value]}), tmp_path / f"dt={day}" / "1.parquet")

    write("2026-01-01", 1)
    write("none", 2)
    session = new_session(execution__runtime_mode="batch")
    columns = "(n BIGINT, dt DATE) PARTITIONED BY (dt) WITH ('connector' = 'filesystem',"
    options = f" 'path' = '{tmp_path}', 'format' = 'parquet', 'partition.default-name' = 'none')"
    ask(session, f"CREATE TABLE days {columns}{options}")
    first, second = dt.date(2026, 1, 1), dt.date(2026, 1, 2)
    assert set(ask(session, "SELECT * FROM days")) == {(1, first), (2, None)}
    write("2026-01-02", 3)
    assert set(ask(session, "SELECT * FROM days")) == {(1, first), (2, None), (3, second)}
    assert sorted(made) == ["dt=2026-01-01", "dt=2026-01-02", "dt=none"]
    (tmp_path / "dt=2026-01-01" / "1.parquet").unlink()
    assert set(ask(session, "SELECT * FROM days")) == {(2, None), (3, second)}
    assert ask(session, "SELECT n FROM days WHERE dt IS NULL") == [(2,)]

    write("x", 4)
    ask(session, f"CREATE TABLE texts {columns.replace('DATE', 'STRING')}{options.replace('none', 'x')}")
    assert set(ask(session, "SELECT * FROM texts")) == {(2, "none"), (3, "2026-01-02"), (4, None)}


def test_small_files_are_shared_out_as_each_job_has_it(spark: SparkSession, tmp_path: Path) -> None:
    """Spark asks the session that made a relation."""
    for number in range(200):
        parquet.write_table(pa.table({"n": [number]}), tmp_path / f"{number}.parquet")
    session = new_session(execution__runtime_mode="batch")
    options = f"'connector' = 'filesystem', 'path' = '{tmp_path}', 'format' = 'parquet'"
    ask(session, f"CREATE TABLE small (n BIGINT) WITH ({options})")
    auto = "execution.batch.adaptive.auto-parallelism.enabled"

    def tasks() -> int:
        return session.sql_query("SELECT n FROM small").to_spark().rdd.getNumPartitions()

    assert tasks() <= 3
    ask(session, f"SET '{auto}' = 'false'")
    assert tasks() > 4, "as many as Spark takes"
    ask(session, f"RESET '{auto}'")
    assert tasks() <= 3


def test_a_small_table_of_a_file_is_not_cut(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Half of a file of a megabyte is next to nothing for a task."""
    session = new_session(execution__runtime_mode="batch")

    def tasks(name: str) -> int:
        place = tmp_path / name
        place.mkdir()
        parquet.write_table(pa.table({"n": range(1 << 17)}), place / "1.parquet", compression="none")
        assert (place / "1.parquet").stat().st_size > 1 << 20
        options = f"'connector' = 'filesystem', 'path' = '{place}', 'format' = 'parquet'"
        ask(session, f"CREATE TABLE {name} (n BIGINT) WITH ({options})")
        assert ask(session, f"SELECT COUNT(*) FROM {name}") == [(1 << 17,)]
        return session.sql_query(f"SELECT n FROM {name}").to_spark().rdd.getNumPartitions()

    assert tasks("small") == 1
    monkeypatch.setattr(native, "_FEW", 0)
    assert tasks("cut") == 2


def test_what_opening_costs_by_the_users_own_setting(spark: SparkSession) -> None:
    """It counts for few files as for many; what the job has chosen does not."""
    own = spark.newSession()
    own.conf.set(native.OPENING, "1024")
    assert native._sharing_out(own, 1) is None
    own.conf.set(native.OPENING, native.OPENING_ONE_OF_MANY)
    assert native._sharing_out(own, 100) is None
    own.range(3).createTempView("other_rows")
    made = native._sharing_out(own, 1)
    assert made.conf().get(native.OPENING) == str(4 << 20)
    assert own.conf.get(native.OPENING) == native.OPENING_ONE_OF_MANY
    assert made.catalog().tableExists("other_rows") is False, "nothing that the job reads is held on to"
    assert own.catalog.tableExists("other_rows")


def test_a_file_that_is_written_over_while_spark_looks(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An error, and nothing is kept of it: the file comes back as it was."""
    file, other = tmp_path / "1.parquet", tmp_path / "_other"
    parquet.write_table(pa.table({"n": range(1000)}), file, row_group_size=100, use_dictionary=False)
    parquet.write_table(pa.table({"n": [7]}), other)
    session = new_session(execution__runtime_mode="batch")
    options = f"'connector' = 'filesystem', 'path' = '{tmp_path}', 'format' = 'parquet'"
    ask(session, f"CREATE TABLE t (n BIGINT) WITH ({options})")

    def late(*given: Any) -> Any:
        file.rename(tmp_path / "_before")
        other.rename(file)
        return file_index(*given)

    monkeypatch.setattr(native, "file_index", late)
    with pytest.raises(TidemillError, match=r"1\.parquet has changed while it was read"):
        ask(session, "SELECT COUNT(*) FROM t")
    monkeypatch.undo()
    (tmp_path / "_before").rename(file)
    assert ask(session, "SELECT COUNT(*), MAX(n) FROM t") == [(1000, 999)]
