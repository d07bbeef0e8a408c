"""Workers start with what they need, and look through none of it again after each task."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Iterable, Iterator
from importlib import import_module

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from tidemill.runtime.spark.worker_daemon import NEW_OBJECTS, WARM, frozen_after, without_archive


@pytest.fixture
def unfrozen() -> Iterator[None]:
    gc.collect()
    gc.unfreeze()
    yield
    gc.unfreeze()


@pytest.mark.usefixtures("unfrozen")
def test_what_a_task_imports_is_frozen(monkeypatch: pytest.MonkeyPatch) -> None:
    def imports(name: str) -> int:
        sys.modules[name] = sys
        return 7

    task = frozen_after(imports)
    monkeypatch.setitem(sys.modules, "known", sys)
    assert task("known") == 7
    assert gc.get_freeze_count() == 0
    monkeypatch.delitem(sys.modules, "new", raising=False)
    assert task("new") == 7
    assert gc.get_freeze_count() > 10_000
    del sys.modules["new"]


@pytest.mark.usefixtures("unfrozen")
def test_what_a_failed_task_has_imported_is_frozen(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails() -> None:
        monkeypatch.setitem(sys.modules, "new", sys)
        raise SystemExit(1)

    with pytest.raises(SystemExit):
        frozen_after(fails)()
    assert gc.get_freeze_count() > 10_000


@pytest.mark.parametrize("error", [BrokenPipeError, ConnectionResetError])
def test_a_task_that_nobody_listens_to_ends_its_worker(error: type[OSError]) -> None:
    def fails() -> None:
        raise error

    assert frozen_after(fails)() == 1


def test_a_worker_starts_with_its_modules_and_collects_little(spark: SparkSession) -> None:
    def found(_: Iterable[int]) -> Iterator[tuple[set[str], int, int]]:
        yield set(sys.modules), len(gc.get_objects()), gc.get_threshold()[0]

    def imports(_: Iterable[int]) -> Iterator[int]:
        yield from (len(import_module(name).__name__) for name in ("http.server", "xml.dom.minidom"))

    numbers = spark.sparkContext.parallelize(range(4), 4)
    assert numbers.mapPartitions(imports).count() == 8
    for modules, left, new_objects in numbers.mapPartitions(found).collect():
        assert modules >= set(WARM)
        assert left < 10_000
        assert new_objects == NEW_OBJECTS


def test_pyspark_comes_from_its_folder_where_the_archive_is_inside_of_it() -> None:
    inside, apart = "/site/pyspark/python/lib/pyspark.zip", "/opt/spark/python/lib/pyspark.zip"
    assert without_archive([inside, "/a.zip", "/site"]) == ["/a.zip", "/site"]
    assert without_archive([inside, apart, "/other"]) == [inside, apart, "/other"]


def test_tasks_of_rdds_and_of_frames_have_one_daemon(spark: SparkSession) -> None:
    """Another one would import everything again: a second of processor time."""

    def daemon(_: Iterable[object]) -> Iterator[int]:
        yield os.getppid()

    def frame_of_daemon(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for _ in batches:
            pass
        yield pa.RecordBatch.from_arrays([pa.array([os.getppid()])], names=["daemon"])

    of_rdd = spark.sparkContext.parallelize([0], 1).mapPartitions(daemon).collect()
    of_frame = spark.range(1).mapInArrow(frame_of_daemon, "daemon long").collect()
    assert set(of_rdd) == {row.daemon for row in of_frame}
