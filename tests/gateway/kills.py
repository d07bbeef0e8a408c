"""The restart proof: a gateway that is killed under load, time and again, loses nothing that it acknowledged.

``python -m tests.gateway.kills --kills 20 --seed 7`` kills the gateway with SIGKILL at random moments while
clients open sessions, make tables, run queries and start jobs, and starts it again on the same directory.
After each start: sessions have what was made in them, finished results are fetched again from their first
token, failed statements have their errors, those that ran are known and have ended; HiveServer2 answers. At
the end: jobs have written each row once. Exit status 1 where anything differed.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests import visible
from tests.gateway.hiveserver2_client import PLUGS, Client
from tests.runtime.processes import end, kill, parts_of

REPOSITORY = Path(__file__).parents[2]
CLIENTS = 3
_CHECKED = 40
"""How many results are fetched again after each start: those that came last."""
_PATIENCE = 180.0
_AWAY = (OSError, http.client.HTTPException)
_OPTIONS = {
    "parallelism.default": "1",
    "sql-gateway.endpoint.type": "rest;hiveserver2",
    "sql-gateway.endpoint.hiveserver2.thrift.port": "0",
}
_JAVA = "-XX:TieredStopAtLevel=1"
Json = dict[str, Any]


class Refused(Exception):
    """The gateway's error."""


@dataclass(slots=True)
class Process:
    """A gateway in a process of its own; ``up`` while it listens."""

    folder: Path
    rest: str = ""
    hive: int = 0
    up: threading.Event = field(default_factory=threading.Event)
    _process: subprocess.Popen[str] | None = None

    def start(self) -> None:
        options = {**_OPTIONS, "tidemill.gateway.directory": str(self.folder / "gateway")}
        command = [sys.executable, "-m", "tidemill", "gateway", "--port", "0", "--master", "local[2]"]
        command += [part for k, v in options.items() for part in ("-D", f"{k}={v}")]
        environment = {**os.environ, "JDK_JAVA_OPTIONS": _JAVA}
        with (self.folder / "errors.txt").open("a") as errors:
            self._process = subprocess.Popen(
                command, cwd=REPOSITORY, env=environment, stdout=subprocess.PIPE, stderr=errors, text=True
            )
        assert self._process.stdout is not None
        found: dict[str, str] = {}
        for line in self._process.stdout:
            match = re.match(r"Listening on (\w+)://(\S+)", line)
            if match:
                found[match.group(1)] = match.group(2)
            if len(found) == 2:
                break
        if len(found) < 2:
            raise SystemExit(
                f"The gateway did not start:\n{(self.folder / 'errors.txt').read_text()[-4000:]}"
            )
        self.rest, self.hive = found["http"], int(found["thrift"].rpartition(":")[2])
        self.up.set()

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def kill(self) -> None:
        """With all that belongs to it."""
        self.up.clear()
        assert self._process is not None
        parts = parts_of(self._process.pid)
        kill(self._process.pid, signal.SIGKILL)
        self._process.communicate()
        end(parts)

    def call(self, method: str, path: str, body: Json | None = None) -> Json:
        """OSError where it is away, Refused where it says no."""
        connection = http.client.HTTPConnection(self.rest, timeout=_PATIENCE)
        try:
            connection.request(method, f"/v3{path}", json.dumps(body or {}))
            answer = connection.getresponse()
            found: Json = json.loads(answer.read())
        finally:
            connection.close()
        if answer.status != 200:
            raise Refused(found["errors"][-1])
        return found

    def counted(self, name: str) -> dict[str, float]:
        """A metric of jobs, by job."""
        connection = http.client.HTTPConnection(self.rest, timeout=_PATIENCE)
        try:
            connection.request("GET", "/metrics.json")
            found = json.loads(connection.getresponse().read())
        finally:
            connection.close()
        return {each["job"]: each["value"] for each in found.get(name, ())}


@dataclass(slots=True)
class Ledger:
    """What clients were told. ``finished`` by session and operation: rows, or a part of an error;
    ``submitted``: operations of which no more is known."""

    tables: dict[str, set[str]] = field(default_factory=dict)
    finished: dict[tuple[str, str], list[Any] | str] = field(default_factory=dict)
    submitted: set[tuple[str, str]] = field(default_factory=set)
    jobs: dict[int, str] = field(default_factory=dict)
    """By the number that the job writes."""


@dataclass(slots=True)
class Load:
    """One client: it does what it does in sessions of its own, until it is told to end."""

    number: int
    gateway: Process
    folder: Path
    ledger: Ledger
    chance: random.Random
    ending: threading.Event
    failures: list[str]
    _sessions: list[str] = field(default_factory=list)
    _count: int = 0

    def run(self) -> None:
        while not self.ending.is_set():
            self.gateway.up.wait(0.1)
            if not self.gateway.up.is_set():
                continue
            try:
                self._step()
            except _AWAY:
                time.sleep(0.02)
            except Exception as e:
                self.failures.append(f"client {self.number}: {type(e).__name__}: {e}"[:2000])
                return

    def _step(self) -> None:
        self._count += 1
        if len(self._sessions) < 3 or (self.chance.random() < 0.1 and len(self._sessions) < 8):
            handle = self.gateway.call("POST", "/sessions", {"properties": {"my.key": str(self.number)}})
            self._sessions.append(handle["sessionHandle"])
            self.ledger.tables[self._sessions[-1]] = set()
        session, n = self.chance.choice(self._sessions), self.number * 1_000_000 + self._count
        match self.chance.choices(("table", "query", "error", "job"), (3, 5, 1, 1))[0]:
            case "table":
                self._table(session, f"t{n}")
            case "query":
                self.statement(session, f"SELECT * FROM (VALUES ({n}, 'a'), ({n + 1}, 'b')) AS v(n, s)")
            case "error":
                self.statement(session, f"SELECT * FROM nosuch{n}", f"nosuch{n}")
            case "job":
                self._job(session, n)

    def _table(self, session: str, name: str) -> None:
        if self.statement(session, f"CREATE TABLE {name} (a INT) WITH ('connector'='datagen')"):
            self.ledger.tables[session].add(name)

    def _job(self, session: str, n: int) -> None:
        file = f"'connector'='filesystem', 'path'='{self.folder}/jobs/{n}', 'format'='csv'"
        if self.statement(session, f"CREATE TABLE s{n} (a INT) WITH ({file})"):
            self.ledger.tables[session].add(f"s{n}")
            rows = self.statement(session, f"INSERT INTO s{n} VALUES ({n})")
            if rows:
                self.ledger.jobs[n] = rows[0][0]

    def statement(self, session: str, sql: str, error: str = "") -> list[Any]:
        """Its rows, when it has ended and the ledger says so; ``error``: a part of the one it gives."""
        handle = self.gateway.call("POST", f"/sessions/{session}/statements", {"statement": sql})
        key = (session, handle["operationHandle"])
        self.ledger.submitted.add(key)
        try:
            rows = fetched(self.gateway, *key)
        except Refused as e:
            if error and error in str(e):
                self.ledger.finished[key] = error
            elif "was restarted" not in str(e):
                # A gateway that came back in between says that it has not run to its end.
                raise
            return []
        self.ledger.finished[key] = rows
        return rows


def fetched(gateway: Process, session: str, operation: str) -> list[Any]:
    """A whole result, from its first token on."""
    uri = f"/sessions/{session}/operations/{operation}/result/0?rowFormat=JSON"
    rows: list[Any] = []
    while True:
        page = gateway.call("GET", uri)
        if page["resultType"] == "EOS":
            return rows
        if page["resultType"] == "NOT_READY":
            time.sleep(0.02)
            continue
        rows += [row["fields"] for row in page["results"]["data"]]
        uri = page["nextResultUri"].partition("/v3")[2]


@dataclass(slots=True)
class Proof:
    folder: Path
    chance: random.Random
    ledger: Ledger = field(default_factory=Ledger)
    differences: list[str] = field(default_factory=list)
    _gateway: Process = field(init=False)
    _job: str = ""
    _session: str = ""
    _written: int = 0

    def __post_init__(self) -> None:
        self._gateway = Process(self.folder)

    def run(self, kills: int) -> None:
        ending = threading.Event()
        loads = [
            Load(
                n,
                self._gateway,
                self.folder,
                self.ledger,
                random.Random(self.chance.random()),
                ending,
                self.differences,
            )
            for n in range(1, CLIENTS + 1)
        ]
        threads = [threading.Thread(target=load.run, daemon=True) for load in loads]
        try:
            self._gateway.start()
            self._begin(loads[0])
            for thread in threads:
                thread.start()
            for number in range(kills):
                time.sleep(self.chance.uniform(0.2, 6.0))
                self._gateway.kill()
                self._gateway.start()
                self._check()
                _say(f"{number + 1} kills, {len(self.ledger.finished)} results, {len(self.differences)} bad")
            ending.set()
            for thread in threads:
                thread.join(_PATIENCE)
            self._end(loads[0])
        finally:
            ending.set()
            self._gateway.kill()

    def _begin(self, client: Load) -> None:
        """A job that never ends."""
        self._session = self._gateway.call("POST", "/sessions")["sessionHandle"]
        numbers = (
            "'connector'='datagen', 'rows-per-second'='200', 'fields.id.kind'='sequence', "
            "'fields.id.start'='1', 'fields.id.end'='1000000000'"
        )
        file = f"'connector'='filesystem', 'path'='{self.folder}/long', 'format'='csv'"
        client.statement(self._session, f"CREATE TABLE g (id INT) WITH ({numbers})")
        client.statement(self._session, f"CREATE TABLE f (id INT) WITH ({file})")
        ((self._job,),) = client.statement(self._session, "INSERT INTO f SELECT id FROM g")

    def _check(self) -> None:
        """What was acknowledged before the kill; clients go on meanwhile."""
        tables = {session: set(found) for session, found in list(self.ledger.tables.items())}
        finished = list(self.ledger.finished.items())[-_CHECKED:]
        for session, wanted in tables.items():
            key = self._gateway.call("GET", f"/sessions/{session}")["properties"].get("my.key")
            self._same(f"session {session}", key is not None, True)
            missing = wanted - {row[0] for row in self._ask(session, "SHOW TABLES")}
            self._same(f"tables of {session}", missing, set())
        for (session, operation), result in finished:
            try:
                found: Any = fetched(self._gateway, session, operation)
            except Refused as e:
                found = result if isinstance(result, str) and result in str(e) else str(e)
            self._same(f"operation {operation}", found, result)
        known = self.ledger.submitted.copy() - self.ledger.finished.copy().keys()
        for session, operation in sorted(known)[:_CHECKED]:
            path = f"/sessions/{session}/operations/{operation}/status"
            status = self._gateway.call("GET", path)["status"]
            self._same(f"status of {operation}", status in ("ERROR", "FINISHED", "RUNNING", "PENDING"), True)
        with_hive = Client.connected(self._gateway.hive)
        self._same("HiveServer2", with_hive.all("SELECT 1 AS n"), [(1,)])
        PLUGS.pop().close()
        self._grown()

    def _grown(self) -> None:
        """The endless job goes on."""
        until = time.monotonic() + _PATIENCE
        while (written := len(numbers_in(self.folder / "long"))) <= self._written:
            if time.monotonic() > until:
                self.differences.append(f"the job has stopped at {self._written}")
                return
            time.sleep(0.1)
        self._written = written

    def _end(self, client: Load) -> None:
        self._ask(self._session, f"STOP JOB '{self._job}'")
        found = numbers_in(self.folder / "long")
        self._same("the endless job", sorted(found) == list(range(1, len(found) + 1)), True)
        for number, job in self.ledger.jobs.items():
            until = time.monotonic() + _PATIENCE
            while (status := self._ask(self._session, f"DESCRIBE JOB '{job}'")[0][2]) == "RUNNING":
                assert time.monotonic() < until, job
                time.sleep(0.1)
            wrote = numbers_in(self.folder / "jobs" / str(number))
            self._same(f"job {job}", (status, wrote), ("FINISHED", [number]))

    def _ask(self, session: str, sql: str) -> list[Any]:
        handle = self._gateway.call("POST", f"/sessions/{session}/statements", {"statement": sql})
        rows = fetched(self._gateway, session, handle["operationHandle"])
        self._gateway.call("DELETE", f"/sessions/{session}/operations/{handle['operationHandle']}/close")
        return rows

    def _same(self, what: str, found: Any, wanted: Any) -> None:
        if found != wanted:
            self.differences.append(f"{what}: {found!r}, not {wanted!r}"[:2000])


def numbers_in(folder: Path) -> list[int]:
    return [int(line) for line in visible.lines(folder)]


def prove(folder: Path, kills: int, seed: int) -> Proof:
    proof = Proof(folder, random.Random(seed))
    proof.run(kills)
    return proof


def _say(text: str) -> None:
    sys.stderr.write(f"{time.strftime('%H:%M:%S')} {text}\n")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        proof = prove(Path(folder), given.kills, given.seed)
    ledger = proof.ledger
    done = {"kills": given.kills, "sessions": len(ledger.tables), "results": len(ledger.finished)}
    print(json.dumps({**done, "jobs": len(ledger.jobs), "differences": proof.differences}))
    return 1 if proof.differences else 0


if __name__ == "__main__":
    sys.exit(main())
