"""The driver's JVM: started by PySpark's own launcher, and ended."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any

from pyspark import SparkConf, SparkContext
from pyspark.find_spark_home import _find_spark_home
from pyspark.java_gateway import launch_gateway

from tidemill.spark_internals.converters import ask_for_numpy_values_alone
from tidemill.spark_internals.errors import JavaError

_LAUNCH: Any = launch_gateway
_FIND_SPARK: Any = _find_spark_home
# Spark SQL's first session spends most of its time in these. None of them touches what the core is made
# of while it starts, or two class initialisers could wait for each other.
_SLOW_CLASSES = ("org.apache.spark.sql.ml.InternalFunctionRegistration$",)


def spark_home() -> str:
    """The folder of Spark's scripts and jars."""
    return str(_FIND_SPARK())


def start_jvm(settings: Mapping[str, str], written: int) -> Any:
    """py4j's gateway to a new JVM whose Spark gets ``settings``. It writes to the open file ``written``.
    PySparkRuntimeError if the JVM ends before it answers, OSError if Spark's script cannot be run."""
    ask_for_numpy_values_alone()
    conf = SparkConf().setAll(list(settings.items()))
    return _LAUNCH(conf, {"stdout": written, "stderr": written})


def load_classes(gateway: Any) -> threading.Thread:
    """A thread that has begun to load what Spark SQL will need; wait for it before the first session."""
    thread = threading.Thread(target=_load, args=(gateway,), name="tidemill-load-classes", daemon=True)
    thread.start()
    return thread


def _load(gateway: Any) -> None:
    for name in _SLOW_CLASSES:
        try:
            gateway.jvm.java.lang.Class.forName(name)
        except JavaError:
            # Another build of Spark may lack it; the session does without.
            continue


def end_jvm(gateway: Any) -> None:
    """Ends the JVM once its application has ended: the next one of this process gets a JVM of its own."""
    if gateway.proc is not None:
        gateway.proc.stdin.close()
        gateway.proc.wait()
    SparkContext._gateway = SparkContext._jvm = None


def active_context() -> SparkContext | None:
    """The application of this process, whichever thread started it; None before one was."""
    return SparkContext._active_spark_context


def active_master() -> str | None:
    """Spark's master of that application; None before it has one: another thread may be about to start it."""
    return getattr(active_context(), "master", None)


def use_python(context: SparkContext, program: str) -> None:
    """The workers' Python: PySpark's own way to name it is the driver's environment."""
    context.pythonExec = program
