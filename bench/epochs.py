"""How long a small epoch takes: 100 epochs of 1,000 rows through two aggregations, and whether it grows.

``python -m bench.epochs [EPOCHS] [ROWS] [JOBS]``. The same job runs with an epoch as a Spark job of all
partitions or of one task, and in resident workers, in turn, with a checkpoint directory. Prints for each the
median and the 99th percentile, and the medians of the first and last tenth. The first epochs, which start
workers and compile, do not count.
With several JOBS these run at once, and only epochs count while all of them run: printed are the fastest and
the slowest median of a job, and the highest of their 99th percentiles.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
from pathlib import Path

from bench.data import KeyedRows
from tidemill.runtime.progress import EpochProgress
from tidemill.session.environment import TableEnvironment

WARM_UP = 10
ROUNDS = 2
WAYS = {
    "Spark jobs of all partitions": ("false", "0"),
    "Spark jobs of one task": ("false", "1mb"),
    "resident": ("true", "1mb"),
}
"""Whether epochs are resident, and how many bytes a small one reads."""
QUERY = (
    "INSERT INTO snk SELECT c, COUNT(*) FROM "
    "(SELECT MOD(k, 5000) AS kk, COUNT(*) AS c FROM src GROUP BY MOD(k, 5000)) GROUP BY c"
)


def main() -> None:
    epochs = int(sys.argv[1]) if len(sys.argv) > 1 else 100
    rows = int(sys.argv[2]) if len(sys.argv) > 2 else 1_000
    jobs = int(sys.argv[3]) if len(sys.argv) > 3 else 1
    data = KeyedRows(name="epochs", rows=(epochs + WARM_UP) * rows, keys=1_000_000)
    path = data.make(Path(tempfile.gettempdir()) / "tidemill-bench")
    environment = TableEnvironment.create({"tidemill.epoch.max-rows": str(rows)})
    environment.execute_sql(
        "CREATE TABLE src (k BIGINT, v BIGINT, w DOUBLE) "
        f"WITH ('connector' = 'filesystem', 'path' = '{path}', 'format' = 'csv')"
    )
    environment.execute_sql("CREATE TABLE snk (c BIGINT, n BIGINT) WITH ('connector' = 'blackhole')")
    for _ in range(ROUNDS):
        for name, (resident, small) in WAYS.items():
            environment.execute_sql(f"SET 'tidemill.epoch.resident' = '{resident}'")
            environment.execute_sql(f"SET 'tidemill.epoch.small-bytes' = '{small}'")
            found = _seconds(environment, jobs)
            if jobs == 1:
                _report(name, found[0], rows)
            else:
                _report_all(name, found, rows)


def _seconds(environment: TableEnvironment, jobs: int) -> list[list[float]]:
    """The seconds of each epoch of each job, without the first epochs, and while all jobs run."""
    seen: list[EpochProgress] = []
    environment.context.on_progress = seen.append
    with tempfile.TemporaryDirectory() as folder:
        running = []
        for number in range(jobs):
            environment.execute_sql(f"SET 'execution.checkpointing.dir' = '{folder}/{number}'")
            running.append(environment.execute_sql(QUERY))
        for result in running:
            result.wait()
    last = {p.job_id: place for place, p in enumerate(seen)}
    shared = seen[: min(last.values()) + 1]
    return [[p.seconds for p in shared if p.job_id == job][WARM_UP:] for job in last]


def _report_all(name: str, seconds: list[list[float]], rows: int) -> None:
    medians = [statistics.median(s) for s in seconds]
    highest = max(statistics.quantiles(s, n=100)[-1] for s in seconds)
    print(
        f"{name}: {len(seconds)} jobs at once, at least {min(map(len, seconds))} epochs of {rows:,} rows: "
        f"medians {min(medians):.3f} to {max(medians):.3f} s, "
        f"99th percentile at most {highest:.3f} s",
        flush=True,
    )


def _report(name: str, seconds: list[float], rows: int) -> None:
    tenth = max(1, len(seconds) // 10)
    print(
        f"{name}: {len(seconds)} epochs of {rows:,} rows: median {statistics.median(seconds):.3f} s, "
        f"99th percentile {statistics.quantiles(seconds, n=100)[-1]:.3f} s, "
        f"first tenth {statistics.median(seconds[:tenth]):.3f} s, "
        f"last tenth {statistics.median(seconds[-tenth:]):.3f} s",
        flush=True,
    )


if __name__ == "__main__":
    main()
