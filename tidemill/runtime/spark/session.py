"""The Spark session: one JVM per process, one ``newSession()`` per job so that SQL confs do not leak.

Static settings (master, memory, extra jars) come from ``spark.*`` options at the first use; later jobs of
the same process share that Spark application. Workers on other machines are asked at the start whether they
can run our tasks.
"""

from __future__ import annotations

import os
import string
import sys
import threading
from collections import deque
from collections.abc import Mapping
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field
from typing import Any

from py4j.protocol import Py4JError
from pyspark import SparkConf, SparkContext
from pyspark.sql import SparkSession

from tidemill.errors import SetupError
from tidemill.runtime.spark.adaptive import WIDTH
from tidemill.runtime.spark.applications import application_id
from tidemill.runtime.spark.failures import java_says
from tidemill.runtime.spark.java_end import ended, watch
from tidemill.runtime.spark.java_view import remember_classes
from tidemill.runtime.spark.launch import launch, load_classes
from tidemill.runtime.spark.local_directory import check_local_directories
from tidemill.runtime.spark.settings import (
    MASTER,
    PYTHON,
    RUNTIME,
    is_within_machine,
    spark_options,
    spark_settings,
)
from tidemill.runtime.spark.shipped import package_archive
from tidemill.runtime.spark.slow_nodes import begin_to_exclude
from tidemill.runtime.spark.workers import check_workers, no_answer, said_when_long


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
        os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
        check_local_directories(
            os.environ.get("SPARK_LOCAL_DIRS") or self.settings.get("spark.local.dir", "")
        )
        self.gateway = launch(self.settings)
        try:
            self._open(load_classes(self.gateway))
        except BaseException:
            self._end()
            raise

    def _open(self, loading: threading.Thread) -> None:
        context = self._context()
        context.setLogLevel("ERROR")
        # What names the workers' Python to PySpark is the driver's environment, or this.
        context.pythonExec = self.settings[PYTHON]
        loading.join()
        builder = SparkSession.builder
        for key, value in self.settings.items():
            builder = builder.config(key, value)
        self.session = builder.getOrCreate()
        if not is_within_machine(self.settings[MASTER]):
            excluding = begin_to_exclude(context)
            check_workers(context)
            _CHECKED.add(application_id(context))
            excluding.join()

    def _context(self) -> SparkContext:
        conf = SparkConf(loadDefaults=False).setAll(list(self.settings.items()))
        master = self.settings[MASTER]
        try:
            with nullcontext() if is_within_machine(master) else said_when_long(no_answer(master)):
                return SparkContext(conf=conf, gateway=self.gateway)
        except Py4JError as e:
            lost = ended(self.gateway, seconds=0.5)
            if lost is not None:
                raise lost from e
            said = str(e)
            reason = "no master answers there" if _NO_MASTER in said else java_says(said)
            raise SetupError(f"Spark cannot start on master '{master}': {reason}.") from e

    def result(self) -> SparkSession:
        self.done.wait()
        if self.error is not None:
            raise self.error
        assert self.session is not None
        return self.session

    def undo(self) -> None:
        """Ends the application and its JVM: the next one gets a JVM of its own."""
        self.result()
        self._end()

    def _end(self) -> None:
        context = SparkContext._active_spark_context
        with suppress(Py4JError, OSError):  # its JVM may be gone
            if self.session is not None:
                self.session.stop()
            elif context is not None:
                context.stop()
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


_Kind = tuple[str, frozenset[tuple[str, str]]]
"""Of a session: its application and its settings."""
_AHEAD = _Ahead()
_NO_MASTER = "stopped SparkContext"
"""What Spark comes upon, having given up to wait for its master."""
_SUBMITTED = "PYSPARK_GATEWAY_PORT"
"""Set by ``spark-submit``, which has a JVM for this process already, with settings of its own."""
_PLAIN = frozenset(string.ascii_letters + string.digits + ".-_/")
_CHECKED: set[str] = set()
"""Applications whose workers have been asked."""
_GIVEN: dict[str, frozenset[str]] = {}
"""By application the keys of its settings."""
_IDLE: deque[tuple[_Kind, SparkSession]] = deque(maxlen=16)
"""Sessions that nobody has, the last one that was given back last."""


def start_ahead(options: Mapping[str, str]) -> None:
    """Begins to start Spark in a thread of its own and returns: it takes seconds in which a command can load
    and read its script. ``spark_application`` waits for it, or starts anew where other options came."""
    if _SUBMITTED not in os.environ:
        _AHEAD.begin(spark_settings(options))


def spark_application(options: Mapping[str, str]) -> SparkSession:
    """The process's Spark application; made on the first call from ``spark.*`` options."""
    if _SUBMITTED in os.environ:
        return _adopted(_submitted(options))
    settings = spark_settings(options)
    ahead = _AHEAD.take(settings)
    if ahead is not None:
        return ahead
    running = _running()
    if running is not None:
        return _adopted(running)
    start = _Start(settings)
    start.run()
    return start.result()


def _submitted(options: Mapping[str, str]) -> SparkSession:
    builder = SparkSession.builder
    for key, value in spark_options(options).items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def _adopted(session: SparkSession) -> SparkSession:
    """An application that somebody else may have started: its workers get our package, and are asked."""
    context = session.sparkContext
    watch(SparkContext._gateway)
    if application_id(context) not in _CHECKED and not is_within_machine(context.master or ""):
        context.addPyFile(package_archive())
        check_workers(context)
        _CHECKED.add(application_id(context))
    return session


def _running() -> SparkSession | None:
    """The process's application, whoever and whichever thread started it."""
    active = SparkSession.getActiveSession()
    if active is not None:
        return active
    return None if SparkContext._active_spark_context is None else SparkSession.builder.getOrCreate()


def unless_given(application: SparkSession, settings: Mapping[str, str]) -> dict[str, str]:
    """Those that nobody has chosen otherwise for the whole application; how wide exchanges are, jobs say."""
    given = _given(application.sparkContext)
    return {k: v for k, v in settings.items() if k == WIDTH or k not in given}


def _given(context: SparkContext) -> frozenset[str]:
    """The keys that an application was started with: asked for once, a call into the JVM for each."""
    known = _GIVEN.get(application_id(context))
    if known is None:
        known = _GIVEN[application_id(context)] = frozenset(key for key, _ in context.getConf().getAll())
    return known


def time_zone(name: str) -> dict[str, str]:
    """Spark's settings for it."""
    return {"spark.sql.session.timeZone": name}


def job_session(application: SparkSession, *, settings: Mapping[str, str]) -> SparkSession:
    """A session of its own for one job, with the confs that its frames rely on and ``settings``."""
    remember_classes(application.sparkContext)
    session = application.newSession()
    _set(session, {**RUNTIME, **settings})
    return session


def _set(session: SparkSession, settings: Mapping[str, str]) -> None:
    """All at once: to set each is a call into the JVM."""
    jvm: Any = session._jvm
    java: Any = session._jsparkSession
    lines = (f"{_escaped(key)}={_escaped(value)}\n" for key, value in settings.items())
    properties = jvm.java.util.Properties()
    properties.load(jvm.java.io.StringReader("".join(lines)))
    java.sessionState().conf().setConf(properties)


def _escaped(text: str) -> str:
    """As Java's properties are written: every character that may mean something by its number in UTF-16."""
    return "".join(c if c in _PLAIN else _numbered(c) for c in text)


def _numbered(character: str) -> str:
    units = character.encode("utf-16-be").hex()
    return "".join(f"\\u{units[i : i + 4]}" for i in range(0, len(units), 4))


def lent_session(application: SparkSession, *, settings: Mapping[str, str]) -> SparkSession:
    """As ``job_session``, one that has been given back where there is one: making one takes Spark some
    milliseconds."""
    return _idle(_kind(application, settings)) or job_session(application, settings=settings)


def give_back(session: SparkSession, *, settings: Mapping[str, str], has_views: bool) -> None:
    """Of who was lent it for ``settings`` and has left nothing in it but temporary views, which nothing reads
    any more. Spark's catalog keeps the files of tables that a session has read: it is none of those."""
    if has_views:
        java: Any = session._jsparkSession
        java.sessionState().catalog().clearTempTables()
    _IDLE.append((_kind(session, settings), session))


def _kind(session: SparkSession, settings: Mapping[str, str]) -> _Kind:
    return application_id(session.sparkContext), frozenset(settings.items())


def _idle(kind: _Kind) -> SparkSession | None:
    """One that nobody has any more."""
    for entry in reversed(_IDLE.copy()):
        if entry[0] == kind:
            with suppress(ValueError):  # another thread has just taken it
                _IDLE.remove(entry)
                return entry[1]
    return None
