"""The Spark session: one JVM per process, one ``newSession()`` per job so that SQL confs do not leak.

Static settings (master, memory, extra jars) come from ``tidemill.spark.*`` options at the first use;
later jobs of the same process share that Spark application.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from importlib import resources

from pyspark.sql import SparkSession

OPTION_PREFIX = "tidemill."
ARROW_ROWS_PER_BATCH = 1 << 18
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


def spark_application(options: Mapping[str, str]) -> SparkSession:
    """The process's Spark application; made on the first call from ``tidemill.spark.*`` options."""
    active = SparkSession.getActiveSession()
    if active is not None:
        return active
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    settings = {**_STATIC, **_RUNTIME, "spark.pyspark.python": sys.executable}
    settings.setdefault("spark.master", DEFAULT_MASTER)
    log_config = resources.files("tidemill.runtime.spark").joinpath("log4j2.properties")
    settings["spark.driver.extraJavaOptions"] = (
        f"-Dlog4j2.configurationFile=file:{log_config} -Dlog4j.configurationFile=file:{log_config}"
        " -XX:+UseParallelGC"
    )
    for key, value in options.items():
        if key.startswith(OPTION_PREFIX + "spark."):
            settings[key[len(OPTION_PREFIX) :]] = value
    builder = SparkSession.builder
    for key, value in settings.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def job_session(
    application: SparkSession, *, time_zone: str, adaptive: bool, partitions: int
) -> SparkSession:
    """A session of its own for one job, with the confs that its frames rely on."""
    session = application.newSession()
    for key, value in _RUNTIME.items():
        session.conf.set(key, value)
    session.conf.set("spark.sql.session.timeZone", time_zone)
    session.conf.set("spark.sql.adaptive.enabled", "true" if adaptive else "false")
    session.conf.set("spark.sql.shuffle.partitions", str(partitions))
    return session
