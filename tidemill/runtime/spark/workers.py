"""Whether the workers of a cluster can run what the driver sends them: a small job at its start asks them.

Python must be of the driver's minor version (Spark's rule: code travels as its bytecode), the libraries of
its major version, Tidemill the archive that was shipped. Anything else is a SetupError that says which worker
has what, and what to do.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial

from pyspark import SparkContext

from tidemill.errors import SetupError
from tidemill.runtime.spark import worker_versions
from tidemill.runtime.spark.failures import WORKERS_PYTHON, translated
from tidemill.runtime.spark.shipped import package_archive
from tidemill.runtime.spark.worker_versions import LIBRARIES, MISSING, OWN
from tidemill.spark_internals.pickling import send_by_name, send_by_value

PATIENCE_SECONDS = 20.0
_LOGGER = logging.getLogger("tidemill")


def check_workers(context: SparkContext) -> None:
    """SetupError where a worker has not what tasks need. Waits until the cluster gives the first executor."""
    here = next(worker_versions.versions(()))
    with said_when_long(no_executor(context.master or "")), _by_value():
        cores = max(context.defaultParallelism, 1)
        try:
            found = context.parallelize(range(cores), cores).mapPartitions(worker_versions.versions).collect()
        except Exception as e:
            raise translated(e) from e
    for there in found:
        compare(here, there)


def compare(here: dict[str, str], there: dict[str, str]) -> None:
    """SetupError where ``there``, a worker's versions, do not go with ``here``, the driver's."""
    where = f"The Python '{there['program']}' on worker {there['host']}"
    for name in (*LIBRARIES, OWN):
        if there[name].startswith(MISSING):
            raise SetupError(
                f"{where} cannot import {name}: {there[name].removeprefix(MISSING)}", hint=WORKERS_PYTHON
            )
    for name in LIBRARIES:
        if _major(here[name]) != _major(there[name]):
            raise SetupError(
                f"{where} has {name} {there[name]}, the driver {here[name]}", hint=WORKERS_PYTHON
            )
    if os.path.basename(package_archive()) not in there[OWN]:
        raise SetupError(
            f"{where} loads another Tidemill than the driver: {there[OWN]}",
            hint="Remove it from the workers' PYTHONPATH; the driver ships its own.",
        )


def _major(version: str) -> str:
    return version.partition(".")[0]


@contextmanager
def _by_value() -> Iterator[None]:
    """The question travels whole: where our package is missing it can still be asked."""
    send_by_value(worker_versions)
    try:
        yield
    finally:
        send_by_name(worker_versions)


def said_when_long(text: str) -> AbstractContextManager[None]:
    """Warns where the block takes long: Spark waits without a word."""
    return when_long(PATIENCE_SECONDS, partial(_LOGGER.warning, text))


@contextmanager
def when_long(seconds: float, do: Callable[[], object]) -> Iterator[None]:
    """Another thread does that where the block takes as long."""
    timer = threading.Timer(seconds, do)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def no_answer(master: str) -> str:
    return (
        f"Spark's master '{master}' has not taken the application for {PATIENCE_SECONDS:.0f} seconds. Is it "
        "there, can this machine reach it, and has it room for another application?"
    )


def no_executor(master: str) -> str:
    return (
        f"Spark's master '{master}' has not given an executor for {PATIENCE_SECONDS:.0f} seconds. "
        "Are there workers with as many free cores and as much memory as spark.executor.cores and "
        "spark.executor.memory ask for, and can they reach this machine (spark.driver.host)? Where executors "
        "begin and end again, their logs say why: in the workers' folders, or by YARN's or Kubernetes' tools."
    )
