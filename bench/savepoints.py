"""Savepoints of a job with many keys, and how soon another job goes on from them.

``python -m bench.savepoints NAME=URL@PID [...] [--rows N] [--set KEY=VALUE ...]`` asks gateways of this
machine in turn, by Flink's REST protocol. The standard output of process PID has the rows of the connector
``print``, and goes to a file. Each gateway runs one GROUP BY over N keys of CSV files, stops it with a
savepoint, and starts it from there. Prints a Markdown table: seconds until all keys are in the state,
seconds of STOP JOB WITH SAVEPOINT, bytes of the savepoint, and seconds from the next INSERT to the first row
that needs the old state.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from bench.gateway import Client
from bench.memory import processor_seconds

FILES = 8
LARGE = 1_000_000_000
QUIET_SECONDS, QUIET_TIMES, QUIET = 2.0, 3, 0.3
"""A gateway is quiet if it took less than this part of a core, so often for so long."""
PATIENCE = 1_200
QUERY = f"""INSERT INTO shown SELECT k, s, n FROM
 (SELECT k, SUM(v) AS s, COUNT(*) AS n FROM t GROUP BY k) WHERE s >= {LARGE}"""


@dataclass(frozen=True, slots=True)
class Row:
    """Seconds, and bytes of the savepoint."""

    fill: float
    stop: float
    bytes: int
    resume: float


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("gateways", nargs="+", metavar="NAME=URL@PID")
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    parsed = parser.parse_args()
    options = dict(option.split("=", 1) for option in parsed.set)
    print("| gateway | keys | fill s | stop with savepoint s | savepoint MB | resume s |")
    print("|---|---|---|---|---|---|")
    for gateway in parsed.gateways:
        name, _, place = gateway.partition("=")
        url, _, process = place.rpartition("@")
        with tempfile.TemporaryDirectory() as folder:
            row = measured(url, int(process), Path(folder), parsed.rows, options)
        print(
            f"| {name} | {parsed.rows} | {row.fill:.1f} | {row.stop:.2f} | {row.bytes / 1e6:.0f} "
            f"| {row.resume:.2f} |",
            flush=True,
        )


def measured(url: str, process: int, folder: Path, keys: int, options: dict[str, str]) -> Row:
    client, log = Client(url), Path(os.readlink(f"/proc/{process}/fd/1"))
    first, second = f"U[1, {LARGE + 1}, 2]", f"U[2, {LARGE + 2}, 2]"
    before = [log.read_text(errors="replace").count(row) for row in (first, second)]
    (folder / "in").mkdir()
    for number, text in enumerate(_texts(keys)):
        _put(folder, f"rows{number}", text)
    session = _session(client, folder, options)
    begun = time.perf_counter()
    client.run(session, QUERY)
    _quiet(process)
    fill = time.perf_counter() - begun - QUIET_TIMES * QUIET_SECONDS
    _put(folder, "marker1", f"1,{LARGE}\n")
    _shown(log, first, before[0])
    ((job, *_),) = (row for row in client.rows(session, "SHOW JOBS") if row[2] == "RUNNING")
    begun = time.perf_counter()
    ((savepoint,),) = client.rows(session, f"STOP JOB '{job}' WITH SAVEPOINT")
    stop = time.perf_counter() - begun
    place = Path(savepoint.removeprefix("file:"))
    size = sum(path.stat().st_size for path in place.rglob("*") if path.is_file())
    _put(folder, "marker2", f"2,{LARGE}\n")
    client.run(session, f"SET 'execution.state-recovery.path' = '{savepoint}'")
    begun = time.perf_counter()
    client.run(session, QUERY)
    _shown(log, second, before[1])
    resume = time.perf_counter() - begun
    ((job, *_),) = (row for row in client.rows(session, "SHOW JOBS") if row[2] == "RUNNING")
    client.run(session, f"STOP JOB '{job}'")
    return Row(fill, stop, size, resume)


def _texts(keys: int) -> Iterator[str]:
    """The files' contents: each key once, with its number as value."""
    for number in range(FILES):
        yield "".join(f"{key},{key}\n" for key in range(1 + number, keys + 1, FILES))


def _put(folder: Path, name: str, text: str) -> None:
    (folder / f".{name}").write_text(text)
    (folder / f".{name}").rename(folder / "in" / f"{name}.csv")


def _session(client: Client, folder: Path, options: dict[str, str]) -> str:
    properties = {
        "parallelism.default": "2",
        "execution.checkpointing.dir": f"file://{folder}/checkpoints",
        "execution.checkpointing.savepoint-dir": f"file://{folder}/savepoints",
        **options,
    }
    session: str = client.ask("POST", "/sessions", {"properties": properties})["sessionHandle"]
    client.run(
        session,
        f"CREATE TABLE t (k BIGINT, v BIGINT) WITH ('connector'='filesystem', 'path'='{folder}/in', "
        "'format'='csv', 'source.monitor-interval'='100 ms')",
    )
    client.run(session, "CREATE TABLE shown (k BIGINT, s BIGINT, n BIGINT) WITH ('connector'='print')")
    return session


def _quiet(process: int) -> None:
    """Waits until the gateway has nothing to do."""
    end, used, times = time.monotonic() + PATIENCE, processor_seconds(process), 0
    while time.monotonic() < end:
        time.sleep(QUIET_SECONDS)
        now = processor_seconds(process)
        times = times + 1 if now - used < QUIET * QUIET_SECONDS else 0
        if times == QUIET_TIMES:
            return
        used = now
    raise SystemExit("The job does not come to rest.")


def _shown(log: Path, row: str, before: int) -> None:
    """Waits until the row is in the log, after so many ``before`` it."""
    end = time.monotonic() + PATIENCE
    while log.read_text(errors="replace").count(row) <= before:
        if time.monotonic() > end:
            raise SystemExit(f"The row {row} was not printed to {log}.")
        time.sleep(0.02)


if __name__ == "__main__":
    main()
