"""A long run over a watched directory: what must not grow, does not.

``python -m bench.soak --minutes 30`` feeds a directory with small files and runs a job over it that updates a
bounded number of keys: COUNT(DISTINCT), a Top-N, an interval join whose state goes with the watermark. It
looks every few epochs at the memory of the driver, of the JVM and of the Python workers, at open file
descriptors, at the number and the bytes of the checkpoint's files, at the size of a commit record and at the
time of an epoch. A file comes when the one before it is taken: epochs are of one size, however busy the
machine is, as smaller ones leave more layers of state. Prints the medians of each quarter as JSON; exit
status 1 where the last is larger than the second by more than ``GROWTH``. The first is for warming up.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
import threading
import time
from collections import defaultdict
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from tests.runtime.processes import parts_of
from tidemill.runtime.progress import EpochProgress
from tidemill.session.environment import TableEnvironment

GROWTH = 1.25
_EVENTS, _KEYS = 400, 500
_PATIENCE = 600
_TABLES = (
    "CREATE TABLE clicks (k INT, v INT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts - INTERVAL '1' SECOND) WITH"
    " ('connector' = 'filesystem', 'path' = '{0}/clicks', 'format' = 'csv',"
    " 'source.monitor-interval' = '200 ms')",
    "CREATE TABLE best (place BIGINT, k INT, c BIGINT, d BIGINT) WITH ('connector' = 'blackhole')",
    "CREATE TABLE near (k INT, a INT, b INT) WITH ('connector' = 'blackhole')",
)
_INSERTS = """EXECUTE STATEMENT SET BEGIN
INSERT INTO best SELECT place, k, c, d FROM (
  SELECT k, c, d, ROW_NUMBER() OVER (ORDER BY d DESC, c DESC, k) AS place FROM (
    SELECT k, COUNT(*) AS c, COUNT(DISTINCT v) AS d FROM clicks GROUP BY k)) WHERE place <= 10;
INSERT INTO near SELECT a.k, a.v, b.v FROM clicks a JOIN clicks b ON a.k = b.k
  AND b.ts BETWEEN a.ts AND a.ts + INTERVAL '5' SECOND AND a.v < b.v;
END"""


@dataclass(slots=True)
class Samples:
    """``seen``: per measure its values in time."""

    checkpoint: Path
    seen: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    epochs: list[float] = field(default_factory=list)

    def take(self) -> None:
        for name, value in {**_processes(os.getpid()), **_files(self.checkpoint)}.items():
            self.seen[name].append(value)
        if self.epochs:
            self.seen["epoch seconds"].append(statistics.median(self.epochs))
            self.epochs.clear()

    def quarters(self) -> dict[str, list[float]]:
        """The median of each."""
        found = {}
        for name, values in self.seen.items():
            quarter = max(len(values) // 4, 1)
            parts = [values[n * quarter : (n + 1) * quarter] or [0] for n in range(4)]
            found[name] = [round(statistics.median(part), 3) for part in parts]
        return found


def _processes(root: int) -> dict[str, float]:
    found: dict[str, float] = defaultdict(float)
    parts = {"driver": [root], **parts_of(root)}
    for kind, pid in ((kind, pid) for kind, pids in parts.items() for pid in pids):
        try:
            found[f"{kind} MiB"] += _resident(pid)
            found[f"{kind} descriptors"] += len(os.listdir(f"/proc/{pid}/fd"))
        except OSError:
            continue
    return found


def _resident(pid: int) -> float:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / (1 << 20)


def _files(checkpoint: Path) -> dict[str, float]:
    sizes = []
    # os.walk, as folders may go while they are read.
    for folder, folders, names in os.walk(checkpoint):
        folders[:] = [name for name in folders if name != "sources"]
        for name in names:
            with suppress(OSError):
                sizes.append(os.path.getsize(os.path.join(folder, name)))
    commits = [f.stat().st_size for f in (checkpoint / "epochs").glob("*.commit.json")]
    return {
        "state files": len(sizes),
        "state MiB": sum(sizes) / (1 << 20),
        "commit bytes": max(commits, default=0),
    }


def feed(directory: Path, number: int) -> None:
    """One file of events that appears at once."""
    start = 1_700_000_000 + number
    lines = []
    for event in range(_EVENTS):
        at = time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(start + event // (_EVENTS // 2)))
        lines.append(f"{(event * 7919 + number) % _KEYS},{(event * 31 + number) % 97},{at}\n")
    hidden = directory / f".{number:08d}.csv"
    hidden.write_text("".join(lines))
    hidden.rename(directory / f"{number:08d}.csv")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=10)
    minutes = parser.parse_args().minutes
    with tempfile.TemporaryDirectory() as root:
        clicks, checkpoint = Path(root) / "clicks", Path(root) / "checkpoint"
        clicks.mkdir()
        samples = Samples(checkpoint)
        environment = TableEnvironment.create(
            {"execution.checkpointing.dir": str(checkpoint), "parallelism.default": "2"}
        )
        count, taken = 0, threading.Event()

        def hear(progress: EpochProgress) -> None:
            nonlocal count
            count += 1
            samples.epochs.append(progress.seconds)
            taken.set()

        environment.context.on_progress = hear
        for statement in _TABLES:
            environment.execute_sql(statement.format(root)).wait()
        feed(clicks, 0)
        job = environment.execute_sql(_INSERTS).get_job_client()
        assert job is not None
        end, number = time.monotonic() + 60 * minutes, 0
        while time.monotonic() < end:
            for _ in range(5):
                number += 1
                taken.clear()
                feed(clicks, number)
                if not taken.wait(_PATIENCE):
                    raise SystemExit(f"no epoch in {_PATIENCE} s")
            samples.take()
        job.stop()
        job.wait(120)
    grown = []
    report: dict[str, object] = {"minutes": minutes, "epochs": count, "files": number}
    for name, medians in samples.quarters().items():
        report[name] = medians
        if medians[3] > GROWTH * medians[1] + 1:
            grown.append(name)
    print(json.dumps(report | {"grown": grown}, indent=1))
    sys.exit(1 if grown else 0)


if __name__ == "__main__":
    main()
