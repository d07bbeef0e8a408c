"""Spark's index of files that were listed before: one root, whatever there is below it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from tests.session.environments import ask, new_session
from tidemill.spark_internals.file_index import file_index

DAYS = ("2026-01-01", "a b%=é", "2026-01-03")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two files for each day, a row in each: 0 to 5."""
    for number, day in enumerate(day for day in DAYS for _ in range(2)):
        below = tmp_path / "my table" / f"dt={day.replace('%', '%25')}"
        below.mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.table({"n": pa.array([number], pa.int32())}), below / f"{number}.parquet")
    return tmp_path / "my table"


def index_of(spark: SparkSession, paths: Sequence[Path]) -> Any:
    jvm: Any = spark._jvm
    spec = getattr(jvm, "org.apache.spark.sql.execution.datasources.PartitionSpec")
    return file_index(spark, list(map(str, paths)), spec.emptySpec())


def test_an_index_is_as_cheap_to_compare_as_one_file(spark: SparkSession, folder: Path) -> None:
    paths = sorted(folder.glob("*/*"))
    found = index_of(spark, paths)
    assert (found.allFiles().size(), found.rootPaths().size()) == (6, 1)
    assert found.sizeInBytes() == sum(p.stat().st_size for p in paths)


def test_indexes_of_other_files_are_not_equal(spark: SparkSession, folder: Path) -> None:
    """Or Spark would read one for the other."""
    paths = sorted(folder.glob("*/*"))
    one, other, again = (index_of(spark, chosen) for chosen in (paths[:3], paths[3:], paths[:3]))
    assert not one.equals(other)
    assert not one.equals(again)  # the files may have been written anew


def test_without_spark_s_cache_each_file_is_a_root(spark: SparkSession, folder: Path) -> None:
    session = spark.newSession()
    session.conf.set("spark.sql.hive.manageFilesourcePartitions", "false")
    found = index_of(session, sorted(folder.glob("*/*")))
    assert (found.allFiles().size(), found.rootPaths().size()) == (6, 6)


def test_rows_with_and_without_their_partitions(folder: Path) -> None:
    env = new_session(execution__runtime_mode="batch")
    env.execute_sql(
        "CREATE TABLE t (n INT, dt STRING) PARTITIONED BY (dt)"
        f" WITH ('connector'='filesystem', 'path'='{folder}', 'format'='parquet')"
    )

    def rows(query: str) -> list[tuple[Any, ...]]:
        return sorted(ask(env, query))

    assert rows("SELECT n FROM t") == [(n,) for n in range(6)]
    assert rows("SELECT n, dt FROM t") == [(n, DAYS[n // 2]) for n in range(6)]
    assert rows("SELECT COUNT(*) FROM t") == [(6,)]
    halves = (f"SELECT n FROM t WHERE dt = '{day}'" for day in DAYS[:2])
    assert rows(" UNION ALL ".join(halves)) == [(n,) for n in range(4)]
    pq.write_table(pa.table({"n": pa.array([7], pa.int32())}), folder / f"dt={DAYS[0]}" / "7.parquet")
    assert rows("SELECT n FROM t") == [(n,) for n in (*range(6), 7)]
