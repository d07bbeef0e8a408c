"""TPC-H's 22 queries in both modes give what plain Spark SQL gives over the same Parquet files."""

from __future__ import annotations

import math
import re
from collections import Counter
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from tests.tpch.data import write
from tests.tpch.queries import QUERIES, TABLES, create_tables
from tidemill.session.environment import TableEnvironment
from tidemill.session.rows.pandas_frames import folded

pytestmark = pytest.mark.thorough

SCALE = 0.002
Row = tuple[Any, ...]


@pytest.fixture(scope="module")
def plain(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> tuple[SparkSession, Path]:
    """A Spark session that sees the tables as views, and their folder."""
    folder = tmp_path_factory.mktemp("tpch")
    write(folder, SCALE)
    session = spark.newSession()
    session.conf.set("spark.sql.shuffle.partitions", "2")
    for name in TABLES:
        session.read.parquet(f"{folder}/{name}").createOrReplaceTempView(name)
    return session, folder


@pytest.fixture(scope="module")
def environment(plain: tuple[SparkSession, Path]) -> TableEnvironment:
    made = TableEnvironment.create({"parallelism.default": "2"})
    for text in create_tables(plain[1]):
        made.execute_sql(text)
    return made


@pytest.mark.parametrize("name", QUERIES)
def test_query(name: str, plain: tuple[SparkSession, Path], environment: TableEnvironment) -> None:
    expected = [tuple(row) for row in plain[0].sql(QUERIES[name]).collect()]
    assert any(value is not None for row in expected for value in row), "the query has no answer to compare"
    assert_same(answer(environment, QUERIES[name], "batch"), expected)
    stream = answer(environment, streaming(QUERIES[name]), "streaming")
    assert_same(sorted(stream, key=order), sorted(expected, key=order))


@pytest.mark.parametrize("name", ["q7", "q8", "q9", "q11", "q15", "q16", "q20", "q22"])
def test_joins_are_those_of_plain_spark(
    name: str, plain: tuple[SparkSession, Path], environment: TableEnvironment
) -> None:
    """Conditions go as far, the same sides are small enough to be sent to all, and are sent once."""
    session, most = plain[0], str(10_000)
    environment.execute_sql("SET 'execution.runtime-mode' = 'batch'")
    environment.execute_sql(f"SET 'table.optimizer.join.broadcast-threshold' = '{most}'")
    session.conf.set("spark.sql.autoBroadcastJoinThreshold", most)
    session.conf.set("spark.sql.adaptive.autoBroadcastJoinThreshold", most)
    own = environment.sql_query(QUERIES[name]).to_spark()
    found, expected = joins(own), joins(session.sql(QUERIES[name]))
    environment.execute_sql("RESET 'table.optimizer.join.broadcast-threshold'")
    session.conf.unset("spark.sql.autoBroadcastJoinThreshold")
    session.conf.unset("spark.sql.adaptive.autoBroadcastJoinThreshold")
    assert found == expected


def joins(frame: DataFrame) -> Counter[str]:
    """The joins and exchanges of the plan that begins to run."""
    text = str(frame._jdf.queryExecution().executedPlan())
    return Counter(re.findall(r"\b(\w*Join|BroadcastExchange|Exchange)\b(?! Broad)", text))


def streaming(query: str) -> str:
    """Without a last ORDER BY that no LIMIT follows: a stream's rows have no order."""
    return query if "LIMIT" in query else re.sub(r"ORDER BY [^()]*$", "", query)


def answer(environment: TableEnvironment, query: str, mode: str) -> list[Row]:
    environment.execute_sql(f"SET 'execution.runtime-mode' = '{mode}'")
    result = environment.execute_sql(query)
    return list(folded(result.fields, result.changes()))


def order(row: Row) -> tuple[str, ...]:
    """By what is the same in both; decimals by their leading digits."""
    return tuple(f"{value:.4g}" if isinstance(value, Decimal) else str(value) for value in row)


def assert_same(found: list[Row], expected: list[Row]) -> None:
    """Equal but for the last digits of averages and quotients, whose scales differ."""
    assert len(found) == len(expected)
    for own, other in zip(found, expected, strict=True):
        assert all(map(same, own, other)), f"{own} is not {other}"


def same(own: object, other: object) -> bool:
    if isinstance(own, Decimal) and isinstance(other, Decimal):
        return math.isclose(own, other, rel_tol=1e-12, abs_tol=1e-5)
    return own == other
