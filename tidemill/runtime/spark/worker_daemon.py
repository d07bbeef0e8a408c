"""Spark's Python daemon with the kernels' imports done: its forked workers start with them.

Spark runs this module in place of ``pyspark.daemon`` (``spark.python.daemon.module``). A worker that
imports NumPy, Arrow and the kernels itself spends a third of a second of processor time on it. A worker
collects garbage after every task, a pass over all objects it has; those that were there before it was
forked are frozen: they are never garbage, and without them a collection is short. Memory that arrays leave is
kept for the next (``allocation``).
Nothing here may start a thread: threads do not survive a fork. Nor may it fail: a Python of another version,
or one that lacks a library, is named by its worker when the driver asks (see ``workers``).
"""

from __future__ import annotations

import contextlib
import gc
from importlib import import_module

from pyspark import daemon

from tidemill.runtime.spark.allocation import keep_freed_memory

WARM = ("pyspark.worker", "tidemill.connectors.filesystem.reading", "tidemill.runtime.spark.kernel")

if __name__ == "__main__":
    keep_freed_memory()
    for name in WARM:
        with contextlib.suppress(Exception):
            import_module(name)
    gc.collect()
    gc.freeze()
    daemon.manager()
