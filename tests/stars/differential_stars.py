"""Queries over facts in partitions give in batch what plain Spark SQL gives over the same Parquet files."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.stars.data import write
from tests.stars.queries import QUERIES, TABLES, create_tables
from tests.tpch.differential_tpch import answer, assert_same
from tidemill.session.environment import TableEnvironment

pytestmark = pytest.mark.thorough


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("stars")
    write(made, 0.01, every=12)
    return made


@pytest.fixture(scope="module")
def plain(spark: SparkSession, folder: Path) -> SparkSession:
    session = spark.newSession()
    session.conf.set("spark.sql.shuffle.partitions", "2")
    for name in TABLES:
        session.read.parquet(f"{folder}/{name}").createOrReplaceTempView(name)
    return session


@pytest.fixture(scope="module")
def environment(spark: SparkSession, folder: Path) -> TableEnvironment:
    made = TableEnvironment.create({"parallelism.default": "2"})
    for text in create_tables(folder):
        made.execute_sql(text)
    return made


@pytest.mark.parametrize("name", QUERIES)
def test_query(name: str, plain: SparkSession, environment: TableEnvironment) -> None:
    expected = [tuple(row) for row in plain.sql(QUERIES[name]).collect()]
    assert any(value is not None for row in expected for value in row), "the query has no answer to compare"
    assert_same(answer(environment, QUERIES[name], "batch"), expected)
