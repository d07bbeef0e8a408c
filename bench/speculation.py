"""Slow tasks are started again, long ones are not: ``python -m bench.speculation [--rows N] [--runs N]``

Four executors of one core on two workers of a standalone cluster. Each of 48 tasks reads a file, and waits a
few milliseconds for each of its rows, so that nothing hangs on how many cores the machine has. Four times the
same query: on healthy executors, with one of them slowed ten times (it is stopped nine tenths of the time)
without and with speculation, and, healthy again, with one file that has ten times the rows. Each in an
application of its own, once to warm up; the best of ``--runs`` counts.
"""

from __future__ import annotations

import argparse
import os
import signal
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from tests.cluster.standalone import Standalone, standalone
from tidemill.runtime.spark.session import spark_application
from tidemill.runtime.spark.stage_runs import stage_runs, tagged
from tidemill.session.environment import TableEnvironment
from tidemill.user_functions.declared import udf

FILES = 48
SKEW = 10
PERIOD, RUNNING = 0.2, 0.02
"""Seconds: of which a slowed process runs so many."""
OPTIONS = {
    "execution.runtime-mode": "batch",
    "execution.batch.adaptive.auto-parallelism.default-source-parallelism": str(FILES),
    "spark.cores.max": "4",
    "spark.executor.cores": "1",
    "spark.executor.memory": "512m",
    "spark.driver.memory": "512m",
    "spark.driver.host": "127.0.0.1",
    "spark.sql.files.openCostInBytes": str(128 << 20),
}
SPECULATION = {
    "execution.batch.speculative.enabled": "true",
    "slow-task-detector.check-interval": "100 ms",
    "slow-task-detector.execution-time.baseline-lower-bound": "1 s",
}
QUERY = "SELECT COUNT(*) AS n, SUM(waited(v)) AS s FROM t"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=50, help="of a file; ten milliseconds each")
    parser.add_argument("--runs", type=int, default=2)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="tidemill-bench-") as folder:
        place = Path(folder)
        for name, first in (("even", given.rows), ("skewed", given.rows * SKEW)):
            (place / name).mkdir()
            for number in range(FILES):
                rows = pa.table({"v": pa.array(range(given.rows if number else first), pa.int64())})
                pq.write_table(rows, place / name / f"{number:02}.parquet")
        with standalone(place / "cluster", cores=2) as cluster:
            healthy, _ = measured(cluster, place, "even", given.runs, slowed=False, speculates=True)
            print(f"healthy: {healthy:.1f} s", flush=True)
            for way, speculates in (("without", False), ("with", True)):
                took, copies = measured(
                    cluster, place, "even", given.runs, slowed=True, speculates=speculates
                )
                ratio = f"{took:.1f} s, {took / healthy:.2f} times, {copies} copies"
                print(f"one executor slowed, {way} speculation: {ratio}", flush=True)
            took, copies = measured(cluster, place, "skewed", given.runs, slowed=False, speculates=True)
            print(f"one file of ten times the rows: {took:.1f} s, {copies} copies", flush=True)


def measured(
    cluster: Standalone, place: Path, table: str, runs: int, *, slowed: bool, speculates: bool
) -> tuple[float, int]:
    """The best time, and the copies of tasks in all runs."""
    here, there = get_context("spawn").Pipe()
    chosen = {"spark.master": cluster.url, "tidemill.shared-filesystem": str(place)}
    options = {**OPTIONS, **chosen, **(SPECULATION if speculates else {})}
    child = get_context("spawn").Process(target=job, args=(there, options, str(place / table)))
    child.start()
    here.recv()
    found = []
    for _ in range(runs):
        with slow(cluster) if slowed else nullcontext():
            here.send(True)
            found.append(here.recv())
    here.send(False)
    child.join()
    return min(took for took, _ in found), sum(copies for _, copies in found)


def job(pipe: Connection, options: dict[str, str], folder: str) -> None:
    """Runs the query when it is told to; says how long it took and how many copies of tasks there were."""

    @udf(result_type="BIGINT")
    def waited(value: int) -> int:
        time.sleep(0.01)
        return value

    environment = TableEnvironment.create(options)
    environment.create_temporary_function("waited", waited)
    files = f"'connector' = 'filesystem', 'path' = '{folder}', 'format' = 'parquet'"
    environment.execute_sql(f"CREATE TABLE t (v BIGINT) WITH ({files})")
    environment.execute_sql(QUERY).wait()
    context = spark_application(options).sparkContext
    pipe.send(None)
    number = 0
    while pipe.recv():
        number += 1
        started = time.perf_counter()
        with tagged(context, f"run-{number}", "speculation"):
            environment.execute_sql(QUERY).wait()
        took = time.perf_counter() - started
        stages, _ = stage_runs(context, f"run-{number}")
        pipe.send((took, sum(stage.copies for stage in stages)))
    context.stop()


@contextmanager
def slow(cluster: Standalone) -> Iterator[None]:
    """One executor, its Python processes included, runs a tenth of the time."""
    ended = threading.Event()
    thread = threading.Thread(target=_slow, args=(cluster.executors()[0], ended))
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def _slow(executor: int, ended: threading.Event) -> None:
    while not ended.is_set():
        family = _family(executor)
        _signal(family, signal.SIGSTOP)
        ended.wait(PERIOD - RUNNING)
        _signal(family, signal.SIGCONT)
        ended.wait(RUNNING)


def _signal(processes: list[int], which: signal.Signals) -> None:
    for process in processes:
        with suppress(ProcessLookupError):
            os.kill(process, which)


def _family(process: int) -> list[int]:
    """It, its children and theirs."""
    found = [process]
    for parent in found:
        for thread in Path(f"/proc/{parent}/task").glob("*"):
            with suppress(OSError):
                found += map(int, (thread / "children").read_text().split())
    return found


if __name__ == "__main__":
    main()
