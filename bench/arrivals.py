"""How long rows take from the appearance of their file to the commit of the sink, and what waiting costs.

``python -m bench.arrivals [FILES]``. A job watches a folder, and groups the 1,000 rows of each new file into
a file sink. A file appears at a random moment after the commit of the one before. The same job runs with an
epoch as a Spark job and in resident workers, in turn, with a checkpoint directory. Prints for each the
median, the 95th and the 99th percentile. A part of them is that the job looks for new files every 100 ms.

Then the processor time of a job without input, as a share of a core: as Spark jobs, and with resident workers
that wait, and that have given their slots back.
"""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
import threading
import time
from pathlib import Path
from random import Random
from unittest.mock import patch

from bench.memory import processor_seconds
from tidemill.runtime.progress import EpochProgress
from tidemill.runtime.spark.resident import workers
from tidemill.session.environment import TableEnvironment

WARM_UP = 10
ROWS = 1_000
KEYS = 5_000
LONGEST_PAUSE = 0.3
"""Seconds between a commit and the next file."""
IDLE_SECONDS = 20.0
ROUNDS = 2
_PATIENCE = 120.0


def main() -> None:
    files = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    environment = TableEnvironment.create({"table.exec.mini-batch.allow-latency": "0 ms"})
    for _ in range(ROUNDS):
        for resident in (False, True):
            name = "resident" if resident else "Spark jobs"
            with tempfile.TemporaryDirectory() as folder, _Job(environment, Path(folder), resident) as job:
                _report(name, [job.seconds() for _ in range(WARM_UP + files)][WARM_UP:])
    for name, resident, end in (
        ("Spark jobs", False, 0.0),
        ("resident workers that wait", True, 600.0),
        ("resident workers that have ended", True, 0.0),
    ):
        with (
            tempfile.TemporaryDirectory() as folder,
            patch.object(workers, "IDLE_SECONDS", end),
            _Job(environment, Path(folder), resident) as job,
        ):
            for _ in range(WARM_UP):
                job.seconds()
            print(f"no input, {name}: {job.idle_share():.1%} of a core", flush=True)


class _Job:
    """A job that waits for files in ``folder/in``."""

    def __init__(self, environment: TableEnvironment, folder: Path, resident: bool) -> None:
        self._folder = folder
        self._committed = threading.Semaphore(0)
        self._chance = Random(7)
        self._files = 0
        (folder / "in").mkdir()
        environment.context.on_progress = self._heard
        for statement in (
            f"SET 'tidemill.epoch.resident' = '{str(resident).lower()}'",
            f"SET 'execution.checkpointing.dir' = '{folder}/checkpoint'",
            "DROP TABLE IF EXISTS src",
            "DROP TABLE IF EXISTS snk",
            f"CREATE TABLE src (k BIGINT, v BIGINT) WITH ('connector' = 'filesystem', "
            f"'path' = '{folder}/in', 'format' = 'csv', 'source.monitor-interval' = '10 ms')",
            "CREATE TABLE snk (k BIGINT, n BIGINT) WITH ('connector' = 'filesystem', "
            f"'path' = '{folder}/out', 'format' = 'debezium-json')",
        ):
            environment.execute_sql(statement)
        self._result = environment.execute_sql("INSERT INTO snk SELECT k, COUNT(*) FROM src GROUP BY k")

    def __enter__(self) -> _Job:
        return self

    def __exit__(self, *_: object) -> None:
        assert self._result.job is not None
        self._result.job.cancel()

    def _heard(self, progress: EpochProgress) -> None:
        self._committed.release()

    def seconds(self) -> float:
        """From the appearance of the next file to its commit."""
        self._files += 1
        lines = (f"{self._chance.randrange(KEYS)},{n}\n" for n in range(ROWS))
        hidden = self._folder / "next"
        hidden.write_text("".join(lines))
        time.sleep(self._chance.uniform(0.0, LONGEST_PAUSE))
        begun = time.monotonic()
        os.rename(hidden, self._folder / "in" / f"{self._files:06}.csv")
        if not self._committed.acquire(timeout=_PATIENCE):
            raise SystemExit("the job does not commit")
        return time.monotonic() - begun

    def idle_share(self) -> float:
        """Of a core, by the processor time of all processes."""
        time.sleep(2.0)
        begun, used = time.monotonic(), processor_seconds(os.getpid())
        time.sleep(IDLE_SECONDS)
        return (processor_seconds(os.getpid()) - used) / (time.monotonic() - begun)


def _report(name: str, seconds: list[float]) -> None:
    hundredths = statistics.quantiles(seconds, n=100)
    print(
        f"{name}: {len(seconds)} files of {ROWS:,} rows: median {statistics.median(seconds):.3f} s, "
        f"95th percentile {hundredths[94]:.3f} s, 99th percentile {hundredths[98]:.3f} s",
        flush=True,
    )


if __name__ == "__main__":
    main()
