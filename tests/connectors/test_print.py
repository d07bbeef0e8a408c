"""The print sink shows rows as Flink's does, once their epoch is published."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from tests.connectors.sinks import sink, stage
from tests.connectors.sources import table
from tidemill.changelog.rowkind import ALL_KINDS, UPSERT
from tidemill.connectors.registry import connector
from tidemill.types import logical as t


def test_changelog_lines(spark: SparkSession, capsys: pytest.CaptureFixture[str]) -> None:
    declared = table({"a": t.INT, "b": t.STRING}, {"connector": "print", "print-identifier": "snk"})
    frame = spark.sql(
        "SELECT * FROM VALUES (1, 'x', 0Y), (1, 'x', 1Y), (1, NULL, 2Y), (2, '', 3Y) AS t(a, b, `$kind`)"
    ).coalesce(1)
    target = sink(declared, kinds=ALL_KINDS)
    tokens = stage(target, frame, 1)
    assert capsys.readouterr().out == ""
    target.publish(1, tokens)
    expected = ["snk> +I[1, x]", "snk> -U[1, x]", "snk> +U[1, null]", "snk> -D[2, ]"]
    assert capsys.readouterr().out.splitlines() == expected


def test_values_as_java_shows_them(spark: SparkSession, capsys: pytest.CaptureFixture[str]) -> None:
    columns = {
        "d": t.DOUBLE,
        "f": t.FloatType(),
        "n": t.DecimalType(precision=5, scale=2),
        "ts": t.TimestampType(precision=3),
        "tz": t.LocalZonedTimestampType(precision=3),
        "tm": t.TimeType(precision=3),
        "by": t.BYTES,
        "a": t.ArrayType(element=t.BOOLEAN),
        "m": t.MapType(key=t.STRING, value=t.INT),
        "r": t.RowType(fields=(t.Field("x", t.INT), t.Field("y", t.DATE))),
    }
    frame = spark.sql(
        "SELECT 1e10D, CAST(1e-5 AS FLOAT), CAST(1.5 AS DECIMAL(5,2)), TIMESTAMP_NTZ '2020-01-01 00:00:00.1',"
        " TIMESTAMP '2020-01-01 00:00:00', 3723004, X'0aff', ARRAY(true, NULL),"
        " ARRAY(STRUCT('k' AS key, 1 AS value)), STRUCT(1 AS x, DATE '2020-01-02' AS y)"
    )
    declared = table(columns, {"connector": "print", "standard-error": "true"})
    target = sink(declared)
    target.publish(1, stage(target, frame.toDF(*columns), 1))
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.strip() == (
        "+I[1.0E10, 1.0E-5, 1.50, 2020-01-01T00:00:00.100, 2020-01-01T00:00:00Z, 01:02:03.004, [10, -1],"
        " [true, null], {k=1}, +I[1, 2020-01-02]]"
    )


def test_what_print_and_blackhole_take(spark: SparkSession) -> None:
    for identifier, kinds in (("print", ALL_KINDS), ("blackhole", UPSERT)):
        declared = table({"a": t.INT}, {"connector": identifier})
        assert connector(declared.options).sink_kinds(declared, declared.options, ALL_KINDS) == kinds
    target = sink(table({"a": t.INT}, {"connector": "blackhole"}))
    assert stage(target, spark.range(3).selectExpr("CAST(id AS INT) AS a").coalesce(1), 1) == ['{"rows": 3}']
