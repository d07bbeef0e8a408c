"""Workers start with what they need, and look through none of it again after each task."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterable, Iterator
from importlib import import_module

import pytest
from pyspark.sql import SparkSession

from tidemill.runtime.spark.worker_daemon import WARM, frozen_after


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
    def found(_: Iterable[int]) -> Iterator[tuple[set[str], int]]:
        yield set(sys.modules), len(gc.get_objects())

    def imports(_: Iterable[int]) -> Iterator[int]:
        yield from (len(import_module(name).__name__) for name in ("http.server", "xml.dom.minidom"))

    numbers = spark.sparkContext.parallelize(range(4), 4)
    assert numbers.mapPartitions(imports).count() == 8
    for modules, left in numbers.mapPartitions(found).collect():
        assert modules >= set(WARM)
        assert left < 10_000
