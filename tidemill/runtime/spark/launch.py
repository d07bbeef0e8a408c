"""Starts the JVM that Spark runs in.

What it writes comes through this process, line by line, on standard error, as standard output is for results;
without the warning that every JVM of Spark's begins with. Its classes come from an archive where there is one
(``class_archive``). While Spark's core starts, a second thread loads the classes of Spark SQL, which would
otherwise cost about as long again after it. A machine without a fitting Java gets a SetupError that says what
to install.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from functools import partial
from typing import Any

from pyspark.errors import PySparkRuntimeError

from tidemill.errors import SetupError
from tidemill.runtime.spark.class_archive import ClassArchive, archive_of
from tidemill.spark_internals.driver import spark_home, start_jvm
from tidemill.spark_internals.driver_end import watch
from tidemill.spark_internals.errors import java_says

JAVA_VERSION = 17
"""The oldest that Spark runs on."""

JAVA_OPTIONS = "spark.driver.extraJavaOptions"
_SHORT_LIVED = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""For the JVM that only makes up the command of Spark's own."""

_ASCII = ("C", "POSIX")
"""Locales of cron and the like, with which Java finds no file whose name has other letters. Where another
variable says so, Python has made UTF-8 of it already."""
_NOISE = re.compile(r"WARNING: Using incubator modules|NOTE: Picked up JDK_JAVA_OPTIONS")
_VERSION = re.compile(r'version "(\d+)')
_INSTALL = (
    f"Install Java {JAVA_VERSION} or newer (Debian, Ubuntu: sudo apt-get install openjdk-17-jre-headless; "
    "macOS: brew install openjdk@17; elsewhere: https://adoptium.net), then put 'java' on the PATH or set "
    "JAVA_HOME."
)
_OUT_OF_MEMORY = "-XX:+ExitOnOutOfMemoryError"
"""Without it a thread of Spark's that gets no memory ends alone, and its job waits for ever."""


def launch(settings: Mapping[str, str]) -> Any:
    """py4j's gateway to a new JVM whose Spark gets ``settings``; SetupError where that fails."""
    java = java_program()
    os.environ.setdefault("SPARK_LAUNCHER_OPTS", _SHORT_LIVED)
    if os.environ.get("LC_ALL") in _ASCII:
        os.environ["LC_ALL"] = "C.UTF-8"
    archive = archive_of(java, spark_home())
    told = {**settings, JAVA_OPTIONS: _java_options(settings.get(JAVA_OPTIONS, ""), archive)}
    errors = _ErrorStream()
    try:
        gateway = _waited_for(partial(start_jvm, told, errors.writing_end))
    except PySparkRuntimeError as e:
        if archive is not None:
            archive.discard()
        raise _failure(java, errors.close()) from e
    except OSError as e:
        raise SetupError(f"Spark's start script cannot be run: {e}") from e
    errors.opened()
    watch(gateway)
    return gateway


def _waited_for(start: Callable[[], Any]) -> Any:
    """The gateway that ``start`` gives in another thread. Ctrl-C ends the wait alone: a torn launcher of
    PySpark's leaves a JVM that never ends. A JVM that nobody waits for ends when its input is closed."""
    started: Future[Any] = Future()
    try:
        threading.Thread(target=_settle, args=(started, start), name="tidemill-launch", daemon=True).start()
        return started.result()
    except KeyboardInterrupt:
        started.add_done_callback(_end_unwanted)
        raise
    finally:
        del started


def _settle(started: Future[Any], start: Callable[[], Any]) -> None:
    try:
        started.set_result(start())
    except BaseException as e:  # raised again where somebody waits
        started.set_exception(e)
    finally:
        del started  # an error knows this frame: it would keep itself, and what it is about


def _end_unwanted(started: Future[Any]) -> None:
    if started.exception() is None:
        started.result().proc.stdin.close()


def _java_options(given: str, archive: ClassArchive | None) -> str:
    """``given``, what the JVM does when it is out of memory, and those of the archive, unless what is given
    decides on such matters itself."""
    options = [given]
    if "OnOutOfMemoryError" not in given:
        options.append(_OUT_OF_MEMORY)
    if archive is not None and not any(word in given for word in ("Archive", "-Xshare", "-Xlog")):
        options.append(archive.options())
    return " ".join(options).strip()


def java_program() -> str:
    """The ``java`` that Spark's scripts will run; SetupError where there is none."""
    home = os.environ.get("JAVA_HOME", "")
    if home:
        program = os.path.join(home, "bin", "java")
        if os.access(program, os.X_OK):
            return program
        raise SetupError(f"JAVA_HOME is '{home}', but there is no 'bin/java' in it.", hint=_INSTALL)
    found = shutil.which("java")
    if found is None:
        raise SetupError(
            "Spark needs Java, and this machine has none: 'java' is not on the PATH, JAVA_HOME is not set.",
            hint=_INSTALL,
        )
    return found


def _failure(java: str, said: str) -> SetupError:
    shown = subprocess.run([java, "-version"], capture_output=True, text=True, check=False).stderr
    version = _VERSION.search(shown)
    if version is not None and int(version.group(1)) < JAVA_VERSION:
        return SetupError(
            f"Spark needs Java {JAVA_VERSION} or newer; '{java}' is Java {version.group(1)}.", hint=_INSTALL
        )
    return SetupError(f"Spark's JVM ('{java}') ended while it started: {java_says(said) or 'it was killed'}.")


class _ErrorStream:
    """What the JVM writes: held back until it is up, then copied to this process's own."""

    def __init__(self) -> None:
        self._reading_end, self.writing_end = os.pipe()
        self._held: list[str] = []
        self._open = False
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._copy, name="tidemill-jvm-errors", daemon=True)
        self._thread.start()

    def opened(self) -> None:
        """The JVM is up, and holds the other end alone."""
        os.close(self.writing_end)
        with self._lock:
            self._open = True
            sys.stderr.write("".join(self._held))

    def close(self) -> str:
        """The JVM is gone; what it said."""
        os.close(self.writing_end)
        self._thread.join()
        return "".join(self._held)

    def _copy(self) -> None:
        with open(self._reading_end, encoding="utf-8", errors="replace") as lines:
            for line in lines:
                if not _NOISE.match(line):
                    self._write(line)

    def _write(self, line: str) -> None:
        with self._lock:
            if self._open:
                sys.stderr.write(line)
                sys.stderr.flush()
            else:
                self._held.append(line)
