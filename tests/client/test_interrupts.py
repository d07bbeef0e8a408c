"""Ctrl-C at a terminal while a batch statement runs: in a script, in the shell, in a Python program."""

from __future__ import annotations

import io
import json
import os
import pty
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TextIO

import pytest

from tidemill.client.gateway_client import Answer, GatewayClient
from tidemill.client.remote_shell import RemoteShell

pytestmark = pytest.mark.usefixtures("processes")

LONG = 120.0
BESIDE = """
import time
from pathlib import Path

from tidemill.user_functions.declared import udf

@udf(result_type="BIGINT")
def endless(n: int) -> int:
    Path("{mark}").touch()
    time.sleep(600)
    return n
"""
TABLES = """
SET 'execution.runtime-mode' = 'batch';
SET 'execution.batch-shuffle-mode' = '{mode}';
CREATE TABLE given (k BIGINT) WITH ('connector' = 'filesystem', 'format' = 'csv', 'path' = '{folder}/given');
CREATE TABLE taken (k BIGINT) WITH ('connector' = 'filesystem', 'format' = 'csv', 'path' = '{folder}/taken');
CREATE FUNCTION endless AS 'beside.endless' LANGUAGE PYTHON;
"""
QUERY = "SELECT endless(n) AS n FROM (SELECT k, COUNT(*) AS n FROM given GROUP BY k);"
INSERT = f"INSERT INTO taken {QUERY}"
BLOCKING, PIPELINED = "ALL_EXCHANGES_BLOCKING", "ALL_EXCHANGES_PIPELINED"


def prepared(folder: Path, statement: str, mode: str = BLOCKING) -> Path:
    """A script whose last statement does not end; it makes a mark when it is at work."""
    (folder / "given").mkdir()
    (folder / "given" / "0.csv").write_text("1\n2\n2\n")
    (folder / "beside.py").write_text(BESIDE.format(mark=folder / "mark"))
    script = folder / "script.sql"
    script.write_text(TABLES.format(mode=mode, folder=folder) + statement)
    return script


def until(what: Callable[[], bool]) -> None:
    end = time.monotonic() + LONG
    while not what():
        assert time.monotonic() < end
        time.sleep(0.05)


def _hears() -> None:
    """Whoever runs the tests in the background may have told all processes not to."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def interrupted(
    folder: Path,
    command: list[str],
    times: int = 1,
    given: TextIO | None = None,
    end: Callable[[int], None] = lambda pid: os.killpg(pid, signal.SIGINT),
) -> tuple[int, str, str]:
    """Runs a command in a process group of its own, which gets the signals, as from a terminal.

    ``given``: what is piped in.
    """
    environment = {**os.environ, "XDG_STATE_HOME": str(folder / "state")}
    with subprocess.Popen(
        [sys.executable, *command],
        stdin=given,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=_hears,
        env=environment,
    ) as process:
        try:
            until(lambda: (folder / "mark").exists() or process.poll() is not None)
            for _ in range(times):
                end(process.pid)
            out, said = process.communicate(timeout=LONG)
        except BaseException:
            os.killpg(process.pid, signal.SIGKILL)
            raise
    return process.returncode, out, said


SPARK = ["-D", "spark.master=local[4,3]", "-D", "spark.driver.memory=1g"]


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("statement", "mode", "times"),
    [
        pytest.param(QUERY, BLOCKING, 1, id="query", marks=pytest.mark.thorough),
        pytest.param(INSERT, BLOCKING, 1, id="insert"),
        pytest.param(INSERT, PIPELINED, 1, id="pipelined", marks=pytest.mark.thorough),
        pytest.param(INSERT, PIPELINED, 2, id="twice", marks=pytest.mark.thorough),
    ],
)
def test_a_script(tmp_path: Path, statement: str, mode: str, times: int) -> None:
    script = prepared(tmp_path, statement, mode)
    status, out, said = interrupted(tmp_path, ["-m", "tidemill", "run", *SPARK, str(script)], times)
    assert (status, said) == (130, "Stopped.\n")
    assert set(out.splitlines()) == {"OK"}
    assert [path.name for path in tmp_path.glob("taken/*")] == []
    if times == 1:
        records = [json.loads(file.read_text()) for file in (tmp_path / "state").rglob("*.json")]
        assert [record["status"] for record in records] == ["CANCELED"]
        assert records[0]["notes"] == []


@pytest.mark.thorough
def test_a_script_that_is_terminated(tmp_path: Path) -> None:
    """By who schedules it, which knows its process alone."""
    script = prepared(tmp_path, INSERT)
    command = ["-m", "tidemill", "run", *SPARK, str(script)]
    status, _, said = interrupted(tmp_path, command, end=lambda pid: os.kill(pid, signal.SIGTERM))
    assert (status, said) == (143, "Stopped.\n")
    assert not list(tmp_path.glob("taken/*")) + list(tmp_path.glob("taken/.staging/*"))
    records = [json.loads(file.read_text()) for file in (tmp_path / "state").rglob("*.json")]
    assert [record["status"] for record in records] == ["CANCELED"]


@pytest.mark.thorough
def test_a_script_with_json(tmp_path: Path) -> None:
    """The line is a whole one, though."""
    script = prepared(tmp_path, INSERT)
    command = ["-m", "tidemill", "run", *SPARK, "--format", "json", str(script)]
    status, out, said = interrupted(tmp_path, command)
    assert (status, said) == (130, "Stopped.\n")
    document = json.loads(out)
    assert document["ok"] is False
    assert document["statements"][-1]["error"] == {"code": "CANCELED", "message": "Stopped."}


@pytest.mark.thorough
def test_statements_that_are_piped_in(tmp_path: Path) -> None:
    """None begins after it."""
    script, piped = prepared(tmp_path, ""), tmp_path / "piped.sql"
    piped.write_text(f"{INSERT}\nSELECT 6 * 7 AS n;\n")
    with piped.open() as given:
        status, out, said = interrupted(
            tmp_path, ["-m", "tidemill", "sql", *SPARK, "-i", str(script)], given=given
        )
    assert (status, said) == (130, "Stopped.\n")
    assert "42" not in out
    assert [path.name for path in tmp_path.glob("taken/*")] == []


class Pressed(GatewayClient):
    """Ctrl-C comes while the gateway is at work on any statement."""

    def __init__(self) -> None:
        super().__init__("http://127.0.0.1:1")
        self.asked: list[str] = []

    def execute(self, statement: str, *, row_format: str = "JSON") -> Answer:
        self.asked.append(statement)
        raise KeyboardInterrupt

    def cancel(self, operation: str = "") -> None:
        self.asked.append("cancel")


def test_statements_for_a_gateway() -> None:
    """It is told to give the statement up; the next one begins only for somebody who sits at it."""
    typed = ["SELECT 1;", "SELECT 2;"]
    piped, at_it = Pressed(), Pressed()
    with pytest.raises(KeyboardInterrupt):
        RemoteShell(piped, io.StringIO()).loop(iter(typed))
    assert piped.asked == ["SELECT 1;", "cancel"]
    assert RemoteShell(at_it, io.StringIO(), interactive=True).loop(iter(typed))
    assert at_it.asked == ["SELECT 1;", "cancel", "SELECT 2;", "cancel"]


PROGRAM = """
import sys
from tidemill.session.environment import TableEnvironment

session = TableEnvironment.create({{"spark.master": "local[4,3]", "spark.driver.memory": "1g"}})
*first, last = [text for text in open("{script}").read().split(";") if text.strip()]
sys.path.insert(0, "{folder}")
for text in first:
    session.execute_sql(text)
try:
    session.execute_sql(last)
except KeyboardInterrupt:
    print("interrupted", list(session.execute_sql("SELECT SUM(k) AS k FROM given").collect()))
"""


@pytest.mark.thorough
def test_a_program_goes_on(tmp_path: Path) -> None:
    script = prepared(tmp_path, INSERT)
    (tmp_path / "program.py").write_text(PROGRAM.format(script=script, folder=tmp_path))
    status, out, said = interrupted(tmp_path, [str(tmp_path / "program.py")])
    assert (status, said) == (0, "")
    assert out == "interrupted [+I(5,)]\n"
    assert [path.name for path in tmp_path.glob("taken/*")] == []


@pytest.mark.thorough
def test_the_shell_has_its_prompt_again(tmp_path: Path) -> None:
    script = prepared(tmp_path, "")
    pid, terminal = pty.fork()
    if pid == 0:
        _hears()
        os.environ.update(TERM="dumb", XDG_STATE_HOME=str(tmp_path / "state"))
        os.execv(sys.executable, [sys.executable, "-m", "tidemill", "sql", *SPARK, "-i", str(script)])
    screen = Screen(terminal)
    screen.shows("tidemill> ")
    screen.types(f"{INSERT}\n")
    until((tmp_path / "mark").exists)
    screen.types("\x03")
    screen.shows("Stopped.")
    screen.types("SELECT 6 * 7 AS n;\n")
    screen.shows("42")
    screen.types("QUIT\n")
    _, status = os.waitpid(pid, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    assert "Traceback" not in screen.shown
    assert [path.name for path in tmp_path.glob("taken/*")] == []


class Screen:
    def __init__(self, terminal: int) -> None:
        self._terminal = terminal
        self._from = 0
        self.shown = ""

    def types(self, text: str) -> None:
        os.write(self._terminal, text.encode())

    def shows(self, text: str) -> None:
        """Waits for it, after what was waited for last."""
        while text not in self.shown[self._from :]:
            self.shown += os.read(self._terminal, 1 << 16).decode(errors="replace")
        self._from = self.shown.index(text, self._from) + len(text)
