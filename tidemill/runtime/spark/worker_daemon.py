"""Spark's Python daemon with the kernels' imports done: its forked workers start with them.

Spark runs this module in place of ``pyspark.daemon`` (``spark.python.daemon.module``). A worker that
imports NumPy, Arrow and the kernels itself spends a third of a second of processor time on it.
Nothing here may start a thread: threads do not survive a fork.
"""

from __future__ import annotations

from pyspark import daemon, worker

from tidemill.connectors.filesystem import reading
from tidemill.runtime.spark import kernel

WARM = (worker, reading, kernel)

if __name__ == "__main__":
    daemon.manager()
