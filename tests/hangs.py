"""What a test that hangs leaves to read: what the threads of Spark's JVM do, before the process ends.

A timeout of pytest's is an exception in the test. Where that leads to another wait without end (for a job
that is to be stopped, say) the process goes a little later, with the stacks of its Python threads
(``faulthandler_timeout``): the run goes on with another, and the test has failed.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from pyspark import SparkContext

from tidemill.runtime.spark.workers import when_long

_BEFORE = 30.0


def told_of(limit: float, tell: Callable[[str], object]) -> AbstractContextManager[None]:
    """Shortly before ``limit`` seconds have passed ``tell`` gets the stacks; never where none is set."""
    if limit <= 0:
        return nullcontext()
    return when_long(max(limit - _BEFORE, 0.0), lambda: tell(stacks()))


def to_file(descriptor: int) -> Callable[[str], object]:
    return lambda text: os.write(descriptor, text.encode())


def stacks() -> str:
    """Of all threads of this process's Spark; '' where none runs."""
    context = SparkContext._active_spark_context
    if context is None:
        return ""
    java: Any = context._gateway
    told = []
    for entry in java.jvm.java.lang.Thread.getAllStackTraces().entrySet():
        calls = "".join(f"\n  {call.toString()}" for call in entry.getValue())
        told.append(f"\n{entry.getKey().getName()} {entry.getKey().getState().toString()}{calls}\n")
    return "".join(told)
