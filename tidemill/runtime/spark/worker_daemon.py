"""Spark's Python daemon with the kernels' imports done: its forked workers start with them.

Spark runs this module in place of ``pyspark.daemon`` (``spark.python.daemon.module``). If each worker
imported NumPy, Arrow, pandas (which Arrow needs) and the kernels itself, that would take most of a second of
processor time. A worker collects garbage after every task, which is a pass over all its objects and takes 20
ms. So all objects are frozen before the fork, and the modules that a task imports are frozen when the task
ends: modules are never garbage. When a worker adds its files to the path, Python reads the directories of all
archives again from which it has imported, once for each package: 80 ms. So the importers of archives are
forgotten before the fork; an import makes the ones it needs.

The kernels constantly allocate and free arrays of some megabytes. By default the C library maps each array
from the system and unmaps it, and the system hands out every page anew, zeroed: up to half of a join's
processor time. Here arrays come from one heap, and only a large free end of the heap is given back. A worker
keeps the memory that its largest epoch needed, until Spark ends the worker for being idle.

Nothing here may start a thread, because threads do not survive a fork. Nothing may fail, either: if a
worker has another version of Python, or lacks a library, it says so when the driver asks (see ``workers``).
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import os
import sys
from importlib import import_module
from zipimport import zipimporter

from tidemill.spark_internals.class_names import PYTHON_WORKER
from tidemill.spark_internals.daemon import Worker, serve

WARM = (
    PYTHON_WORKER,
    "pandas",
    "tidemill.connectors.filesystem.source",
    "tidemill.connectors.formats.csv.decode",
    "tidemill.runtime.spark.epoch.frames",
    "tidemill.runtime.spark.kernel",
)
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


_TRIM_THRESHOLD, _MMAP_THRESHOLD, _ARENA_MAX = -1, -3, -8  # names of malloc.h
_KEPT = 256 << 20
_FROM_HEAP = (512 << 20, 32 << 20)  # older C libraries take no more than the second


def keep_freed_memory() -> bool:
    """Keeps the memory of freed arrays in this process and its forks; call it before NumPy is imported. False
    if the C library does not take the setting, or if the environment already sets how memory is allocated."""
    if "GLIBC_TUNABLES" in os.environ or any(name.startswith("MALLOC_") for name in os.environ):
        return False
    # Huge pages would be zeroed whole where a part of one is written.
    os.environ.setdefault("NUMPY_MADVISE_HUGEPAGE", "0")
    with contextlib.suppress(OSError, AttributeError):  # a C library that has no such function
        tell = ctypes.CDLL(None).mallopt
        from_heap = any(tell(_MMAP_THRESHOLD, size) for size in _FROM_HEAP)
        return bool(from_heap and tell(_TRIM_THRESHOLD, _KEPT) and tell(_ARENA_MAX, 1))
    return False


if __name__ == "__main__":
    keep_freed_memory()
    for name in WARM:
        with contextlib.suppress(Exception):
            import_module(name)
    for path in [p for p, found in sys.path_importer_cache.items() if isinstance(found, zipimporter)]:
        del sys.path_importer_cache[path]
    gc.collect()
    gc.freeze()
    serve(frozen_after)
