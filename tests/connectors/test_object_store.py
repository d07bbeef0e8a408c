"""Tables in an object store: the same rows, the same exactly-once files."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from pyarrow import fs
from pyspark.sql import SparkSession

from tests.connectors.sinks import sink, stage
from tests.connectors.sources import rows, rows_in_epochs, source, table
from tests.object_store import bucket
from tidemill.catalog.table import CatalogTable
from tidemill.connectors.api import ReadLimit
from tidemill.types import logical as t


def files(settings: Mapping[str, str], path: str, kind: str) -> CatalogTable:
    options = {"connector": "filesystem", "path": path, "format": kind, **settings}
    return table({"a": t.INT, "b": t.STRING}, options)


@pytest.mark.one_case
@pytest.mark.parametrize("kind", ["csv", "json", "parquet", "orc"])
def test_written_and_read_again(spark: SparkSession, object_store: Mapping[str, str], kind: str) -> None:
    name = f"tables-{kind}"
    system = bucket(object_store, name)
    declared = files(object_store, f"s3a://{name}/t", kind)
    target = sink(declared)
    expected = []
    for epoch in (1, 2):
        added = [(epoch * 10 + i, f"v{i}") for i in range(5)]
        tokens = stage(target, spark.createDataFrame(added, "a INT, b STRING").coalesce(1), epoch)
        target.publish(epoch, tokens)
        target.publish(epoch, tokens)
        expected += added
    target.finish()
    assert rows(spark, source(declared)) == expected
    epochs = rows_in_epochs(spark, source(declared), ReadLimit(rows=4))
    assert [r for epoch in epochs for r in epoch] == expected
    left = system.get_file_info(fs.FileSelector(f"{name}/t", recursive=True))
    ends = ["-".join(i.base_name.split("-")[2:]) for i in left if i.is_file]
    assert ends == [f"00000001-0-0.{kind}", f"00000002-0-0.{kind}"]


def test_what_was_staged_and_not_committed_is_not_seen(
    spark: SparkSession, object_store: Mapping[str, str]
) -> None:
    bucket(object_store, "staged")
    declared = files(object_store, "s3://staged/t", "csv")
    target = sink(declared)
    target.publish(1, stage(target, spark.createDataFrame([(1, "x")], "a INT, b STRING"), 1))
    stage(target, spark.createDataFrame([(2, "y")], "a INT, b STRING"), 2)
    assert rows(spark, source(declared)) == [(1, "x")]
    target.discard(2)
    target.finish()
    assert rows(spark, source(declared)) == [(1, "x")]
