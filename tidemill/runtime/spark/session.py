"""The Spark session: one JVM per process, one ``newSession()`` per job so that SQL confs do not leak.

Static settings (master, memory, extra jars) come from ``spark.*`` options at the first use; later jobs of
the same process share that Spark application. Workers on other machines are asked at the start whether they
can run our tasks.
"""

from __future__ import annotations

import os
import sys
import threading
from collections import deque
from collections.abc import Mapping
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pyspark import SparkConf, SparkContext
from pyspark.sql import SparkSession

from tidemill.errors import SetupError
from tidemill.late import late
from tidemill.runtime.spark.applications import application_id
from tidemill.runtime.spark.launch import launch
from tidemill.runtime.spark.local_directory import check_local_directories
from tidemill.runtime.spark.settings import (
    MASTER,
    PYTHON,
    RUNTIME,
    WIDTH,
    is_within_machine,
    spark_options,
    spark_settings,
)
from tidemill.runtime.spark.shipped import package_archive
from tidemill.runtime.spark.slow_nodes import begin_to_exclude
from tidemill.runtime.spark.workers import check_workers, no_answer, said_when_long
from tidemill.spark_internals.class_lookups import remember_classes
from tidemill.spark_internals.driver import active_context, end_jvm, load_classes, use_python
from tidemill.spark_internals.driver_end import ended, watch_driver
from tidemill.spark_internals.errors import JavaError, java_says
from tidemill.spark_internals.sessions import TemporaryViews, set_all
from tidemill.spark_internals.versions import LENT_SESSIONS, check_version, is_on

if TYPE_CHECKING:
    from tidemill.runtime.spark.resident import workers as resident
else:
    resident = late("tidemill.runtime.spark.resident.workers")


@dataclass(slots=True)
class _Start:
    """A start of Spark under way or done; ``gateway`` leads to its JVM. ``has_epochs``: who waits for it will
    run a streaming job."""

    settings: Mapping[str, str]
    has_epochs: bool = False
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
        check_version(context)
        use_python(context, self.settings[PYTHON])
        if self.has_epochs and is_within_machine(self.settings[MASTER]):
            resident.resident_workers(context).begin()
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
        except JavaError as e:
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
        context = active_context()
        with suppress(JavaError, OSError):  # its JVM may be gone
            if self.session is not None:
                self.session.stop()
            elif context is not None:
                context.stop()
            self.gateway.shutdown()
        end_jvm(self.gateway)


class _Ahead:
    """The start that has been begun before anybody needed it."""

    def __init__(self) -> None:
        self._start: _Start | None = None
        self._lock = threading.Lock()

    def begin(self, settings: Mapping[str, str]) -> None:
        with self._lock:
            if self._start is None and active_context() is None:
                self._start = _Start(settings)
                threading.Thread(target=self._start.run, name="tidemill-start", daemon=True).start()

    @property
    def under_way(self) -> bool:
        return self._start is not None

    def take(self, settings: Mapping[str, str], *, for_epochs: bool = False) -> SparkSession | None:
        """The session that was begun; None where none was, or only one with other settings."""
        with self._lock:
            start = self._start
            if start is None:
                return None
            fits = dict(start.settings) == dict(settings)
            start.has_epochs = fits and for_epochs
            start.done.wait()  # a Ctrl-C here leaves it to the next statement
            self._start = None
            if fits:
                return start.result()
            if start.error is None:
                start.undo()
            return None


_Kind = tuple[str, frozenset[tuple[str, str]]]
"""Of a session: its application and its settings."""
_AHEAD = _Ahead()
_STARTING = threading.Lock()
"""Threads of a program may ask for the application at the same time: one of them starts it."""
_NO_MASTER = "stopped SparkContext"
"""What Spark comes upon, having given up to wait for its master."""
_SUBMITTED = "PYSPARK_GATEWAY_PORT"
"""Set by ``spark-submit``, which has a JVM for this process already, with settings of its own."""
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


def spark_application(options: Mapping[str, str], *, for_epochs: bool = False) -> SparkSession:
    """The process's Spark application; made on the first call from ``spark.*`` options. ``for_epochs``: for a
    job whose epochs may run in resident workers. These start together with an application within one machine,
    and import what they need meanwhile."""
    if _SUBMITTED in os.environ:
        return _adopted(_submitted(options))
    settings = spark_settings(options)
    with _STARTING:
        ahead = _AHEAD.take(settings, for_epochs=for_epochs)
        if ahead is not None:
            return ahead
        running = _running()
        if running is not None:
            return _adopted(running)
        start = _Start(settings, has_epochs=for_epochs)
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
    watch_driver()
    check_version(context)
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
    return None if active_context() is None else SparkSession.builder.getOrCreate()


def too_late(key: str, value: str) -> str:
    """The warning for an option of Spark's that the running application was started without; '' for other
    options, and before the start."""
    context, given = active_context(), spark_options({key: value})
    if not given or context is None or _AHEAD.under_way:
        return ""
    (name,) = given
    if context.getConf().get(name) == value:
        return ""
    return f"Spark runs already: '{name}' = '{value}' has no effect until the program starts again."


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
    set_all(session, {**RUNTIME, **settings})
    return session


def lent_session(application: SparkSession, *, settings: Mapping[str, str]) -> SparkSession:
    """As ``job_session``, one that has been given back where there is one: making one takes Spark some
    milliseconds."""
    return _idle(_kind(application, settings)) or job_session(application, settings=settings)


def give_back(session: SparkSession, *, settings: Mapping[str, str], has_views: bool) -> None:
    """Of who was lent it for ``settings`` and has left nothing in it but temporary views, which nothing reads
    any more. Spark's catalog keeps the files of tables that a session has read: it is none of those."""
    if not is_on(LENT_SESSIONS):
        return
    if has_views:
        TemporaryViews(session).clear()
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
