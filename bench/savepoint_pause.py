"""How long a savepoint holds up the job that it is of: ``python -m bench.savepoint_pause [KEYS]``.

One GROUP BY over KEYS keys (10 million) of CSV files. A small file comes every tenth of a second, and the
time until its epoch is committed counts: first without savepoints, then while one CREATE SAVEPOINT after the
other runs. Prints the median and the longest of these times for both, and the seconds and the bytes of a
savepoint.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import threading
import time
from pathlib import Path

from tidemill.runtime.progress import EpochProgress
from tidemill.session.environment import TableEnvironment

SMALL, EVERY = 100, 0.1
QUERY = "INSERT INTO s SELECT k, COUNT(*), SUM(v) FROM t GROUP BY k"


def main() -> None:
    keys = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000_000
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "in").mkdir()
        _put(folder, "all", "".join(f"{key},{key}\n" for key in range(keys)))
        environment = TableEnvironment.create({"execution.checkpointing.dir": f"{folder}/checkpoint"})
        committed = dict[int, float]()
        epoch = threading.Event()

        def heard(progress: EpochProgress) -> None:
            committed[progress.epoch] = time.monotonic()
            epoch.set()

        environment.context.on_progress = heard
        environment.execute_sql(
            f"CREATE TABLE t (k BIGINT, v BIGINT) WITH ('connector'='filesystem', 'path'='{folder}/in', "
            "'format'='csv', 'source.monitor-interval'='10 ms')"
        )
        environment.execute_sql(
            "CREATE TABLE s (k BIGINT, n BIGINT, v BIGINT) WITH ('connector'='blackhole')"
        )
        job = environment.execute_sql(QUERY).job
        assert job is not None
        while True:  # until all keys are in state
            epoch.clear()
            if not epoch.wait(10):
                break
        _report("without savepoints", _delays(folder, committed, 100, "a"))
        done, seconds = threading.Event(), list[float]()

        def save() -> None:
            while not done.is_set():
                begun = time.monotonic()
                place = folder / f"savepoint{len(seconds)}"
                environment.execute_sql(f"CREATE SAVEPOINT '{place}' FOR JOB '{job.job_id}'").wait()
                seconds.append(time.monotonic() - begun)

        thread = threading.Thread(target=save)
        thread.start()
        _report("beside savepoints", _delays(folder, committed, 100, "b"))
        done.set()
        thread.join()
        size = sum(p.stat().st_size for p in (folder / "savepoint0").rglob("*") if p.is_file())
        print(
            f"{len(seconds)} savepoints of {size / 1e6:.0f} MB: median {statistics.median(seconds):.3f} s, "
            f"longest {max(seconds):.3f} s"
        )
        job.cancel()


def _delays(folder: Path, committed: dict[int, float], times: int, name: str) -> list[float]:
    """Seconds from a file's appearance to its commit."""
    delays = []
    for number in range(times):
        before, begun = max(committed), time.monotonic()
        _put(folder, f"{name}{number}", "".join(f"{key * 7},1\n" for key in range(SMALL)))
        while max(committed) == before:
            time.sleep(0.001)
        delays.append(committed[max(committed)] - begun)
        time.sleep(EVERY)
    return delays


def _put(folder: Path, name: str, text: str) -> None:
    (folder / f".{name}").write_text(text)
    (folder / f".{name}").rename(folder / "in" / f"{name}.csv")


def _report(what: str, delays: list[float]) -> None:
    print(
        f"{what}: {len(delays)} small epochs, median {statistics.median(delays):.3f} s, "
        f"longest {max(delays):.3f} s",
        flush=True,
    )


if __name__ == "__main__":
    main()
