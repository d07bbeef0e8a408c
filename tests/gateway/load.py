"""The load proof: a gateway under many sessions, jobs and a long result keeps nothing of them.

``python -m tests.gateway.load --sessions 10000 --rows 10000000`` starts a gateway, opens and closes sessions
with statements in them, some with a query that is given up, has a hundred of them at work at once, runs ten
streaming jobs side by side, and reads a long result page by page. Looked at are the gateway's own process and
Spark's: threads, open files, memory; the rows of the store and the files of its directory. Exit status 1
where something stayed, or one job kept another from its epochs.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sqlite3
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from tests.gateway.kills import Process
from tests.runtime.processes import children

CLIENTS = 4
_PATIENCE = 120.0
_SLACK = {"threads": 16, "files": 16, "spark_files": 100, "store": 0, "results": 0}
"""How much more than before is nothing, of far more sessions: idle workers, connections to the store and to
Spark that are kept for the next statement, what Spark opens as it likes."""
_KEPT = 4096
"""Bytes of memory more per session that are nothing, once there have been many."""
_ANSWER = 512 << 20
"""Bytes of memory that a long result may take while it is read."""
_MANY = 5_000
_UNFAIR = 4
"""Of jobs that do the same none has so many times the epochs of another."""
Json = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """What a gateway holds on to."""

    threads: int
    files: int
    spark_files: int
    store: int
    results: int
    memory: int


@dataclass(slots=True)
class Load:
    gateway: Process
    folder: Path
    found: dict[str, Any] = field(default_factory=dict)
    differences: list[str] = field(default_factory=list)

    def run(self, sessions: int, rows: int, together: int, jobs: int) -> None:
        self._cycles(CLIENTS * 10)
        before = self.held()
        self._cycles(sessions)
        after = self._settled(before)
        self.found |= {"sessions": sessions, "before": asdict(before), "after": asdict(after)}
        self._compare(before, after, sessions)
        self._together(together)
        self._jobs(jobs)
        self._long_result(rows)
        self.found["differences"] = self.differences

    def _compare(self, before: Held, after: Held, sessions: int) -> None:
        for name, slack in _SLACK.items():
            old, new = getattr(before, name), getattr(after, name)
            if new > old + slack:
                self.differences.append(f"{name}: {old} before {sessions} sessions, {new} after")
        grown = after.memory - before.memory
        if sessions >= _MANY and grown > sessions * _KEPT:
            self.differences.append(f"memory: {grown:,} bytes more after {sessions} sessions")

    def _settled(self, before: Held) -> Held:
        """What is held when it is no more than before, or after a while: closing goes on behind an answer."""
        end = time.monotonic() + 20
        held = self.held()
        while (held.threads, held.files) > (before.threads, before.files) and time.monotonic() < end:
            time.sleep(0.5)
            held = self.held()
        return held

    # -- sessions one after the other

    def _cycles(self, count: int) -> None:
        def work(first: int) -> None:
            for number in range(first, count, CLIENTS):
                self._cycle(number)

        with ThreadPoolExecutor(CLIENTS) as pool:
            list(pool.map(work, range(CLIENTS)))

    def _cycle(self, number: int) -> None:
        session = self.open()
        try:
            self.rows(session, "CREATE TABLE t (a INT) WITH ('connector'='datagen')")
            self.expect(self.rows(session, "SHOW TABLES"), [["t"]])
            if number % 20 == 0:
                self.expect(self.rows(session, "SELECT * FROM (VALUES (1, 'x'))"), [[1, "x"]])
            if number % 100 == 1:
                self.submit(session, "SELECT * FROM t")
        finally:
            self.gateway.call("DELETE", f"/sessions/{session}")

    # -- at once

    def _together(self, count: int) -> None:
        everybody = threading.Barrier(count)

        def work(number: int) -> None:
            session = self.open()
            everybody.wait(_PATIENCE)
            self.rows(session, f"CREATE TEMPORARY VIEW v AS SELECT {number} AS n")
            self.expect(self.rows(session, "SELECT n + 1 FROM v"), [[number + 1]])
            self.expect(self.rows(session, "SHOW VIEWS"), [["v"]])
            self.gateway.call("DELETE", f"/sessions/{session}")

        begun = time.monotonic()
        with ThreadPoolExecutor(count) as pool:
            list(pool.map(work, range(count)))
        self.found["together"] = {"sessions": count, "seconds": round(time.monotonic() - begun, 1)}

    # -- streaming jobs side by side

    def _jobs(self, count: int) -> None:
        """None keeps another from its epochs, nor a short statement from its answer."""
        session = self.open()
        self.rows(session, "CREATE TABLE counts (n INT, c BIGINT) WITH ('connector'='blackhole')")
        self.rows(
            session,
            "CREATE TABLE events (n INT) WITH ('connector'='datagen', 'rows-per-second'='100', "
            "'fields.n.min'='1', 'fields.n.max'='50')",
        )
        self.rows(session, "SET 'table.exec.mini-batch.allow-latency' = '1 s'")
        insert = "INSERT INTO counts SELECT n, COUNT(*) FROM events GROUP BY n"
        jobs = [self.rows(session, insert)[0][0] for _ in range(count)]
        begun = self._epochs(jobs, dict.fromkeys(jobs, 0), least=2)
        since = time.monotonic()
        after = self._epochs(jobs, begun, least=5)
        seconds = time.monotonic() - since
        made = sorted(after[job] - begun[job] for job in jobs)
        self.found["jobs"] = {"jobs": count, "epochs": made, "seconds": round(seconds, 1)}
        if made[0] * _UNFAIR < made[-1]:
            self.differences.append(f"of {count} jobs side by side one had {made[0]} epochs, one {made[-1]}")
        running = [row[0] for row in self.rows(session, "SHOW JOBS") if row[2] == "RUNNING"]
        self.expect(sorted(running), sorted(jobs))
        for job in jobs:
            self.rows(session, f"STOP JOB '{job}'")
        self.gateway.call("DELETE", f"/sessions/{session}")

    def _epochs(self, jobs: list[str], before: dict[str, int], *, least: int) -> dict[str, int]:
        """How many each has had by now, once each has had so many more."""
        end = time.monotonic() + _PATIENCE
        while time.monotonic() < end:
            counted = self.gateway.counted("tidemill_job_epochs_total")
            now = {job: int(counted.get(job, 0)) for job in jobs}
            if all(now[job] - before[job] >= least for job in jobs):
                return now
            time.sleep(0.2)
        raise TimeoutError(f"epochs of jobs: {before}, then {now}")

    # -- a long result

    def _long_result(self, rows: int) -> None:
        session = self.open()
        self.rows(session, "SET 'execution.runtime-mode' = 'batch'")
        self.rows(
            session,
            "CREATE TABLE numbers (id BIGINT, name AS CAST(id AS STRING)) WITH ('connector'='datagen', "
            f"'fields.id.kind'='sequence', 'fields.id.start'='1', 'fields.id.end'='{rows}')",
        )
        operation = self.submit(session, "SELECT id, name FROM numbers")
        before = most = self.held().memory
        count = total = 0
        begun = time.monotonic()
        for page in self.pages(session, operation):
            count += len(page)
            total += sum(int(row[0]) for row in page)
            most = max(most, anonymous(self.gateway.pid))
        self.found["result"] = {
            "rows": count,
            "rows/s": round(count / (time.monotonic() - begun)),
            "MB more": (most - before) >> 20,
        }
        if (count, total) != (rows, rows * (rows + 1) // 2):
            self.differences.append(f"{count} rows came with a sum of {total}, not {rows}")
        if most - before > _ANSWER:
            self.differences.append(f"a result of {rows} rows took {(most - before) >> 20} MB")
        self.gateway.call("DELETE", f"/sessions/{session}")

    # -- asking

    def open(self) -> str:
        handle: str = self.gateway.call("POST", "/sessions")["sessionHandle"]
        return handle

    def submit(self, session: str, sql: str) -> str:
        found = self.gateway.call("POST", f"/sessions/{session}/statements", {"statement": sql})
        handle: str = found["operationHandle"]
        return handle

    def rows(self, session: str, sql: str) -> list[list[Any]]:
        """All rows of a statement, whose operation is closed then."""
        operation = self.submit(session, sql)
        found = [row for page in self.pages(session, operation) for row in page]
        self.gateway.call("DELETE", f"/sessions/{session}/operations/{operation}/close")
        return found

    def pages(self, session: str, operation: str) -> Iterator[list[list[Any]]]:
        token, end = 0, time.monotonic() + _PATIENCE
        while time.monotonic() < end:
            path = f"/sessions/{session}/operations/{operation}/result/{token}?rowFormat=JSON"
            page = self.gateway.call("GET", path)
            if page["resultType"] == "EOS":
                return
            if page["resultType"] == "NOT_READY":
                time.sleep(0.02)
                continue
            token = int(re.findall(r"/result/(\d+)", page["nextResultUri"])[0])
            data = page["results"]["data"]
            if data:
                end = time.monotonic() + _PATIENCE
                yield [row["fields"] for row in data]
            else:
                time.sleep(0.02)
        raise TimeoutError(operation)

    def expect(self, found: object, wanted: object) -> None:
        if found != wanted:
            self.differences.append(f"{found} came, not {wanted}")

    # -- looking

    def held(self) -> Held:
        pid = self.gateway.pid
        directory = self.folder / "gateway"
        return Held(
            threads=number_of(pid, "Threads"),
            files=open_files(pid),
            spark_files=sum(map(open_files, children(pid))),
            store=store_rows(directory),
            results=sum(len(names) for _, _, names in os.walk(directory / "results")),
            memory=anonymous(pid),
        )


def store_rows(directory: Path) -> int:
    tables = ("tidemill_sessions", "tidemill_operations")
    with closing(sqlite3.connect(directory / "store" / "gateway.db")) as store:
        return sum(store.execute(f"SELECT COUNT(*) FROM {table}").fetchone()[0] for table in tables)


def open_files(pid: int) -> int:
    return len(list(Path(f"/proc/{pid}/fd").iterdir()))


def anonymous(pid: int) -> int:
    """Bytes of memory of its own: not of files that are mapped."""
    return number_of(pid, "RssAnon") << 10


def number_of(pid: int, name: str) -> int:
    status = Path(f"/proc/{pid}/status").read_text()
    return int(re.findall(rf"^{name}:\s+(\d+)", status, re.MULTILINE)[0])


def prove(folder: Path, *, sessions: int, rows: int, together: int, jobs: int = 10) -> Load:
    gateway = Process(folder)
    load = Load(gateway, folder)
    gateway.start()
    try:
        load.run(sessions, rows, together, jobs)
    finally:
        gateway.kill()
    return load


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sessions", type=int, default=10_000)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--together", type=int, default=100)
    parser.add_argument("--jobs", type=int, default=10)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        load = prove(
            Path(folder), sessions=given.sessions, rows=given.rows, together=given.together, jobs=given.jobs
        )
    print(json.dumps(load.found, indent=2))
    return 1 if load.differences else 0


if __name__ == "__main__":
    sys.exit(main())
