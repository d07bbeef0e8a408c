"""Spark's Python daemon with the kernels' imports done: its forked workers start with them.

Spark runs this module in place of ``pyspark.daemon`` (``spark.python.daemon.module``). If each worker
imported NumPy, Arrow, pandas (which Arrow needs) and the kernels itself, that would take most of a second of
processor time. A worker collects garbage after every task, which is a pass over all its objects and takes 20
ms. So all objects are frozen before the fork, and the modules that a task imports are frozen when the task
ends: modules are never garbage. When a worker adds its files to the path, Python reads the directories of all
archives again from which it has imported, once for each package: 80 ms. So the importers of archives are
forgotten before the fork; an import makes the ones it needs. PySpark is imported from its folder, whose
modules are compiled, and not from its archive, which Spark puts first.

Memory that arrays leave is kept for the next (``allocation``). Python looks for garbage after 700 new
objects; a task that makes a message or a value for each row would spend most of its time there. A worker
looks for garbage more seldom.

Nothing here may start a thread, because threads do not survive a fork. Nothing may fail, either: if a
worker has another version of Python, or lacks a library, it says so when the driver asks (see ``workers``).
"""

from __future__ import annotations

import contextlib
import gc
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING
from zipimport import zipimporter

from tidemill.runtime.spark.allocation import keep_freed_memory
from tidemill.spark_internals.class_names import PYTHON_WORKER

if TYPE_CHECKING:
    from tidemill.spark_internals.daemon import Worker

WARM = (
    PYTHON_WORKER,
    "pandas",
    "tidemill.connectors.filesystem.source",
    "tidemill.connectors.formats.csv.decode",
    "tidemill.runtime.spark.epoch.frames",
    "tidemill.runtime.spark.kernel",
)
_ARCHIVE = "/pyspark/python/lib/pyspark.zip"
NEW_OBJECTS = 50_000
"""How many objects a worker makes before it looks for garbage among them. With Python's 700, to read
messages of Kafka took three times as long."""
_ENDED = 1
"""The exit code of a worker that is not used again."""


def frozen_after(work: Worker) -> Worker:
    """``work``, one task of a worker, then what it has imported is frozen. What is garbage by then goes
    first: frozen, it would stay for good. A task whose reader has closed the connection, as a LIMIT
    with enough rows does, ends without a traceback."""

    def working(*arguments: object) -> object:
        before = len(sys.modules)
        try:
            return work(*arguments)
        except ConnectionError:
            return _ENDED
        finally:
            if len(sys.modules) != before:
                gc.collect()
                gc.freeze()

    return working


def without_archive(path: Sequence[str]) -> list[str]:
    """The import ``path`` without PySpark's archive, if the archive lies in a PySpark of the path: both have
    the same modules, and those of the archive would be compiled at each start, 0.4 s."""
    return [p for p in path if not (p.endswith(_ARCHIVE) and p.removesuffix(_ARCHIVE) in path)]


if __name__ == "__main__":
    gc.disable()
    keep_freed_memory()
    sys.path[:] = without_archive(sys.path)
    for name in WARM:
        with contextlib.suppress(Exception):
            import_module(name)
    for path in [p for p, found in sys.path_importer_cache.items() if isinstance(found, zipimporter)]:
        del sys.path_importer_cache[path]
    gc.collect()
    gc.freeze()
    gc.enable()
    gc.set_threshold(NEW_OBJECTS, *gc.get_threshold()[1:])
    from tidemill.spark_internals.daemon import serve  # not before the path is set

    serve(frozen_after)
