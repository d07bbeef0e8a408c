"""The Spark session: one JVM per process, one ``newSession()`` per job so that SQL confs do not leak.

Static settings (master, memory, extra jars) come from ``tidemill.spark.*`` options at the first use;
later jobs of the same process share that Spark application.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from typing import Any

from pyspark import SparkConf, SparkContext
from pyspark.sql import SparkSession

from tidemill.runtime.spark.launch import launch, load_classes
from tidemill.runtime.spark.local_directory import local_directory

OPTION_PREFIX = "tidemill."
ARROW_ROWS_PER_BATCH = 1 << 18
JAVA_STACK = "64m"
"""Address space of a thread's stack: Spark's parser and optimizer recurse as deep as expressions nest."""
DEFAULT_MASTER = "local[*,3]"
"""All cores; a task whose Python worker died is tried again, as on a cluster."""

_STATIC: dict[str, str] = {
    "spark.app.name": "tidemill",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.memory": "2g",
    "spark.scheduler.mode": "FAIR",
    "spark.python.worker.reuse": "true",
    "spark.python.daemon.module": "tidemill.runtime.spark.worker_daemon",
    "spark.shuffle.compress": "false",
    # A job of many epochs must not keep what Spark remembers of each: shuffle files go with a collection
    # of the driver's garbage, plans and stages with these limits.
    "spark.cleaner.periodicGC.interval": "3min",
    "spark.ui.retainedJobs": "20",
    "spark.ui.retainedStages": "20",
    "spark.ui.retainedTasks": "200",
    "spark.sql.ui.retainedExecutions": "5",
    "spark.sql.catalogImplementation": "in-memory",
    "spark.sql.shuffle.partitions": "2",
}

_LOOPBACK = {"spark.driver.bindAddress": "127.0.0.1", "spark.driver.host": "127.0.0.1"}

_RUNTIME: dict[str, str] = {
    "spark.sql.ansi.enabled": "false",
    "spark.sql.caseSensitive": "true",
    "spark.sql.execution.arrow.maxRecordsPerBatch": str(ARROW_ROWS_PER_BATCH),
    "spark.sql.decimalOperations.allowPrecisionLoss": "true",
    "spark.sql.mapKeyDedupPolicy": "LAST_WIN",
    "spark.sql.variable.substitute": "false",
    "spark.sql.legacy.timeParserPolicy": "CORRECTED",
    "spark.sql.variant.allowDuplicateKeys": "true",
}


_STATIC_BROADCAST = "spark.sql.autoBroadcastJoinThreshold"
_ADAPTIVE_BROADCAST = "spark.sql.adaptive.autoBroadcastJoinThreshold"


@dataclass(slots=True)
class _Start:
    """A start of Spark under way or done; ``gateway`` leads to its JVM."""

    settings: Mapping[str, str]
    gateway: Any = None
    session: SparkSession | None = None
    error: BaseException | None = None
    done: threading.Event = field(default_factory=threading.Event)

    def run(self) -> None:
        try:
            self._run()
        except BaseException as e:  # raised again in the thread that asks for the session
            self.error = e
        finally:
            self.done.set()

    def _run(self) -> None:
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
        self.gateway = launch(self.settings)
        loading = load_classes(self.gateway)
        conf = SparkConf(loadDefaults=False).setAll(list(self.settings.items()))
        context = SparkContext(conf=conf, gateway=self.gateway)
        loading.join()
        builder = SparkSession.builder
        for key, value in self.settings.items():
            builder = builder.config(key, value)
        self.session = builder.getOrCreate()
        context.setLogLevel("ERROR")

    def result(self) -> SparkSession:
        self.done.wait()
        if self.error is not None:
            raise self.error
        assert self.session is not None
        return self.session

    def undo(self) -> None:
        """Ends the application and its JVM: the next one gets a JVM of its own."""
        self.result().stop()
        self.gateway.shutdown()
        if self.gateway.proc is not None:
            self.gateway.proc.stdin.close()
            self.gateway.proc.wait()
        SparkContext._gateway = SparkContext._jvm = None


class _Ahead:
    """The start that has been begun before anybody needed it."""

    def __init__(self) -> None:
        self._start: _Start | None = None
        self._lock = threading.Lock()

    def begin(self, settings: Mapping[str, str]) -> None:
        with self._lock:
            if self._start is None and SparkContext._active_spark_context is None:
                self._start = _Start(settings)
                threading.Thread(target=self._start.run, name="tidemill-start", daemon=True).start()

    def take(self, settings: Mapping[str, str]) -> SparkSession | None:
        """The session that was begun; None where none was, or only one with other settings."""
        with self._lock:
            start = self._start
            if start is None:
                return None
            start.done.wait()  # a Ctrl-C here leaves it to the next statement
            self._start = None
            if dict(start.settings) == dict(settings):
                return start.result()
            if start.error is None:
                start.undo()
            return None


_AHEAD = _Ahead()
_own_folder = cache(local_directory)


def start_ahead(options: Mapping[str, str]) -> None:
    """Begins to start Spark in a thread of its own and returns: it takes seconds in which a command can load
    and read its script. ``spark_application`` waits for it, or starts anew where other options came."""
    _AHEAD.begin(spark_settings(options))


def spark_application(options: Mapping[str, str]) -> SparkSession:
    """The process's Spark application; made on the first call from ``tidemill.spark.*`` options."""
    settings = spark_settings(options)
    ahead = _AHEAD.take(settings)
    if ahead is not None:
        return ahead
    running = _running()
    if running is not None:
        return running
    start = _Start(settings)
    start.run()
    return start.result()


def _running() -> SparkSession | None:
    """The process's application, whoever and whichever thread started it."""
    active = SparkSession.getActiveSession()
    if active is not None:
        return active
    return None if SparkContext._active_spark_context is None else SparkSession.builder.getOrCreate()


def spark_settings(options: Mapping[str, str]) -> dict[str, str]:
    """What Spark is started with: ours, then what ``tidemill.spark.*`` options say."""
    log_config = resources.files("tidemill.runtime.spark").joinpath("log4j2.properties")
    settings = {**_STATIC, **_RUNTIME, "spark.pyspark.python": sys.executable, "spark.master": DEFAULT_MASTER}
    settings["spark.driver.extraJavaOptions"] = (
        f"-Dlog4j2.configurationFile=file:{log_config} -Dlog4j.configurationFile=file:{log_config}"
        f" -XX:+UseParallelGC -Xss{JAVA_STACK}"
    )
    for key, value in options.items():
        if key.startswith(OPTION_PREFIX + "spark."):
            settings[key[len(OPTION_PREFIX) :]] = value
    return {**_local(settings["spark.master"]), **settings}


def _local(master: str) -> dict[str, str]:
    """A Spark within one machine listens on loopback alone, and keeps its files where no other user looks."""
    if not master.startswith("local"):
        return {}
    listening = {} if "SPARK_LOCAL_IP" in os.environ else _LOOPBACK
    return listening if "SPARK_LOCAL_DIRS" in os.environ else {**listening, "spark.local.dir": _own_folder()}


def _decide_by_what_is_seen(session: SparkSession) -> None:
    """Rows that are read in Python workers have no size that Spark knows: it takes them for a few bytes and
    would send any table to every task. What is surely small the plan says; the rest is seen as it runs."""
    given = session.conf.get(_STATIC_BROADCAST, "10MB") or "10MB"
    if session.conf.get(_ADAPTIVE_BROADCAST, None) is None:
        session.conf.set(_ADAPTIVE_BROADCAST, given)
    session.conf.set(_STATIC_BROADCAST, "-1")


def job_session(
    application: SparkSession, *, time_zone: str, adaptive: bool, partitions: int
) -> SparkSession:
    """A session of its own for one job, with the confs that its frames rely on."""
    session = application.newSession()
    for key, value in _RUNTIME.items():
        session.conf.set(key, value)
    session.conf.set("spark.sql.session.timeZone", time_zone)
    session.conf.set("spark.sql.adaptive.enabled", "true" if adaptive else "false")
    if adaptive:
        _decide_by_what_is_seen(session)
    session.conf.set("spark.sql.shuffle.partitions", str(partitions))
    return session
