"""A map is one value in whatever order its entries come; Spark SQL and Arrow put them in the same one."""

from __future__ import annotations

import random
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from tests.hostile_values import VALUES, identity, place
from tidemill.functions.values import in_order as in_order_sql
from tidemill.types import logical as t
from tidemill.types.entries import in_order
from tidemill.types.physical import arrow_type, spark_type

KEYS = pytest.mark.parametrize("key", VALUES, ids=str)
SHUFFLES = 6


def carrier(value: Any, kind: t.LogicalType) -> Any:
    """ROWs as Arrow takes them."""
    if not (isinstance(value, tuple) and isinstance(kind, t.RowType)):
        return value
    return {f.name: v for f, v in zip(kind.fields, value, strict=True)}


def shuffled(values: list[Any]) -> list[list[Any]]:
    chance = random.Random(len(values))
    return [chance.sample(values, len(values)) for _ in range(SHUFFLES)]


def maps_of(key: t.LogicalType) -> tuple[t.MapType, pa.Array]:
    """One map in several orders, then an empty one, NULL, and one entry."""
    entries = [{"key": carrier(k, key), "value": n} for n, k in enumerate(VALUES[key])]
    kind = t.MapType(key=key, value=t.INT)
    return kind, pa.array([*shuffled(entries), [], None, entries[:1]], arrow_type(kind))


def by_spark(spark: SparkSession, column: pa.Array, kind: t.LogicalType) -> list[Any]:
    column = column.take(pa.array(range(len(column))))  # Spark takes no slices that have NULLs
    frame = spark.createDataFrame(
        pa.table({"n": range(len(column)), "m": column}), f"n INT, m {spark_type(kind)}"
    )
    ordered = frame.selectExpr("n", f"{in_order_sql('m', kind)} AS m").toArrow().sort_by("n")
    found: list[Any] = ordered.column("m").to_pylist()
    return found


@KEYS
def test_both_put_entries_in_one_order(spark: SparkSession, key: t.LogicalType) -> None:
    kind, column = maps_of(key)
    found = in_order(column, kind).to_pylist()
    assert repr(found) == repr(by_spark(spark, column, kind))
    assert len(set(map(repr, found[:SHUFFLES]))) == 1
    assert sorted(e["value"] for e in found[0]) == list(range(len(VALUES[key])))
    assert repr(found[SHUFFLES:]) == repr(column.to_pylist()[SHUFFLES:])


@KEYS
def test_the_order_is_that_of_values(key: t.LogicalType) -> None:
    if isinstance(key, t.COLLECTION_TYPES):
        pytest.skip("ORDER BY takes none")
    kind, column = maps_of(key)
    for a, b in pairwise(e["key"] for e in in_order(column, kind)[0].as_py()):
        assert place(a) < place(b)


def test_maps_within_others(spark: SparkSession) -> None:
    """In rows, arrays, and as keys and values of maps; columns that are slices."""
    inner = t.MapType(key=t.DOUBLE, value=t.STRING)
    outer = t.MapType(key=inner, value=t.ArrayType(element=t.MultisetType(element=t.STRING)))
    kind = t.RowType(fields=(t.Field("a", outer), t.Field("b", t.INT)))

    def one(first: list[Any], second: list[Any], order: int) -> Any:
        keys = [[{"key": k, "value": "x"} for k in part][::order] for part in (first, second)]
        counts = [{"key": "b", "value": 1}, {"key": "a", "value": 2}][::order]
        entries = [{"key": keys[0], "value": [counts, None]}, {"key": keys[1], "value": None}]
        return {"a": entries[::order], "b": 1}

    values = [None, *(one([0.0, -0.0, None], [1.0], order) for order in (1, -1)), {"a": None, "b": None}]
    column = pa.array(values, arrow_type(kind)).slice(1)
    found = in_order(column, kind).to_pylist()
    assert repr(found) == repr(by_spark(spark, column, kind))
    assert repr(found[0]) == repr(found[1])
    assert [e["key"] for e in found[0]["a"][0]["key"]] == [None, 0.0, 0.0]
    assert [identity(e["key"]) for e in found[0]["a"][0]["key"]] == list(map(identity, (None, -0.0, 0.0)))


def test_types_without_maps_cost_nothing() -> None:
    column = pa.array([[1.0]], pa.list_(pa.float64()))
    kind = t.ArrayType(element=t.DOUBLE)
    assert in_order(column, kind) is column
    assert in_order_sql("x", kind) == "x"
