"""The spark connector: foreign sources in batch and streaming, foreign sinks."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.connectors.sinks import sink, stage
from tests.connectors.sources import rows, source, table
from tidemill.connectors.api import ReadLimit
from tidemill.connectors.spark.connector import CONNECTOR
from tidemill.connectors.spark.reading import SparkFormat
from tidemill.errors import ConnectorError, ValidationError
from tidemill.types import logical as t
from tidemill.types.logical import Field

PAIRS = {"a": t.INT, "b": t.STRING}


def test_batch_source_reads_through_spark(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("a;b\n1;x\n2;y\n")
    declared = table(
        PAIRS, {"connector": "spark", "format": "csv", "path": str(tmp_path), "sep": ";", "header": "true"}
    )
    assert rows(spark, source(declared, fields=("b",))) == [("x",), ("y",)]


def test_a_stream_with_its_own_schema(spark: SparkSession) -> None:
    columns = (Field("value", t.INT), Field("timestamp", t.TimestampType(precision=3)))
    rate = SparkFormat(name="rate", options={"rowsPerSecond": "3"}, columns=columns, fields=columns)
    frame = rate.load(lambda: spark.readStream)
    assert frame.isStreaming
    assert frame.dtypes == [("value", "int"), ("timestamp", "timestamp_ntz")]


def test_a_source_that_is_not_there(spark: SparkSession) -> None:
    declared = table({"timestamp": t.TimestampType(precision=3)}, {"connector": "spark", "format": "nope"})
    with pytest.raises(ConnectorError, match="nope"):
        source(declared).read_all(spark)


def test_stream_is_spooled_and_read_again_alike(spark: SparkSession, tmp_path: Path) -> None:
    incoming = tmp_path / "in"
    incoming.mkdir()
    (incoming / "1.json").write_text('{"a":1,"b":"x"}\n{"a":2,"b":"y"}\n')
    declared = table(
        PAIRS,
        {
            "connector": "spark",
            "format": "json",
            "path": str(incoming),
            "spool.path": str(tmp_path / "spool"),
        },
    )
    read = source(declared, streaming=True, sequence=True)
    assert not read.is_bounded
    read.next_offset(None, ReadLimit())
    [query] = spark.streams.active
    query.processAllAvailable()
    first = read.next_offset(None, ReadLimit())
    expected = [(1, "x", 0), (2, "y", 1)]
    assert [tuple(r) for r in read.read(spark, None, first).collect()] == expected

    again = source(declared, streaming=True, sequence=True)
    assert [tuple(r) for r in again.read(spark, None, first).collect()] == expected
    (incoming / "2.json").write_text('{"a":3,"b":"z"}\n')
    query.processAllAvailable()
    second = read.next_offset(first, ReadLimit())
    assert [tuple(r)[:2] for r in read.read(spark, first, second).collect()] == [(3, "z")]
    query.stop()


def test_sink_writes_an_epoch_once(spark: SparkSession, tmp_path: Path) -> None:
    declared = table(
        PAIRS,
        {
            "connector": "spark",
            "format": "json",
            "path": str(tmp_path / "out"),
            "spool.path": str(tmp_path / "s"),
        },
    )
    target = sink(declared)
    frame = spark.createDataFrame([(1, "x")], "a INT, b STRING").coalesce(1)
    tokens = stage(target, frame, 1)
    assert not (tmp_path / "out").exists()
    target.publish(1, tokens)
    target.publish(1, tokens)
    target.publish(2, stage(target, frame, 2))
    target.finish()
    written = [p.read_text() for p in sorted((tmp_path / "out").glob("*.json"))]
    assert written == ['{"a":1,"b":"x"}\n'] * 2
    assert not list((tmp_path / "s").rglob("*.parquet"))


def test_types_that_spark_lacks_are_refused() -> None:
    declared = table({"m": t.TimeType()}, {"connector": "spark", "format": "json"})
    with pytest.raises(ValidationError, match="TIME"):
        CONNECTOR.validate(declared, declared.options)
