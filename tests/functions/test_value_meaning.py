"""Spark SQL holds the decisions of ``types.values`` on every pair of hostile values."""

from __future__ import annotations

from decimal import Decimal
from itertools import product
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from tests.hostile_values import COMPARISONS, ORDERED, VALUES, equal, identity, place
from tidemill.functions.api import SparkAggregateCall
from tidemill.functions.comparison import compare_sql
from tidemill.functions.registry import aggregate
from tidemill.functions.values import marked, matching, unmarked
from tidemill.types import logical as t
from tidemill.types.physical import spark_schema

KINDS = pytest.mark.parametrize("kind", VALUES, ids=str)


def pairs(spark: SparkSession, kind: t.LogicalType) -> tuple[list[tuple[Any, Any]], DataFrame]:
    found = list(product(VALUES[kind], repeat=2))
    fields = (t.Field("a", kind), t.Field("b", kind), t.Field("n", t.INT))
    rows = [(a, b, n) for n, (a, b) in enumerate(found)]
    return found, spark.createDataFrame(rows, spark_schema(fields))


def values_of(frame: DataFrame, *texts: str) -> list[tuple[Any, ...]]:
    """In the order of the pairs."""
    found = frame.selectExpr("n", *(f"{text} AS c{i}" for i, text in enumerate(texts))).collect()
    return [tuple(row)[1:] for row in sorted(found)]


@KINDS
def test_identity(spark: SparkSession, kind: t.LogicalType) -> None:
    found, frame = pairs(spark, kind)
    a, b = marked("a", kind), marked("b", kind)
    answers = values_of(frame, f"{a} <=> {b}", unmarked(a, kind))
    for (x, y), (same, back) in zip(found, answers, strict=True):
        assert same == (identity(x) == identity(y)), (x, y)
        assert identity(back) == identity(x)
    grouped = frame.selectExpr(f"{a} AS k").groupBy("k").count().count()
    assert grouped == len(set(map(identity, VALUES[kind])))


@KINDS
def test_equality(spark: SparkSession, kind: t.LogicalType) -> None:
    found, frame = pairs(spark, kind)
    answers = values_of(frame, *(compare_sql(o, "a", kind, "b", kind) for o in ("=", "<>")))
    for (x, y), (same, other) in zip(found, answers, strict=True):
        assert same == equal(x, y), (x, y)
        assert other == (None if same is None else not same)


@pytest.mark.parametrize("kind", ORDERED, ids=str)
def test_order(spark: SparkSession, kind: t.LogicalType) -> None:
    found, frame = pairs(spark, kind)
    answers = values_of(frame, *(compare_sql(o, "a", kind, "b", kind) for o in COMPARISONS))
    for (x, y), each in zip(found, answers, strict=True):
        unknown = x is None or y is None
        assert each == tuple(None if unknown else c(x, y) for c in COMPARISONS.values()), (x, y)
    ordered = [row[0] for row in frame.where("n % 2 = 0").orderBy("n").selectExpr("a").collect()]
    by_spark = frame.where("n % 2 = 0").selectExpr("a", f"{marked('a', kind)} AS k").orderBy("k").collect()
    assert [identity(r[0]) for r in by_spark] == list(map(identity, sorted(ordered, key=place)))


@pytest.mark.parametrize("kind", ORDERED, ids=str)
@pytest.mark.parametrize(("name", "best"), [("MIN", min), ("MAX", max)])
def test_extremes(spark: SparkSession, kind: t.LogicalType, name: str, best: Any) -> None:
    if isinstance(kind, t.BINARY_TYPES):
        pytest.skip("MIN and MAX take no bytes")
    found, frame = pairs(spark, kind)
    function = aggregate(name)
    assert function is not None
    assert function.spark is not None
    call = SparkAggregateCall(
        args=("x",), arg_types=(kind,), literals=(None,), result=kind, options={}, zone="UTC"
    )
    both = frame.selectExpr("n", "explode(array(a, b)) AS x")
    answers: dict[int, Any] = dict(both.groupBy("n").agg(F.expr(function.spark(call)).alias("m")).collect())
    for number, pair in enumerate(found):
        there = [x for x in pair if x is not None]
        wanted = best(there, key=place) if there else None
        assert identity(answers[number]) == identity(wanted), pair


@pytest.mark.parametrize("kind", [t.DOUBLE, t.FloatType()], ids=str)
def test_keys_of_equality_joins(spark: SparkSession, kind: t.LogicalType) -> None:
    """What a join matches by identity, in Spark and in kernels, is what SQL calls equal."""
    found, frame = pairs(spark, kind)
    keys = values_of(frame, matching("a", kind), matching("b", kind))
    for (x, y), (left, right) in zip(found, keys, strict=True):
        matched = left is not None and right is not None and identity(left) == identity(right)
        assert matched == (equal(x, y) is True), (x, y)


def test_long_decimals_add_up_exactly(spark: SparkSession) -> None:
    function = aggregate("SUM")
    assert function is not None
    assert function.spark is not None
    for scale in (0, 1, 10, 18):
        kind = t.DecimalType(precision=38, scale=scale)
        call = SparkAggregateCall(
            args=("x",), arg_types=(kind,), literals=(None,), result=kind, options={}, zone="UTC"
        )
        top = 10**38 - 1
        cases: tuple[list[int], ...] = (
            [top, 1, -1],
            [top, 1],
            [-top, -1, 1, 5],
            [top, -top],
            [-1, 3],
            [10**20, -1],
            [1, -(10**20)],
            [10**27 - 1, 10**27, -1],
            [top, -(10**27 - 1), 10**27 - 1],
            [10**27 - 1] * 40,
            [-(10**27), 1, 10**28],
        )
        rows = [(n, _scaled(v, scale)) for n, case in enumerate(cases) for v in case]
        frame = spark.createDataFrame(rows, f"n INT, x DECIMAL(38,{scale})")
        found: dict[int, Any] = dict(
            frame.groupBy("n").agg(F.expr(function.spark(call)).alias("s")).collect()
        )
        for number, case in enumerate(cases):
            wanted = _scaled(sum(case), scale) if abs(sum(case)) <= top else None
            assert found[number] == wanted, (scale, case)


def _scaled(value: int, scale: int) -> Decimal:
    digits = tuple(map(int, str(abs(value))))
    return Decimal((int(value < 0), digits, -scale))
