"""kill -9 without Spark: ``python -m tests.runtime.spark.resident.forked FOLDER KILLS SEED``.

A job's driver and its resident workers are forks of this process. The driver kills itself at a random step of
the commit protocol or at some moment of an epoch, or it kills workers time and again; then another one goes
on. What would be a Spark job runs in a thread of the driver: an epoch that was lost with a worker, and each
epoch that the driver draws. The sinks must end up as those of a job that nobody kills, change by change.
Says as JSON what it did.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
import threading
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from pathlib import Path
from random import Random
from typing import Any, cast
from unittest.mock import patch

from pyspark.sql import SparkSession

from tests.runtime.running import Session
from tests.runtime.spark.resident.in_process import Workers, in_process
from tests.runtime.spark.resident.jobs import changes, inserts, make_input, options, sinks
from tests.runtime.spark.resident.victim import QUERIES, STEPS
from tidemill.runtime import epoch_loop
from tidemill.runtime.outputs import Made
from tidemill.runtime.spark.epoch.arrow_epochs import ArrowEpochs
from tidemill.runtime.spark.epoch.facts import EpochFacts
from tidemill.runtime.spark.epoch.reads import Reads
from tidemill.runtime.spark.resident import worker
from tidemill.runtime.spark.resident import workers as real
from tidemill.runtime.spark.resident.epochs import ResidentEpochs

ROWS, ROWS_OF_EPOCH, WIDTH = 150, 5, 2
_LONGEST = 0.05
"""Seconds between the plan of an epoch and a kill."""


class Forked(Workers):
    """``wanted``: whether the next epoch is to run in them."""

    def __init__(self, wanted: Callable[[], bool]) -> None:
        self.processes: tuple[int, ...] = ()
        self._connections: list[Connection] = []
        self._wanted = wanted

    @contextmanager
    def lent(self, width: int, ends: Callable[[], bool]) -> Iterator[Any]:
        if not self._wanted():
            yield None
            return
        if not self.processes:
            made = [self._fork() for _ in range(WIDTH)]
            self.processes, self._connections = tuple(pid for pid, _ in made), [c for _, c in made]
        thread = threading.current_thread()
        try:
            yield real._Job(group="", connections=self._connections, processes=self.processes, thread=thread)
        except BaseException:
            self.end()
            raise

    @contextmanager
    def beside(self, ends: Callable[[], bool]) -> Iterator[None]:
        yield

    def end(self) -> None:
        processes, self.processes = self.processes, ()
        for connection in self._connections:
            connection.close()
        for pid in processes:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)

    def _fork(self) -> tuple[int, Connection]:
        here, there = Pipe()
        pid = os.fork()
        if pid == 0:
            for connection in (here, *self._connections):
                connection.close()
            worker.answer(there)
            os._exit(0)
        there.close()
        return pid, here


class _InThread(ResidentEpochs):
    def _failed(self, error: Exception, epoch: int) -> None:
        raise error


def as_spark_job(spark: SparkSession, arrow: ArrowEpochs, facts: EpochFacts, reads: Reads) -> Made:
    """In a thread of this process."""
    runner = _InThread(
        context=spark.sparkContext,
        arrow=arrow,
        parallelism=WIDTH,
        workers=cast(Any, Workers()),
        stopping=threading.Event(),
    )
    made = runner.run(facts, reads, lambda: None)
    assert made is not None
    return made


def life(folder: Path, chance: Random | None) -> int:
    """Runs the job in a fork; its exit status, negative for a signal."""
    pid = os.fork()
    if pid == 0:
        try:
            _run(folder, chance)
        except BaseException:
            (folder / "errors").write_text(traceback.format_exc())
            os._exit(1)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def _run(folder: Path, chance: Random | None) -> None:
    forked = Forked(lambda: chance is not None and chance.random() < 0.8)
    fault = (lambda _: None) if chance is None else _killer(folder, chance, forked)
    with in_process(folder, forked), patch.object(epoch_loop, "run_as_spark_job", as_spark_job):
        made = options(ROWS_OF_EPOCH, "resident", folder / "checkpoint")
        if chance is not None and chance.random() < 0.5:
            made["tidemill.epoch.small-bytes"] = "0"
        tables = make_input(folder / "input", Random(1), ROWS)
        Session(made, fault).execute(*tables, *sinks(folder, len(QUERIES)), inserts(QUERIES))
    forked.end()


def _killer(folder: Path, chance: Random, forked: Forked) -> Callable[[str], None]:
    """A fault hook that does one deed, or one of a kind time and again."""
    deed = chance.choice(("step", "step", "moment", "moment", "worker"))
    step, after, seen = chance.choice(STEPS), chance.randint(1, 6), Counter[str]()

    def note(what: str) -> None:
        with (folder / "kills").open("a") as file:
            file.write(f"{what}\n")

    def strike() -> None:
        pids = forked.processes
        if deed == "moment":
            note("driver at a moment")
            os.kill(os.getpid(), signal.SIGKILL)
        elif pids:
            note("worker")
            os.kill(chance.choice(pids), signal.SIGKILL)

    def fault(reached: str) -> None:
        seen[reached] += 1
        if deed == "step" and reached == step and seen[step] == after:
            note(f"driver {step}")
            os.kill(os.getpid(), signal.SIGKILL)
        if deed == "moment" and reached == "planned" and seen["planned"] == after:
            threading.Timer(chance.uniform(0.0, _LONGEST), strike).start()
        if deed == "worker" and reached == "planned" and seen["planned"] % 2 == 0:
            threading.Timer(chance.uniform(0.0, _LONGEST), strike).start()

    return fault


def kills_of(folder: Path) -> list[str]:
    noted = folder / "kills"
    return noted.read_text().splitlines() if noted.exists() else []


def main() -> None:
    root, wanted, seed = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    (root / "alone").mkdir()
    if life(root / "alone", None) != 0:
        sys.exit((root / "alone" / "errors").read_text())
    expected, killed, jobs, begun = changes(root / "alone", len(QUERIES)), Counter[str](), 0, time.monotonic()
    while killed.total() < wanted:
        jobs += 1
        folder = root / f"job-{jobs}"
        folder.mkdir()
        while True:
            before, seed = len(kills_of(folder)), seed + 1
            status = life(folder, Random(seed))
            if status == 0:
                break
            if status != -signal.SIGKILL or len(kills_of(folder)) == before:
                sys.exit(f"job {jobs} ended with {status}: {(folder / 'errors').read_text()}")
        killed.update(kills_of(folder))
        if changes(folder, len(QUERIES)) != expected:
            sys.exit(f"job {jobs} differs after {kills_of(folder)}")
        shutil.rmtree(folder)
    seconds = round(time.monotonic() - begun)
    print(json.dumps({"kills": killed.total(), "by way": killed, "jobs": jobs, "seconds": seconds}))


if __name__ == "__main__":
    main()
