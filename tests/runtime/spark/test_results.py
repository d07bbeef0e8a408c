"""Results are the frame's rows in their order, however much of them stays in memory."""

from __future__ import annotations

import os
import tempfile

import pytest
from pyspark.sql import SparkSession

from tidemill.errors import StateError
from tidemill.runtime.spark.results import collected


@pytest.mark.parametrize("memory", [0, 20_000, 1 << 30])
def test_rows_in_order(spark: SparkSession, memory: int) -> None:
    """Tasks that end in another order than theirs: the first has the most to do."""
    frame = spark.range(0, 40_000, 1, 4).selectExpr(
        "id", "IF(id < 10000, sha2(repeat(CAST(id AS STRING), 50), 512), 'x') AS s", "array(id, NULL) AS a"
    )
    found = collected(frame.orderBy("id"), memory)
    assert found == frame.orderBy("id").toArrow()
    assert found.num_rows == 40_000


def test_a_disk_that_takes_no_result(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """Spark, which then has nobody to send rows to, is not what is told of."""
    monkeypatch.setattr(tempfile, "mkstemp", lambda **_: (os.open("/dev/full", os.O_RDWR), "/dev/full"))
    monkeypatch.setattr(os, "remove", lambda path: None)
    frame = spark.range(0, 1_000_000, 1, 4).selectExpr("id", "id * id AS s")
    with pytest.raises(StateError, match="No space left on device") as raised:
        collected(frame, 0)
    assert tempfile.gettempdir() in str(raised.value)
    assert "TMPDIR" in raised.value.hint
    assert collected(spark.range(3), 1 << 20).column("id").to_pylist() == [0, 1, 2]


def test_no_rows_and_an_error(spark: SparkSession) -> None:
    frame = spark.range(10).where("id < 0").selectExpr("id", "CAST(id AS DECIMAL(10, 2)) AS d")
    assert collected(frame, 0) == frame.toArrow()
    with pytest.raises(Exception, match="on purpose"):
        collected(spark.range(10).selectExpr("IF(id = 7, raise_error('on purpose'), id) AS x"), 0)
