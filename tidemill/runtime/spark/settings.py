"""What Spark is started with, within one machine or on a cluster.

Options of the session are Spark's own by their keys: ``spark.*`` (also as ``tidemill.spark.*``). Below them
count, in this order, ``SPARK_MASTER`` for the master, the user's ``spark-defaults.conf``, and what is here.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from functools import cache
from importlib import resources
from pathlib import Path

from tidemill.config.properties import read_properties
from tidemill.config.registry import OWN_PREFIX, SPARK_PREFIX
from tidemill.runtime.spark.local_directory import local_directory
from tidemill.runtime.spark.shipped import package_archive
from tidemill.runtime.spark.speculation import cluster_speculation, speculation

ARROW_ROWS_PER_BATCH = 1 << 18
JAVA_STACK = "64m"
"""Address space of a thread's stack: Spark's parser and optimizer recurse as deep as expressions nest."""
_JAVA = (
    f"-XX:+UseParallelGC -Xss{JAVA_STACK} "
    "-XX:Tier4InvocationThreshold=50000 -XX:Tier4MinInvocationThreshold=6000 "
    "-XX:Tier4CompileThreshold=150000 -XX:Tier4BackEdgeThreshold=400000"
)
"""The thresholds are ten times Java's own. Loops over rows pass them in their first milliseconds. The rest of
Spark, which each process of a cluster would compile again, stays with the cheap compiler. In its first
seconds a job takes a tenth to a seventh less processor time; warm batch queries take 4 % less."""
DEFAULT_MASTER = "local[*,3]"
"""All cores; a task whose Python worker died is tried again, as on a cluster."""
MASTER, PYTHON = "spark.master", "spark.pyspark.python"
WIDTH = "spark.sql.shuffle.partitions"
"""Of exchanges."""
SOCKET_FOLDER = "spark.python.unix.domain.socket.dir"
"""Of the sockets between the driver, the JVM and Python workers within one machine."""

DAEMON = {
    "spark.python.daemon.module": "tidemill.runtime.spark.worker_daemon",
    # Spark sets this for tasks of DataFrames alone, and starts a daemon for each environment.
    "spark.executorEnv.SPARK_SIMPLIFIED_TRACEBACK": "1",
}
_STATIC: dict[str, str] = {
    "spark.app.name": "tidemill",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.memory": "2g",
    "spark.scheduler.mode": "FAIR",
    "spark.python.worker.reuse": "true",
    **DAEMON,
    "spark.shuffle.compress": "false",
    # Every sort, aggregation and join of a task asks for its memory in pages, and Java clears each: Spark's
    # own choice, up to 64 MB, costs a short query a tenth to a sixth of its time; large ones hardly care.
    "spark.buffer.pageSize": "4m",
    # A job of many epochs must not keep what Spark remembers of each: shuffle files go with a collection
    # of the driver's garbage, plans and stages with these limits. ``stage_runs`` reads them at a job's end.
    "spark.cleaner.periodicGC.interval": "3min",
    "spark.ui.retainedJobs": "200",
    "spark.ui.retainedStages": "200",
    "spark.ui.retainedTasks": "5000",
    "spark.sql.ui.retainedExecutions": "5",
    "spark.sql.catalogImplementation": "in-memory",
    WIDTH: "2",
    # What is too large for the driver's memory goes to its disk (``results``).
    "spark.driver.maxResultSize": "0",
}

RUNTIME: dict[str, str] = {
    "spark.sql.ansi.enabled": "false",
    "spark.sql.caseSensitive": "true",
    "spark.sql.execution.arrow.maxRecordsPerBatch": str(ARROW_ROWS_PER_BATCH),
    "spark.sql.decimalOperations.allowPrecisionLoss": "true",
    "spark.sql.mapKeyDedupPolicy": "LAST_WIN",
    "spark.sql.variable.substitute": "false",
    "spark.sql.legacy.timeParserPolicy": "CORRECTED",
    # Conditions reach readers of files as Java's values: the old ones are of a calendar that lacks ten days.
    "spark.sql.datetime.java8API.enabled": "true",
    # NULL is not in what is empty: without ANSI mode Spark takes that for unknown.
    "spark.sql.legacy.nullInEmptyListBehavior": "false",
    "spark.sql.variant.allowDuplicateKeys": "true",
}

_LOOPBACK = {"spark.driver.bindAddress": "127.0.0.1", "spark.driver.host": "127.0.0.1"}
_SOCKET_NAME = f".{'0' * 36}.sock"
"""A socket's name as long as those that PySpark makes."""
_LONGEST_SOCKET_PATH = 103
"""In bytes: 107 on Linux, 103 on macOS."""
_CLUSTER = {
    "spark.executor.extraJavaOptions": _JAVA,
    # The first job learns how many cores there are: it starts when all have come that were asked for.
    "spark.scheduler.minRegisteredResourcesRatio": "1.0",
    # Seconds of waiting for the executor next to some blocks are worth more than fetching them.
    "spark.locality.wait": "0s",
}
_EXCLUDING = "spark.excludeOnFailure", "spark.blacklist"
_own_folder = cache(local_directory)


def is_within_machine(master: str) -> bool:
    """Whether the tasks run in the driver's process."""
    return master == "local" or master.startswith("local[")


def chosen_master(options: Mapping[str, str]) -> str:
    """The master of an application that starts with a session's options."""
    return {**_environment(), **spark_options(options)}[MASTER]


def spark_settings(options: Mapping[str, str]) -> dict[str, str]:
    """All of Spark's settings for a session's options."""
    settings = {**_STATIC, **RUNTIME, **_driver_java(), **_environment()}
    settings |= {**speculation(options), **spark_options(options)}
    if is_within_machine(settings[MASTER]):
        return {**_private(), **settings}
    return _shipping({**_CLUSTER, **_uncounted(settings), **cluster_speculation(options), **settings})


def _uncounted(settings: Mapping[str, str]) -> dict[str, str]:
    """Where slow hosts are excluded Spark counts failed tasks, too: unless that was asked for, in silence."""
    asked = any(key.startswith(_EXCLUDING) for key in settings)
    return {} if asked else {f"{_EXCLUDING[0]}.stage.maxFailedTasksPerExecutor": str((1 << 31) - 1)}


def spark_options(options: Mapping[str, str]) -> dict[str, str]:
    """Those that are Spark's, by its own keys."""
    spelt_out = {k.removeprefix(OWN_PREFIX): v for k, v in options.items() if k.startswith(SPARK_PREFIX)}
    return {**spelt_out, **{k: v for k, v in options.items() if k.startswith("spark.")}}


def _driver_java() -> dict[str, str]:
    log = resources.files("tidemill.runtime.spark").joinpath("log4j2.properties")
    given = f"-Dlog4j2.configurationFile=file:{log} -Dlog4j.configurationFile=file:{log}"
    return {"spark.driver.extraJavaOptions": f"{given} {_JAVA}"}


def _environment() -> dict[str, str]:
    """What the machine and the user's environment say."""
    python = os.environ.get("PYSPARK_PYTHON") or sys.executable
    master = os.environ.get("SPARK_MASTER", "")
    settings = {MASTER: DEFAULT_MASTER, PYTHON: python, **_defaults_file()}
    return {**settings, MASTER: master} if master else settings


def _defaults_file() -> dict[str, str]:
    """``spark-defaults.conf``: Spark's start script reads it too, but for what it is given by us."""
    home = os.environ.get("SPARK_HOME")
    folder = os.environ.get("SPARK_CONF_DIR") or (home and os.path.join(home, "conf"))
    file = Path(folder or "", "spark-defaults.conf")
    return spark_options(read_properties(file)) if folder and file.is_file() else {}


def _private() -> dict[str, str]:
    """A Spark within one machine listens on loopback alone, and keeps its files where no other user looks."""
    private = {} if "SPARK_LOCAL_IP" in os.environ else dict(_LOOPBACK)
    private |= unix_sockets(_own_folder())
    return private if "SPARK_LOCAL_DIRS" in os.environ else {**private, "spark.local.dir": _own_folder()}


def unix_sockets(folder: str) -> dict[str, str]:
    """The settings by which the JVM and its Python workers talk over Unix sockets in ``folder``.

    Over TCP each hop between them waits some 40 ms for an acknowledgement, several times in a small epoch.
    The result is empty, and TCP stays, where the path of a socket would be longer than the system allows.
    """
    if len(os.fsencode(os.path.join(folder, _SOCKET_NAME))) > _LONGEST_SOCKET_PATH:
        return {}
    return {"spark.python.unix.domain.socket.enabled": "true", SOCKET_FOLDER: folder}


def _shipping(settings: dict[str, str]) -> dict[str, str]:
    """Executors fetch this very package before their first task; it lies in the folder they run in, and their
    Python daemon, which is part of it, finds it by that path."""
    archive, path = package_archive(), "spark.executorEnv.PYTHONPATH"
    shipped = {
        "spark.files": ",".join(filter(None, (settings.get("spark.files", ""), archive))),
        path: ":".join(filter(None, (os.path.basename(archive), settings.get(path, "")))),
    }
    return _on_yarn({**settings, **shipped}) if settings[MASTER] == "yarn" else {**settings, **shipped}


def _on_yarn(settings: dict[str, str]) -> dict[str, str]:
    """YARN puts files into the folders of executors itself, by keys of its own."""
    own = {"spark.files": "spark.yarn.dist.files", "spark.archives": "spark.yarn.dist.archives"}
    moved = {key: ",".join(settings[k] for k in (key, old) if k in settings) for old, key in own.items()}
    return {k: v for k, v in settings.items() if k not in own} | {k: v for k, v in moved.items() if v}
