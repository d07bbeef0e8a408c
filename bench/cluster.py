"""Two one-core workers of a standalone cluster against ``local[2]``: python -m bench.cluster [ROUNDS]

The same join of changes and aggregation in both, by turns; rows of both sources a second, without the start
of Spark. The cluster's workers get the package from the driver and share nothing but the folder of the data.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.cluster.join_job import SCRIPT, write_changes
from tests.cluster.standalone import standalone
from tidemill.session.environment import TableEnvironment

CHANGES = 400_000
ROWS = 50_000
"""Of each source in an epoch."""

WARMING = (
    "CREATE TABLE nothing (n BIGINT) WITH ('connector' = 'blackhole')",
    "INSERT INTO nothing SELECT COUNT(*) FROM (VALUES 1, 2) AS t(n) GROUP BY n",
)


def main() -> None:
    if sys.argv[1:2] == ["--job"]:
        print(json.dumps(job(sys.argv[2], Path(sys.argv[3]), sys.argv[4])))
        return
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 3
    with tempfile.TemporaryDirectory(prefix="tidemill-bench-") as folder:
        place = Path(folder)
        write_changes(place, changes=CHANGES)
        with standalone(place / "cluster") as cluster:
            masters = {"local[2]": "local[2]", "two workers of one core": cluster.url}
            seconds: dict[str, list[float]] = {name: [] for name in masters}
            for turn in range(rounds):
                for name, master in masters.items():
                    seconds[name].append(measured(master, place, f"{turn}-{name[:3]}"))
                    print(f"{name}: {seconds[name][-1]:.1f} s", flush=True)
    report(seconds)


def report(seconds: dict[str, list[float]]) -> None:
    rates = {name: (CHANGES + CHANGES // 4) / statistics.median(times) for name, times in seconds.items()}
    for name, rate in rates.items():
        print(f"{name}: {rate:,.0f} rows/s")
    one, two = rates.values()
    print(f"ratio {two / one:.2f}")


def measured(master: str, place: Path, name: str) -> float:
    """Seconds of the job in a process of its own."""
    command = [sys.executable, "-m", "bench.cluster", "--job", master, str(place), name]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(done.stderr[-3000:])
    return float(json.loads(done.stdout.splitlines()[-1]))


def job(master: str, place: Path, name: str) -> float:
    environment = TableEnvironment.create(
        {
            "spark.master": master,
            "spark.cores.max": "2",
            "spark.executor.memory": "900m",
            "parallelism.default": "2",
            "tidemill.shared-filesystem": str(place),
            "tidemill.epoch.max-rows": str(ROWS),
            "execution.checkpointing.dir": str(place / f"checkpoint-{name}"),
        }
    )
    *tables, insert, _ = SCRIPT.format(place=place).replace("/totals'", f"/totals-{name}'").split(";\n")
    for table in tables:
        environment.execute_sql(table).wait()
    # Spark and its workers are up, and have done each step once.
    for statement in WARMING:
        environment.execute_sql(statement).wait()
    begun = time.perf_counter()
    environment.execute_sql(insert).wait()
    return time.perf_counter() - begun


if __name__ == "__main__":
    main()
