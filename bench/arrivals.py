"""How long rows take from the appearance of their file to the commit of the sink, and what waiting costs.

``python -m bench.arrivals [FILES] [--gateway NAME=URL ...]``. A job watches a folder, and groups the 1,000
rows of each new file into a file sink. Each file has a key of its own in its last row. A file is committed
when a reader of the sink's folder sees that key. The next file appears at a random moment after that. The
same job runs in turn as Spark jobs, in resident workers, and at the gateways, which speak Flink's REST
protocol. All have a checkpoint directory; Flink makes a checkpoint every 100 ms. Prints for each the
median, the 95th and the 99th percentile. A part of them is that the job looks for new files every 10 ms.

Then the processor time of a job without input, as a share of a core: as Spark jobs, and with resident workers
that wait, and that have given their slots back.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from random import Random
from unittest.mock import patch

from bench.gateway import Client
from bench.memory import processor_seconds
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
_LOOK_SECONDS = 0.002

Start = Callable[[str], Callable[[], object]]
"""Runs a statement, an INSERT in the background; what it gives ends the job."""


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("files", type=int, nargs="?", default=200)
    parser.add_argument("--gateway", action="append", default=[])
    asked = parser.parse_args()
    for _ in range(ROUNDS):
        for name, start in (
            ("Spark jobs", _here(resident=False)),
            ("resident", _here(resident=True)),
            *((name, _there(url)) for name, _, url in (g.partition("=") for g in asked.gateway)),
        ):
            with tempfile.TemporaryDirectory() as folder, _Job(start, Path(folder)) as job:
                _report(name, [job.seconds() for _ in range(WARM_UP + asked.files)][WARM_UP:])
    for name, resident, end in (
        ("Spark jobs", False, 0.0),
        ("resident workers that wait", True, 600.0),
        ("resident workers that have ended", True, 0.0),
    ):
        with (
            tempfile.TemporaryDirectory() as folder,
            patch.object(workers, "IDLE_SECONDS", end),
            _Job(_here(resident=resident), Path(folder)) as job,
        ):
            for _ in range(WARM_UP):
                job.seconds()
            print(f"no input, {name}: {job.idle_share():.1%} of a core", flush=True)


def _here(*, resident: bool) -> Start:
    environment = TableEnvironment.create(
        {
            "table.exec.mini-batch.allow-latency": "0 ms",
            "tidemill.epoch.resident": str(resident).lower(),
        }
    )

    def start(statement: str) -> Callable[[], object]:
        job = environment.execute_sql(statement).job
        return (lambda: None) if job is None else job.cancel

    return start


def _there(url: str) -> Start:
    client = Client(url)
    options = {"parallelism.default": "2", "execution.checkpointing.interval": "100 ms"}
    session = client.ask("POST", "/sessions", {"properties": options})["sessionHandle"]

    def start(statement: str) -> Callable[[], object]:
        client.run(session, statement)
        return partial(_stop, client, session)

    return start


def _stop(client: Client, session: str) -> None:
    for job, *_ in (row for row in client.rows(session, "SHOW JOBS") if row[2] == "RUNNING"):
        client.run(session, f"STOP JOB '{job}'")


class _Job:
    """A job that waits for files in ``folder/in``."""

    def __init__(self, start: Start, folder: Path) -> None:
        self._folder = folder
        self._chance = Random(7)
        self._files = 0
        self._seen = set[str]()
        (folder / "in").mkdir()
        for statement in (
            f"SET 'execution.checkpointing.dir' = 'file://{folder}/checkpoint'",
            "DROP TABLE IF EXISTS src",
            "DROP TABLE IF EXISTS snk",
            f"CREATE TABLE src (k BIGINT, v BIGINT) WITH ('connector' = 'filesystem', "
            f"'path' = '{folder}/in', 'format' = 'csv', 'source.monitor-interval' = '10 ms')",
            "CREATE TABLE snk (k BIGINT, n BIGINT) WITH ('connector' = 'filesystem', "
            f"'path' = '{folder}/out', 'format' = 'debezium-json', "
            "'sink.rolling-policy.rollover-interval' = '1 ms', "
            "'sink.rolling-policy.check-interval' = '1 ms')",
        ):
            start(statement)
        self._end = start("INSERT INTO snk SELECT k, COUNT(*) FROM src GROUP BY k")

    def __enter__(self) -> _Job:
        return self

    def __exit__(self, *_: object) -> None:
        self._end()

    def seconds(self) -> float:
        """From the appearance of the next file to its commit."""
        self._files += 1
        last = KEYS + self._files
        lines = (f"{self._chance.randrange(KEYS)},{n}\n" for n in range(ROWS - 1))
        hidden = self._folder / "next"
        hidden.write_text("".join(lines) + f"{last},0\n")
        time.sleep(self._chance.uniform(0.0, LONGEST_PAUSE))
        begun = time.monotonic()
        os.rename(hidden, self._folder / "in" / f"{self._files:06}.csv")
        while not self._shows(f'"k":{last},'):
            if time.monotonic() > begun + _PATIENCE:
                raise SystemExit("the job does not commit")
            time.sleep(_LOOK_SECONDS)
        return time.monotonic() - begun

    def _shows(self, text: str) -> bool:
        """Whether one of the files that have come to the sink's folder since the last look has it."""
        new = {name for name in _names(self._folder / "out") if name not in self._seen}
        self._seen |= new
        return any(text in (self._folder / "out" / name).read_text() for name in new)

    def idle_share(self) -> float:
        """Of a core, by the processor time of all processes."""
        time.sleep(2.0)
        begun, used = time.monotonic(), processor_seconds(os.getpid())
        time.sleep(IDLE_SECONDS)
        return (processor_seconds(os.getpid()) - used) / (time.monotonic() - begun)


def _names(folder: Path) -> list[str]:
    """Files that a reader sees."""
    try:
        return [name for name in os.listdir(folder) if name[0] not in "._"]
    except FileNotFoundError:
        return []


def _report(name: str, seconds: list[float]) -> None:
    hundredths = statistics.quantiles(seconds, n=100)
    print(
        f"{name}: {len(seconds)} files of {ROWS:,} rows: median {statistics.median(seconds):.3f} s, "
        f"95th percentile {hundredths[94]:.3f} s, 99th percentile {hundredths[98]:.3f} s",
        flush=True,
    )


if __name__ == "__main__":
    main()
