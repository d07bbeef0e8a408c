"""Gateways beside each other: light statements, alone and beside jobs, sessions, long results.

``python -m bench.gateway NAME=URL [NAME=URL...] [--part statements|jobs|sessions|rows] [--jobs N]
[--sessions N] [--rows N]`` asks each gateway in turn, by Flink's REST protocol, and prints Markdown tables. A
statement's time is from its submission to the last page of its result, asked for every 2 ms. Of a gateway on
this machine ``NAME=URL@PID`` also says what memory its processes take.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pyarrow as pa

from tests.runtime.processes import children

CLIENTS = 16
SESSIONS, STATEMENTS = 100, 1_000
_POLL = 0.002
_PATIENCE = 60
_JSON = "application/json"
_ARROW = "application/vnd.apache.arrow.stream"
Json = dict[str, Any]
Gateways = dict[str, tuple[str, int]]
"""Addresses and processes (0: unknown) by name."""

TABLE = "CREATE TABLE t (id INT, name STRING, made TIMESTAMP(3)) WITH ('connector'='datagen')"
LIGHT = {
    "SHOW TABLES": "SHOW TABLES",
    "DESCRIBE": "DESCRIBE t",
    "SHOW CREATE TABLE": "SHOW CREATE TABLE t",
    "SET": "SET 'pipeline.name' = 'x'",
    "EXPLAIN": "EXPLAIN SELECT name, COUNT(*) AS n FROM t WHERE id > 3 GROUP BY name",
    "VALUES": "SELECT * FROM (VALUES (1, 'a'), (2, 'b')) AS v(n, s)",
}


@dataclass
class Client:
    """One connection, kept open."""

    url: str
    _connection: http.client.HTTPConnection = field(init=False)

    def __post_init__(self) -> None:
        parts = urlsplit(self.url)
        self._connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=600)

    def ask(self, method: str, path: str, body: Json | None = None, accept: str = _JSON) -> Any:
        headers = {"Content-Type": _JSON, "Accept": accept}
        self._connection.request(method, f"/v3{path}", json.dumps(body or {}), headers)
        answer = self._connection.getresponse()
        data = answer.read()
        if answer.status != 200:
            raise RuntimeError(f"{method} {path}: {data[-2000:]!r}")
        return json.loads(data) if answer.headers["Content-Type"].startswith(_JSON) else (answer, data)

    def open(self) -> str:
        handle: str = self.ask("POST", "/sessions", {"properties": {"parallelism.default": "1"}})[
            "sessionHandle"
        ]
        return handle

    def run(self, session: str, sql: str) -> None:
        self.rows(session, sql)

    def rows(self, session: str, sql: str) -> list[Any]:
        """Of a statement, whose operation is closed then."""
        found: list[Any] = []
        operation = self.ask("POST", f"/sessions/{session}/statements", {"statement": sql})["operationHandle"]
        path = f"/sessions/{session}/operations/{operation}"
        uri = f"{path}/result/0?rowFormat=JSON"
        while True:
            page = self.ask("GET", uri)
            if page["resultType"] == "EOS":
                break
            data = page["results"]["data"] if page["resultType"] != "NOT_READY" else ()
            found += (row["fields"] for row in data)
            if not data:
                time.sleep(_POLL)
            uri = page.get("nextResultUri", uri).removeprefix("/v3")
        self.ask("DELETE", f"{path}/close")
        return found


JOB = """CREATE TABLE counts (n INT, c BIGINT) WITH ('connector'='blackhole')"""
SOURCE = """CREATE TABLE events (n INT) WITH ('connector'='datagen', 'rows-per-second'='100',
 'fields.n.min'='1', 'fields.n.max'='50')"""
INSERT = "INSERT INTO counts SELECT n, COUNT(*) FROM events GROUP BY n"


def statements(url: str, most: int = STATEMENTS) -> dict[str, list[float]]:
    """Seconds of each light statement, by kind, of sessions that many clients share between them."""
    times: dict[str, list[float]] = defaultdict(list)
    lock = threading.Lock()
    kinds = list(LIGHT)

    def work(number: int) -> None:
        client = Client(url)
        sessions = [client.open() for _ in range(number, SESSIONS, CLIENTS)]
        for session in sessions:
            client.run(session, TABLE)
        everybody.wait()
        for n in range(number, most, CLIENTS):
            kind = kinds[n % len(kinds)]
            begun = time.perf_counter()
            client.run(sessions[n % len(sessions)], LIGHT[kind])
            with lock:
                times[kind].append(time.perf_counter() - begun)
        for session in sessions:
            client.ask("DELETE", f"/sessions/{session}")

    everybody = threading.Barrier(CLIENTS, timeout=_PATIENCE)
    _together(work, CLIENTS)
    return times


@contextmanager
def jobs(url: str, count: int) -> Iterator[Callable[[], list[str]]]:
    """As many streaming jobs, each of a session of its own; gives the statuses of all that there are."""
    client = Client(url)
    sessions = [client.open() for _ in range(count)]
    for session in sessions:
        for sql in (JOB, SOURCE, "SET 'table.exec.mini-batch.allow-latency' = '1 s'", INSERT):
            client.run(session, sql)
    try:
        yield lambda: [row[2] for row in client.rows(sessions[0], "SHOW JOBS")]
    finally:
        for row in client.rows(sessions[0], "SHOW JOBS"):
            if row[2] == "RUNNING":
                client.run(sessions[0], f"STOP JOB '{row[0]}'")


def openings(url: str, count: int) -> float:
    """Seconds to open and close ``count`` sessions with a statement in each, by four clients."""

    def work(number: int) -> None:
        client = Client(url)
        for _ in range(number, count, 4):
            session = client.open()
            client.run(session, "SHOW CATALOGS")
            client.ask("DELETE", f"/sessions/{session}")

    with _timed() as seconds:
        _together(work, 4)
    return seconds()


def _together(work: Callable[[int], None], count: int) -> None:
    """Calls of ``work`` side by side; raises what one raises."""
    with ThreadPoolExecutor(count) as pool:
        list(pool.map(work, range(count)))


def rows(url: str, accept: str, wanted: int) -> float:
    """Seconds to fetch as many rows, from the first page on."""
    client = Client(url)
    session = client.open()
    client.run(session, "SET 'execution.runtime-mode' = 'batch'")
    client.run(
        session,
        "CREATE TABLE numbers (id BIGINT, name AS CAST(id AS STRING)) WITH ('connector'='datagen', "
        f"'fields.id.kind'='sequence', 'fields.id.start'='1', 'fields.id.end'='{wanted}', "
        f"'rows-per-second'='100000000', 'number-of-rows'='{wanted}')",
    )
    sql = {"statement": "SELECT id, name FROM numbers"}
    operation = client.ask("POST", f"/sessions/{session}/statements", sql)["operationHandle"]
    uri = f"/sessions/{session}/operations/{operation}/result/0?rowFormat=JSON"
    begun, got = 0.0, 0
    while True:
        page = client.ask("GET", uri, accept=accept)
        kind, uri, count = _arrow(page) if accept == _ARROW and isinstance(page, tuple) else _json(page, uri)
        got += count
        if kind == "EOS":
            break
        if not count:
            time.sleep(_POLL)
        elif not begun:
            begun = time.perf_counter()
    seconds = time.perf_counter() - begun
    if got != wanted:
        raise SystemExit(f"{got} rows came, not {wanted}")
    client.ask("DELETE", f"/sessions/{session}")
    return seconds


def _json(page: Json, uri: str) -> tuple[str, str, int]:
    following = page.get("nextResultUri", uri).removeprefix("/v3")
    return page["resultType"], following, len(page.get("results", {}).get("data", ()))


def _arrow(page: tuple[http.client.HTTPResponse, bytes]) -> tuple[str, str, int]:
    answer, data = page
    with pa.ipc.open_stream(data) as stream:
        count = stream.read_all().num_rows
    following = (answer.headers.get("X-Next-Result-Uri") or "").removeprefix("/v3")
    return answer.headers["X-Result-Type"], following, count


@contextmanager
def _timed() -> Iterator[Callable[[], float]]:
    begun = time.perf_counter()
    yield lambda: time.perf_counter() - begun


def memory(pid: int) -> int:
    """Bytes of its processes."""
    found = 0
    for each in (pid, *children(pid)):
        status = Path(f"/proc/{each}/status").read_text()
        found += sum(int(line.split()[1]) << 10 for line in status.splitlines() if line.startswith("VmRSS"))
    return found


def processor_seconds(pid: int) -> float:
    """What its processes have taken of processors so far; 0 where it is unknown."""
    ticks = 0
    for each in (pid, *children(pid)) if pid else ():
        parts = Path(f"/proc/{each}/stat").read_text().rpartition(")")[2].split()
        ticks += int(parts[11]) + int(parts[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def _quantile(times: list[float], part: float) -> str:
    return f"{sorted(times)[min(len(times) - 1, int(part * len(times)))] * 1000:,.0f}"


def show_statements(gateways: Gateways, given: argparse.Namespace) -> None:
    print(f"{STATEMENTS} statements of {SESSIONS} sessions, {CLIENTS} clients, ms\n")
    print("| | gateway | p50 | p99 |\n|---|---|---|---|")
    for name, (url, pid) in gateways.items():
        statements(url)
        before = processor_seconds(pid)
        _show_times(name, statements(url))
        taken = (processor_seconds(pid) - before) / STATEMENTS * 1000
        print(f"| ms of processors for each | {name} | {taken:.1f} | |", flush=True)


def show_jobs(gateways: Gateways, given: argparse.Namespace) -> None:
    print(f"\nThe same, {STATEMENTS // 4} statements, beside {given.jobs} streaming jobs, ms\n")
    print("| | gateway | p50 | p99 |\n|---|---|---|---|")
    for name, (url, _) in gateways.items():
        with jobs(url, given.jobs) as status:
            _show_times(name, statements(url, STATEMENTS // 4))
            running = status().count("RUNNING")
            if running != given.jobs:
                raise SystemExit(f"{running} jobs run, not {given.jobs}")


def _show_times(name: str, times: dict[str, list[float]]) -> None:
    for kind, found in {"all": [t for of_kind in times.values() for t in of_kind], **times}.items():
        print(f"| {kind} | {name} | {_quantile(found, 0.5)} | {_quantile(found, 0.99)} |", flush=True)


def show_sessions(gateways: Gateways, given: argparse.Namespace) -> None:
    print(f"\n{given.sessions} sessions opened and closed\n")
    print("| gateway | a second | MB before | MB after |\n|---|---|---|---|")
    for name, (url, pid) in gateways.items():
        openings(url, given.sessions // 10)
        before = memory(pid) if pid else 0
        rate = given.sessions / openings(url, given.sessions)
        after = memory(pid) if pid else 0
        print(f"| {name} | {rate:,.0f} | {before >> 20:,} | {after >> 20:,} |", flush=True)


def show_rows(gateways: Gateways, given: argparse.Namespace) -> None:
    print(f"\n{given.rows:,} rows fetched\n\n| gateway | format | rows/s |\n|---|---|---|")
    for name, (url, _) in gateways.items():
        for shown, accept in (("JSON", _JSON), *((("Arrow", _ARROW),) if name != "flink" else ())):
            print(f"| {name} | {shown} | {given.rows / rows(url, accept, given.rows):,.0f} |", flush=True)


PARTS = {"statements": show_statements, "jobs": show_jobs, "sessions": show_sessions, "rows": show_rows}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("gateways", nargs="+", metavar="NAME=URL[@PID]")
    parser.add_argument("--part", choices=PARTS, action="append")
    parser.add_argument("--jobs", type=int, default=10)
    parser.add_argument("--sessions", type=int, default=10_000)
    parser.add_argument("--rows", type=int, default=10_000_000)
    given = parser.parse_args()
    gateways: Gateways = {}
    for text in given.gateways:
        name, _, address = text.partition("=")
        url, _, pid = address.partition("@")
        gateways[name] = (url, int(pid or 0))
    for part in given.part or PARTS:
        PARTS[part](gateways, given)


if __name__ == "__main__":
    main()
