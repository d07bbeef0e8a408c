"""Two one-core workers of a standalone cluster against ``local[2]``: python -m bench.cluster [ROUNDS]

The same join of changes and aggregation in both, by turns. Each runs it several times in one application:
in the first run Java compiles what it runs, on the cluster in three processes, not in one; the last ones say
what a job that stays gets through. Rows of both sources a second, and seconds of processor time of all
processes, which say more on a machine that others use. The cluster's workers get the package from the driver
and share nothing but the folder of the data.
"""

from __future__ import annotations

import contextlib
import os
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from tests.cluster.join_job import SCRIPT, write_changes
from tests.cluster.standalone import standalone
from tidemill.session.environment import TableEnvironment

CHANGES = 4_000_000
ROWS = 1_000_000
"""Of each source in an epoch."""

MARK = "now"
RUNS = 7
WARM = 3
"""Of the runs, those at the end whose median counts."""
WARMING = (
    "CREATE TABLE nothing (n BIGINT) WITH ('connector' = 'blackhole')",
    "INSERT INTO nothing SELECT COUNT(*) FROM (VALUES 1, 2) AS t(n) GROUP BY n",
)


@dataclass(frozen=True, slots=True)
class Measured:
    seconds: float
    processor: float


def main() -> None:
    if sys.argv[1:2] == ["--job"]:
        job(sys.argv[2], Path(sys.argv[3]), sys.argv[4])
        return
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 2
    with tempfile.TemporaryDirectory(prefix="tidemill-bench-") as folder:
        place = Path(folder)
        write_changes(place, changes=CHANGES)
        with standalone(place / "cluster") as cluster:
            masters = {"local[2]": "local[2]", "two workers of one core": cluster.url}
            seconds: dict[str, list[list[Measured]]] = {name: [] for name in masters}
            for number in range(rounds):
                for name, master in masters.items():
                    seconds[name].append(measured(master, place, f"{number}-{name[:3]}"))
                    print(f"{name}: {seconds[name][-1]}", flush=True)
    report(seconds)


def report(found: dict[str, list[list[Measured]]]) -> None:
    print_ratio("first run", {name: [runs[0] for runs in rounds] for name, rounds in found.items()})
    print_ratio(
        "warm", {name: [m for runs in rounds for m in runs[-WARM:]] for name, rounds in found.items()}
    )


def print_ratio(which: str, found: dict[str, list[Measured]]) -> None:
    """Medians of both masters, and how much of the first one's throughput the second has."""
    rows = CHANGES + CHANGES // 4
    walls = [statistics.median(m.seconds for m in each) for each in found.values()]
    processors = [statistics.median(m.processor for m in each) for each in found.values()]
    for name, wall, processor in zip(found, walls, processors, strict=True):
        print(f"{which}, {name}: {rows / wall:,.0f} rows/s, {processor:.1f} s of processor time")
    (one, two), (less, more) = walls, processors
    print(f"{which}: ratio {one / two:.2f}, of processor time {less / more:.2f}")


def measured(master: str, place: Path, name: str) -> list[Measured]:
    """The runs of the job in a process of its own, which says when each begins and ends."""
    command = [sys.executable, "-m", "bench.cluster", "--job", master, str(place), name]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None
        times = []
        for line in running.stdout:
            if line.startswith(MARK):
                times.append((time.perf_counter(), processor_seconds(os.getpid())))
    if running.returncode:
        raise RuntimeError(f"the job ended with status {running.returncode}")
    return [
        Measured(ended - begun, after - before)
        for (begun, before), (ended, after) in zip(times[::2], times[1::2], strict=True)
    ]


def processor_seconds(root: int) -> float:
    """Of a process and all below it, those that have ended among them."""
    parents, spent = {}, {}
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            fields = (entry / "stat").read_text().rpartition(")")[2].split()
            parents[int(entry.name)] = int(fields[1])
            spent[int(entry.name)] = sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")
    below = {root}
    while more := {pid for pid, parent in parents.items() if parent in below} - below:
        below |= more
    return sum(spent.get(pid, 0.0) for pid in below)


def job(master: str, place: Path, name: str) -> None:
    for run in range(RUNS):
        environment = TableEnvironment.create(
            {
                "spark.master": master,
                "spark.cores.max": "2",
                "spark.executor.memory": "900m",
                "parallelism.default": "2",
                "tidemill.shared-filesystem": str(place),
                "tidemill.epoch.max-rows": str(ROWS),
                "execution.checkpointing.dir": str(place / f"checkpoint-{name}-{run}"),
            }
        )
        script = SCRIPT.format(place=place).replace("/totals'", f"/totals-{name}-{run}'")
        *tables, insert, _ = script.split(";\n")
        for table in tables:
            environment.execute_sql(table).wait()
        # Spark and its workers are up.
        for statement in WARMING:
            environment.execute_sql(statement).wait()
        print(MARK, flush=True)
        environment.execute_sql(insert).wait()
        print(MARK, flush=True)


if __name__ == "__main__":
    main()
