"""Starting Spark's JVM: what a machine without a fitting Java is told, and what is not said."""

from __future__ import annotations

import io
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
from pyspark import SparkContext

from tidemill.errors import SetupError
from tidemill.runtime.spark import launch, session
from tidemill.spark_internals.errors import java_says

OLD = """#!/bin/sh
if [ "$1" = -version ]; then echo 'openjdk version "11.0.2" 2019-01-15' >&2; exit 0; fi
echo 'class file has wrong version 61.0' >&2
exit 1
"""
BROKEN = OLD.replace("11.0.2", "17.0.2").replace("class file has wrong version 61.0", "no memory")


# PySpark drops the pipe to a JVM that ended at once without closing it.
UNCLOSED = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")


def _java(folder: Path, text: str) -> None:
    program = folder / "bin" / "java"
    program.parent.mkdir()
    program.write_text(text)
    program.chmod(0o755)


FILES_OF_OTHER_LETTERS = """
import pyarrow as pa, pyarrow.parquet as pq, sys
from tidemill.session.environment import TableEnvironment
pq.write_table(pa.table({"v": [1, 2]}), sys.argv[1] + "/\\u00e9.parquet")
session = TableEnvironment.create({"execution.runtime-mode": "batch"})
session.execute_sql(
    "CREATE TABLE t (v BIGINT) WITH "
    f"('connector' = 'filesystem', 'path' = '{sys.argv[1]}', 'format' = 'parquet')"
)
print([tuple(row) for row in session.execute_sql("SELECT v FROM t").collect()])
"""


@pytest.mark.thorough
@pytest.mark.parametrize("locale", [{"LC_ALL": "C"}, {"LC_ALL": "POSIX"}, {"LANG": "C"}, {}], ids=str)
def test_files_of_other_letters_in_the_locale_of_cron(tmp_path: Path, locale: dict[str, str]) -> None:
    kept = {k: v for k, v in os.environ.items() if not k.startswith("LC_") and k != "LANG"}
    ran = subprocess.run(
        [sys.executable, "-c", FILES_OF_OTHER_LETTERS, str(tmp_path)],
        env={**kept, **locale},
        capture_output=True,
        check=False,
        timeout=120,
    )
    assert ran.stdout == b"[(1,), (2,)]\n", ran.stderr


CALLS = "\n\tat a.B.c(B.java:1)\n"
NO_MASTER = f'Exception in thread "main" org.apache.spark.SparkException: Master must be one.{CALLS}'
NO_CLUSTER = (
    f"An error occurred while calling None.X.\n: a.b.ClientException: An error has occurred.{CALLS}"
    "Caused by: java.io.IOException: Broken\n\t... 3 more\nCaused by: java.net.ConnectException: Refused\n"
)


@pytest.mark.parametrize(
    ("said", "told"),
    [
        (NO_MASTER, "Master must be one"),
        (NO_CLUSTER, "An error has occurred: Refused"),
        ("Killed\n", "Killed"),
        ("", ""),
    ],
)
def test_java_says(said: str, told: str) -> None:
    assert java_says(said) == told


def test_no_java_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SetupError, match="this machine has none") as caught:
        launch.launch({})
    assert "openjdk-17-jre-headless" in caught.value.hint


def test_java_home_without_java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(SetupError, match="no 'bin/java' in it"):
        launch.launch({})


@UNCLOSED
def test_old_java_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _java(tmp_path, OLD)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(SetupError, match=r"Spark needs Java 17 or newer; '.*/bin/java' is Java 11\."):
        launch.launch({})


@UNCLOSED
def test_a_jvm_that_ends_is_quoted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _java(tmp_path, BROKEN)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(SetupError, match=r"ended while it started: no memory\."):
        launch.launch({})


def test_the_warning_of_every_start_is_not_passed_on(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = io.StringIO()
    monkeypatch.setattr(sys, "stderr", shown)
    errors = launch._ErrorStream()
    with open(os.dup(errors.writing_end), "w", encoding="utf-8") as jvm:
        jvm.write("WARNING: Using incubator modules: jdk.incubator.vector\nearly\n")
        jvm.flush()
        errors.opened()
        jvm.write("late\n")
    errors._thread.join()
    assert shown.getvalue() == "early\nlate\n"


@pytest.fixture
def starts(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What the starts of Spark did, in place of doing it."""
    done: list[str] = []

    def run(start: session._Start) -> None:
        done.append(f"start {start.settings['spark.app.name']}")
        start.done.set()

    monkeypatch.setattr(session._Start, "run", run)
    monkeypatch.setattr(session._Start, "result", lambda start: start.settings["spark.app.name"])
    monkeypatch.setattr(session._Start, "undo", lambda start: done.append("undo"))
    # The suite has a Spark of its own.
    monkeypatch.setattr(SparkContext, "_active_spark_context", None)
    return done


def test_a_start_ahead_is_used_once(starts: list[str]) -> None:
    ahead = session._Ahead()
    ahead.begin({"spark.app.name": "a"})
    ahead.begin({"spark.app.name": "a"})
    assert str(ahead.take({"spark.app.name": "a"})) == "a"
    assert ahead.take({"spark.app.name": "a"}) is None
    assert starts == ["start a"]


@pytest.mark.parametrize("for_epochs", [True, False])
def test_a_start_ahead_learns_what_it_is_for(starts: list[str], for_epochs: bool) -> None:
    ahead = session._Ahead()
    ahead.begin({"spark.app.name": "a"})
    start = ahead._start
    ahead.take({"spark.app.name": "a"}, for_epochs=for_epochs)
    assert start is not None
    assert start.has_epochs is for_epochs
    assert starts == ["start a"]


def test_a_start_ahead_with_other_settings_is_undone(starts: list[str]) -> None:
    ahead = session._Ahead()
    ahead.begin({"spark.app.name": "a"})
    assert ahead.take({"spark.app.name": "b"}) is None
    assert starts[-1] == "undo"


def test_ctrl_c_ends_the_jvm_that_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launch, "java_program", lambda: "java")
    monkeypatch.setattr(launch, "archive_of", lambda java, home: None)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    interrupted, jvms = threading.Event(), list[subprocess.Popen[bytes]]()

    def start(_settings: object, _errors: int) -> SimpleNamespace:
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
        assert interrupted.wait(60)
        jvms.append(subprocess.Popen(["cat"], stdin=subprocess.PIPE))
        return SimpleNamespace(proc=jvms[0])

    monkeypatch.setattr(launch, "start_jvm", start)
    try:
        with pytest.raises(KeyboardInterrupt):
            launch.launch({})
    finally:
        signal.signal(signal.SIGINT, before)
    interrupted.set()
    (launching,) = (t for t in threading.enumerate() if t.name == "tidemill-launch")
    launching.join()
    assert jvms[0].wait(60) == 0


def test_threads_of_a_program_start_spark_one_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    starting, seen = [0], []

    def run(start: session._Start) -> None:
        starting[0] += 1
        time.sleep(0.05)
        seen.append(starting[0])
        starting[0] -= 1
        start.done.set()

    monkeypatch.setattr(session._Start, "run", run)
    monkeypatch.setattr(session._Start, "result", lambda start: None)
    monkeypatch.setattr(session, "_running", lambda: None)
    threads = [threading.Thread(target=session.spark_application, args=({},)) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen == [1, 1, 1]
